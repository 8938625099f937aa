"""The project's own stylesheets, and which documents they are for.

`opml`, `opensearch` and `svg` are how these kinds are read. `rss`, `atom`, `sitemap` and `xhtml` say in XSLT what
native code does faster; they are the pattern for stylesheets of users, and what GRDDL's well-known names lead to.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from quadloom.model.document import Kind
from quadloom.syntaxes.registry import Context
from quadloom.syntaxes.xslt import Stylesheet, compiled

NAMES = ("atom", "opensearch", "opml", "rss", "sitemap", "svg", "xhtml")
_OF_KIND: dict[Kind, str] = {"opensearch": "opensearch", "svg": "svg"}


@lru_cache(maxsize=len(NAMES))
def bundled(name: str) -> Stylesheet:
    """One of our stylesheets, compiled."""
    source = files("quadloom.syntaxes").joinpath("stylesheets", f"{name}.xsl").read_bytes()
    return compiled(source, name=f"{name}.xsl")


def read(context: Context) -> None:
    """State a document by the stylesheet that comes with its kind."""
    name = _OF_KIND.get(context.document.kind)
    if name is not None:
        bundled(name).state(context, context.root, syntax=context.document.kind)
