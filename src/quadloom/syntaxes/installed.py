"""The table of all syntaxes: which extractors read which kind, in which order.

`html` comes first because the others use its base and language. A new syntax is one line here.
"""

from __future__ import annotations

from quadloom.syntaxes import html, html_meta, opengraph, plain_text
from quadloom.syntaxes.registry import Extractor, Registry

_HTML = Extractor("html", html.read)
_META = Extractor("meta", html_meta.read)
_OPEN_GRAPH = Extractor("opengraph", opengraph.read)
_TEXT = Extractor("text", plain_text.read)

SYNTAXES = Registry(
    {
        "html": (_HTML, _META, _OPEN_GRAPH),
        "xhtml": (_HTML, _META, _OPEN_GRAPH),
        "text": (_TEXT,),
    }
)
