"""Sitemaps as RDF: which pages a site has, when they changed, and what they say of them (images, news, languages).

Statements: `<sitemap> dcterms:hasPart <page>`, `<page> dcterms:modified …`, and of the extensions titles and
pictures. Links carry the kind `sitemap`; dates and change frequencies go to the scheduler, which checks whether they
are true. Priorities are ignored: sites set them to please search engines, and they say nothing about the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

from lxml import etree

from quadloom.documents.syntaxes.feeds.writing import DC, DCTERMS, DEPICTION, parse_date
from quadloom.documents.syntaxes.feeds.xml import text_of, tolerant_root
from quadloom.documents.syntaxes.feeds.xml_feeds import local_name
from quadloom.documents.syntaxes.guards import check_xml
from quadloom.documents.syntaxes.iri import ReferenceResolver
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.terms import XSD, iri, literal
from quadloom.model.link import Link, stated_rhythm

_PART = f"<{DCTERMS}hasPart>"
_MODIFIED = f"<{DCTERMS}modified>"
_TITLE = f"<{DCTERMS}title>"
_LANGUAGE = f"<{DC}language>"
MAX_ENTRIES = 50_000  # what sitemaps.org allows one file; more than `limits.links_per_page` grants a page
_LARGE = 1 << 20
_BLOCK = 1 << 16
_MAX_EXTENSIONS = 1000  # images, titles and languages of one page; sitemaps.org allows 1000 images


def extract(body: bytes, *, url: str, kind: Literal["sitemap", "sitemapindex"] = "sitemap") -> bytes:
    """N-Triples of one sitemap or index of sitemaps."""
    context = Context.standalone(body, kind, url=url)
    read(context)
    return context.sink.nquads()


def read(context: Context) -> None:
    """All pages of a `urlset`, or all sitemaps of a `sitemapindex`."""
    kind = context.document.kind
    sitemap = iri(context.url) or context.sink.blank()
    resolver = ReferenceResolver(context.base)
    wanted = "sitemap" if kind == "sitemapindex" else "url"
    context.most_links = limit = max(context.most_links, MAX_ENTRIES)
    outside = 0
    elements = _streamed(context, wanted) if len(context.utf8) > _LARGE else iter(tolerant_root(context, kind))
    for element in elements:
        if len(context.links) >= limit:
            message = f"more than {limit} links: the rest of the sitemap is not followed"
            context.find("too-many-links", message, syntax="sitemap", advice="split the sitemap, or raise the limit")
            break
        if local_name(element.tag) == wanted and not _read_page(context, element, sitemap, resolver):
            outside += 1
    if outside:
        message = f"{outside} entries without a usable loc"
        context.find("sitemap-loc", message, syntax="sitemap", advice="give every entry an absolute URL")


def _streamed(context: Context, wanted: str) -> Iterator[etree._Element]:
    """The entries of a large sitemap, gone soon after they were read: its tree would take ten times its size."""
    source = context.utf8
    if b"<!ENTITY" in source:
        check_xml(source)
    parser = etree.XMLPullParser(
        ("end",),
        tag=(f"{{*}}{wanted}",),
        recover=True,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        encoding="utf-8",
    )
    for start in range(0, len(source), _BLOCK):
        parser.feed(source[start : start + _BLOCK])
        root: etree._Element | None = None
        for _event, element in parser.read_events():
            parent = element.getparent() if isinstance(element, etree._Element) else None
            if isinstance(element, etree._Element) and parent is not None and parent.getparent() is None:
                root = parent
                yield element
        if root is not None:
            del root[:-1]  # the last may still be growing
    with suppress(etree.XMLSyntaxError):
        parser.close()
    if len(parser.feed_error_log):
        first = parser.feed_error_log[0]
        message = f"not well-formed: {first.message}; read as far as possible"
        context.find("feed-not-well-formed", message, syntax="sitemap", line=first.line, column=first.column)


def _read_page(context: Context, element: etree._Element, sitemap: str, resolver: ReferenceResolver) -> bool:
    location = lastmod = frequency = ""
    extensions: list[tuple[str, etree._Element]] = []
    for child in element:
        name = local_name(child.tag)
        if name == "loc":
            location = text_of(child)
        elif name == "lastmod":
            lastmod = text_of(child)
        elif name == "changefreq":
            frequency = text_of(child)
        elif name in ("image", "news", "video", "link") and len(extensions) < _MAX_EXTENSIONS:
            extensions.append((name, child))
    target = resolver(location) if location else None
    if target is None:
        return False
    page = f"<{target}>"
    context.sink.add(sitemap, _PART, page)
    context.links.append(Link(target, context.url, "sitemap"))
    if lastmod:
        _state_date(context, page, target, lastmod)
    if rhythm := stated_rhythm(frequency):
        context.facts.rhythms.append((target, rhythm))
    for name, extension in extensions:
        _read_extension(context, page, name, extension, resolver)
    return True


def _state_date(context: Context, page: str, target: str, text: str) -> None:
    at = parse_date(text)
    if at is None:
        context.sink.add(page, _MODIFIED, literal(text))
        return
    context.sink.add(page, _MODIFIED, literal(at.text, datatype=f"{XSD}dateTime"))
    context.facts.lastmods.append((target, at.unix))


def _read_extension(
    context: Context, page: str, name: str, element: etree._Element, resolver: ReferenceResolver
) -> None:
    if name == "link":  # xhtml:link rel=alternate hreflang
        target = resolver(element.get("href") or "")
        if target:
            language = element.get("hreflang") or ""
            context.links.append(Link(target, context.url, "alternate", language, "alternate"))
        return
    for child in element.iterdescendants(etree.Element):
        if len(child):
            continue  # its leaves follow; reading the text of each level would be quadratic
        part, text = local_name(child.tag), text_of(child)
        if part == "title" and text:
            context.sink.add(page, _TITLE, literal(text))
        elif part == "language" and text:
            context.sink.add(page, _LANGUAGE, literal(text))
        elif part in ("loc", "thumbnail_loc"):
            target = resolver(text)
            if target:
                context.sink.add(page, DEPICTION, f"<{target}>")
                context.links.append(Link(target, context.url, "image"))
