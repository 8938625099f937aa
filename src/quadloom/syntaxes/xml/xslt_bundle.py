"""The project's own stylesheets, and which documents they are for.

`opml`, `opensearch` and `svg` are how these kinds are read. `rss`, `atom`, `sitemap` and `xhtml` say in XSLT what
native code does faster; they are the pattern for stylesheets of users, and what GRDDL's well-known names lead to.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from quadloom.model.document import Kind
from quadloom.model.link import Link
from quadloom.model.url import resolve
from quadloom.syntaxes.rdf.link_quads import REFERENCES
from quadloom.syntaxes.registry import Context
from quadloom.syntaxes.xml.xslt import Stylesheet, compiled

NAMES = ("atom", "opensearch", "opml", "rss", "sitemap", "svg", "xhtml")
_OF_KIND: dict[Kind, str] = {"opensearch": "opensearch", "svg": "svg"}


@lru_cache(maxsize=len(NAMES))
def bundled(name: str) -> Stylesheet:
    """One of our stylesheets, compiled."""
    source = files("quadloom.syntaxes.xml").joinpath("stylesheets", f"{name}.xsl").read_bytes()
    return compiled(source, name=f"{name}.xsl")


def read(context: Context) -> None:
    """State a document by the stylesheet that comes with its kind."""
    name = _OF_KIND.get(context.document.kind)
    if name is None:
        return
    bundled(name).state(context, context.root, syntax=context.document.kind)
    for statement in context.sink.statements():
        _, predicate, value = statement.split(" ", 2)
        if predicate == REFERENCES:
            target = resolve(value[1:-1])
            if target:
                context.links.append(Link(target, context.url))
