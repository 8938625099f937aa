"""OPML: lists of feeds and outlines of links. Statements by `stylesheets/opml.xsl`; links, with kinds, from here."""

from __future__ import annotations

from quadloom.model.link import Link, LinkKind
from quadloom.syntaxes.feeds.xml import tolerant_root
from quadloom.syntaxes.html.references import ReferenceResolver
from quadloom.syntaxes.registry import Context
from quadloom.syntaxes.xml.xslt_bundle import bundled

_ATTRIBUTES: tuple[tuple[str, LinkKind], ...] = (("xmlUrl", "feed"), ("htmlUrl", "plain"), ("url", "plain"))


def read(context: Context) -> None:
    """Every outline: what it is called, and the feed, page or file it names."""
    root = tolerant_root(context, "opml")
    bundled("opml").state(context, root, syntax="opml")
    context.facts.title = context.facts.title or (root.findtext("head/title") or "").strip()
    resolver = ReferenceResolver(context.base)
    titles = []
    for outline in root.iter("outline"):
        title = (outline.get("title") or outline.get("text") or "").strip()
        titles.append(title)
        for name, kind in _ATTRIBUTES:
            reference = outline.get(name)
            target = resolver(reference.strip()) if reference else None
            if target:
                context.links.append(
                    Link(target, context.url, kind, title[:200], "alternate" if kind == "feed" else "")
                )
    context.facts.text = "\n".join(filter(None, titles))[: context.settings.limits.text_chars]
