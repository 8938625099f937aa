"""An HTML document read for one syntax alone, outside a transformation: its tree and its base URL.

`quadloom.syntaxes.registry.Context` does the same once for all syntaxes of a page.
"""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

from quadloom.syntaxes.charset import charset_of, utf8
from quadloom.syntaxes.html.tree import tame
from quadloom.syntaxes.terms import join


def source_of(body: bytes) -> bytes:
    """The document in UTF-8, without what would make the parser slow."""
    return tame(utf8(body, charset_of(body).name))[0]


def base_of(tree: LexborHTMLParser, url: str) -> str:
    """The first `<base href>` of the document, resolved; else its own address."""
    base = tree.css_first("base[href]", default=None)
    return join(url, (base.attributes["href"] or "").strip()) if base is not None else url
