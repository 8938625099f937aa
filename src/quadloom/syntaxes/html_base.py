"""The base URL of an HTML document, against which every syntax resolves its references."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

from quadloom.syntaxes.terms import join


def base_of(tree: LexborHTMLParser, url: str) -> str:
    """The first `<base href>` of the document, resolved; else its own address."""
    base = tree.css_first("base[href]", default=None)
    return join(url, (base.attributes["href"] or "").strip()) if base is not None else url
