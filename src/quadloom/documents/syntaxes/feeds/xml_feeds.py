"""RSS 0.9x, 1.0, 2.0, Atom and OPML, read natively and tolerantly.

The same mapping is also written as XSLT (`stylesheets/rss.xsl`, `stylesheets/atom.xsl`), which is how users map
formats of their own; a test proves both equal. The crawl runs native code: it is several times as fast and tolerates
more (docs/decisions/0008-feeds-run-natively.md). For OPML the statements come from `stylesheets/opml.xsl`, the links
from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from lxml import etree

from quadloom.documents.syntaxes.feeds.writing import CONTENT, DC, DCTERMS, Enclosure, FeedEntry, FeedLink, FeedWriter
from quadloom.documents.syntaxes.feeds.xml import expanded, text_of, tolerant_root
from quadloom.documents.syntaxes.html.links import kind_of
from quadloom.documents.syntaxes.iri import ReferenceResolver
from quadloom.documents.syntaxes.rdf import files as rdf_files
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.terms import RDF, iri
from quadloom.documents.syntaxes.xml.xslt import bundled
from quadloom.model.link import CHANGE_FREQUENCIES, Link, LinkKind
from quadloom.model.url import resolve

ATOM = "http://www.w3.org/2005/Atom"
_CORE = frozenset(
    (
        "", ATOM, "http://purl.org/atom/ns#", "http://purl.org/rss/1.0/", "http://my.netscape.com/rdf/simple/0.9/",
        "http://backend.userland.com/rss2", "http://blogs.law.harvard.edu/tech/rss", "http://purl.org/net/rss1.1#",
    )
)  # fmt: skip
_MEDIA = "http://search.yahoo.com/mrss/"
_ITUNES = "http://www.itunes.com/dtds/podcast-1.0.dtd"
_SYNDICATION = "{http://purl.org/rss/1.0/modules/syndication/}"
_PERIODS = ("hourly", "daily", "weekly", "monthly", "yearly")
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_ABOUT = f"{{{RDF}}}about"
_MAX_MODULE_TEXT = 10_000
_MAX_VALUES = 256  # of one property of one entry; more would make joining and comparing quadratic

_Part = Callable[[FeedEntry, etree._Element, str], None]


def extract(body: bytes, *, url: str, kind: Literal["rss", "atom"] = "rss") -> bytes:
    """N-Triples of one feed, with those that RSS 1.0 states as RDF/XML."""
    context = Context.standalone(body, kind, url=url)
    read(context)
    read_rdf(context)
    return context.sink.nquads()


def extract_opml(body: bytes, *, url: str) -> bytes:
    """N-Triples of one OPML file."""
    context = Context.standalone(body, "opml", url=url)
    read_opml(context)
    return context.sink.nquads()


def read(context: Context) -> None:
    """Everything an XML feed says. Of RSS 1.0 what is beyond its own RDF: parts, typed dates, links and words."""
    syntax = context.document.kind
    root = tolerant_root(context, syntax)
    base = root.get(_BASE)
    if base:
        context.base = resolve(base, context.url) or context.url  # links are joined to it by concatenation
    name = local_name(root.tag)
    writer = FeedWriter(context, syntax)
    if name == "feed":
        _read_atom(root, writer)
    elif name == "entry":
        writer.entry(_entry(root, root.get(_LANG) or ""))
    else:
        _read_rss(root, writer)
    writer.close()
    if rhythm := _rhythm(root):
        context.facts.rhythms.append((context.url, rhythm))


def _rhythm(root: etree._Element) -> float:
    """Seconds between two changes of the feed, as it states: `sy:updatePeriod` with `sy:updateFrequency`, or the
    minutes of `ttl`, for which a copy may be kept; 0 = nothing is stated."""
    channel = next((child for child in root if local_name(child.tag) == "channel"), root)
    said: dict[str, str] = {}
    for child in channel:
        if isinstance(child.tag, str) and not len(child):
            said.setdefault(expanded(child.tag), text_of(child)[:20])
    period = said.get(f"{_SYNDICATION}updatePeriod", "").lower()
    if period in _PERIODS:
        return CHANGE_FREQUENCIES[period] / max(_number(said.get(f"{_SYNDICATION}updateFrequency", "")), 1)
    return 60.0 * _number(said.get("ttl", ""))


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def read_rdf(context: Context) -> None:
    """The statements of RSS 0.90, 1.0 and 1.1, which are RDF/XML; nothing for other feeds."""
    if not context.document.root.endswith("}RDF"):
        return
    found = rdf_files.read(context.body, kind="rdfxml", url=context.url, limit=context.settings.limits.quads_per_page)
    context.sink.pour(found.nquads)
    context.findings += found.findings


def local_name(tag: object) -> str:
    """Name of an element without its namespace or undeclared prefix; empty for comments and instructions."""
    if not isinstance(tag, str):
        return ""
    return tag.rpartition("}")[2].rpartition(":")[2]


def _read_atom(root: etree._Element, writer: FeedWriter) -> None:
    language = root.get(_LANG) or ""
    channel = FeedEntry(language, is_channel=True)
    entries = []
    for child in root:
        if local_name(child.tag) == "entry":
            entries.append(child)
        else:
            _take(channel, child)
    writer.channel(channel)
    for element in entries:
        writer.entry(_entry(element, element.get(_LANG) or language))


def _read_rss(root: etree._Element, writer: FeedWriter) -> None:
    """RSS 2.0 has its items in the channel, 0.90 and 1.0 next to it, and some feeds have them in both places."""
    channel = FeedEntry(root.get(_LANG) or "", is_channel=True)
    items = []
    for child in root:
        name = local_name(child.tag)
        if name == "item":
            items.append(child)
        elif name == "channel":
            channel.language = channel.language or child.get(_LANG) or ""
            for part in child:
                if part.tag == "item" or local_name(part.tag) == "item":
                    items.append(part)
                else:
                    _take(channel, part)
    writer.channel(channel)
    for element in items:
        writer.entry(_entry(element, element.get(_LANG) or channel.language))


def _entry(element: etree._Element, language: str) -> FeedEntry:
    entry = FeedEntry(language)
    entry.about = element.get(_ABOUT) or ""
    parts = _PARTS
    for child in element:
        tag = child.tag  # once: lxml makes a new string at each access
        part = parts.get(tag)
        if part is not None:
            part(entry, child, tag)
        else:
            _take(entry, child)
    return entry


def _take(entry: FeedEntry, element: etree._Element) -> None:
    """One child of an entry or channel: by its name if that is known, as a module's property if it is only text."""
    if not isinstance(element.tag, str):
        return  # a comment or an instruction
    tag = expanded(element.tag)
    namespace, _, name = tag[1:].rpartition("}") if tag[:1] == "{" else ("", "", tag)
    part = _PARTS.get(tag)
    if part is None and namespace in _CORE:
        part = _CORE_PARTS.get(name) or _CORE_PARTS.get(name.lower())
    if part is not None:
        part(entry, element, tag)
    elif namespace and namespace not in _CORE and not len(element):
        _module(entry, element, namespace, name)


def _module(entry: FeedEntry, element: etree._Element, namespace: str, name: str) -> None:
    text = (element.text or "").strip()
    predicate = iri(namespace + name if namespace[-1] in "#/" else f"{namespace}#{name}")
    if text and predicate and len(entry.extras) < _MAX_VALUES:
        entry.extras += ((predicate, text[:_MAX_MODULE_TEXT]),)


def _title(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    entry.title = entry.title or text_of(element)


def _summary(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    entry.summary = entry.summary or text_of(element)


def _content(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    source = element.get("src")
    if source and len(entry.links) < _MAX_VALUES:
        entry.links += (FeedLink(source, "embed"),)
    elif len(element):
        entry.content = "".join(etree.tostring(child, encoding="unicode", with_tail=False) for child in element)
    else:
        entry.content = (element.text or "").strip()
    if entry.content and not entry.summary and not entry.is_channel:
        entry.summary = text_of(element)


def _encoded(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    entry.content = entry.content or text_of(element)


def _link(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    """RSS writes the address as text, Atom as an attribute with a relation."""
    href = element.get("href")
    if href is None:
        entry.link = entry.link or text_of(element)
        return
    rel = (element.get("rel") or "alternate").lower()
    media_type = element.get("type") or ""
    if rel == "enclosure":
        _enclose(entry, href, media_type, element.get("length"))
    elif rel == "alternate" and not entry.link and media_type in ("", "text/html", "application/xhtml+xml"):
        entry.link = href
    elif len(entry.links) < _MAX_VALUES:
        kind: LinkKind | None = "typed" if rel == "self" else kind_of(rel.split(), media_type)
        entry.links += (FeedLink(href, kind or "typed", rel, element.get("title") or ""),)


def _guid(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    entry.id = text_of(element)
    permanent = (element.get("isPermaLink") or "true").lower() != "false"
    if permanent and not entry.link and entry.id.startswith(("http://", "https://")):
        entry.link = entry.id


def _id(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    entry.id = text_of(element)


def _published(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    entry.published = entry.published or text_of(element)


def _updated(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    entry.updated = entry.updated or text_of(element)


def _author(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    """Text in RSS; a person with a name, or at least an address, in Atom."""
    name = _person(element) if len(element) else (element.text or "").strip()
    if name and len(entry.authors) < _MAX_VALUES and name not in entry.authors:
        entry.authors += (name,)


def _person(element: etree._Element) -> str:
    name = address = ""
    for child in element:
        part = local_name(child.tag)
        if part == "name":
            name = name or text_of(child)
        elif part in ("email", "uri"):
            address = address or text_of(child)
    return name or address


def _category(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    word = text_of(element) or element.get("label") or element.get("term") or element.get("text")
    if word and len(entry.subjects) < _MAX_VALUES and word not in entry.subjects:
        entry.subjects += (word,)


def _language(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    entry.language = entry.language or text_of(element)


def _rights(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    entry.rights = entry.rights or text_of(element)


def _enclosure(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    _enclose(entry, element.get("url"), element.get("type"), element.get("length"))


def _enclose(entry: FeedEntry, url: str | None, media_type: str | None, length: str | None) -> None:
    if url and len(entry.enclosures) < _MAX_VALUES:
        entry.enclosures += (Enclosure(url, media_type or "", length or ""),)


def _comments(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    if len(entry.links) < _MAX_VALUES:
        entry.links += (FeedLink(text_of(element), "typed", "replies"),)


def _image(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    """`<image><url>` of RSS, `<logo>` and `<icon>` of Atom, `<itunes:image href>`, `<media:thumbnail url>`."""
    address = element.get("href") or element.get("url") or ""
    if not address and len(element):
        address = next((text_of(child) for child in element if local_name(child.tag) == "url"), "")
    elif not address:
        address = text_of(element)
    if address and len(entry.images) < _MAX_VALUES and address not in entry.images:
        entry.images += (address,)


def _media(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    url, media_type = element.get("url"), element.get("type") or ""
    if url and (element.get("medium") == "image" or media_type.startswith("image/")):
        _image(entry, element, tag)
    else:
        _enclose(entry, url, media_type, element.get("fileSize"))


def _media_group(entry: FeedEntry, element: etree._Element, tag: str) -> None:
    for child in element.iterchildren(f"{{{_MEDIA}}}content"):
        _media(entry, child, tag)
    for child in element.iterchildren(f"{{{_MEDIA}}}thumbnail"):
        _image(entry, child, tag)


_CORE_PARTS: dict[str, _Part] = {
    "title": _title, "link": _link, "description": _summary, "tagline": _summary, "subtitle": _summary,
    "summary": _summary, "content": _content, "guid": _guid, "id": _id, "pubdate": _published, "published": _published,
    "issued": _published, "created": _published, "updated": _updated, "modified": _updated, "lastbuilddate": _updated,
    "author": _author, "managingeditor": _author, "contributor": _author, "category": _category,
    "language": _language, "copyright": _rights, "rights": _rights, "enclosure": _enclosure, "comments": _comments,
    "image": _image, "logo": _image, "icon": _image,
}  # fmt: skip
_PARTS: dict[str, _Part] = {
    **{f"{{{ATOM}}}{name}": part for name, part in _CORE_PARTS.items()},
    **_CORE_PARTS,
    "pubDate": _published,
    "lastBuildDate": _updated,
    f"{{{DC}}}title": _title,
    f"{{{DC}}}date": _published,
    f"{{{DC}}}creator": _author,
    f"{{{DC}}}subject": _category,
    f"{{{DC}}}language": _language,
    f"{{{DC}}}rights": _rights,
    f"{{{DC}}}description": _summary,
    f"{{{DCTERMS}}}modified": _updated,
    f"{{{DCTERMS}}}created": _published,
    f"{{{CONTENT}}}encoded": _encoded,
    f"{{{_MEDIA}}}content": _media,
    f"{{{_MEDIA}}}group": _media_group,
    f"{{{_MEDIA}}}thumbnail": _image,
    f"{{{_ITUNES}}}image": _image,
}


_OPML_ATTRIBUTES: tuple[tuple[str, LinkKind], ...] = (("xmlUrl", "feed"), ("htmlUrl", "plain"), ("url", "plain"))


def read_opml(context: Context) -> None:
    """Every outline: what it is called, and the feed, page or file it names."""
    root = tolerant_root(context, "opml")
    bundled("opml").state(context, root, syntax="opml")
    context.facts.title = context.facts.title or (root.findtext("head/title") or "").strip()
    resolver = ReferenceResolver(context.base)
    titles = []
    for outline in root.iter("outline"):
        title = (outline.get("title") or outline.get("text") or "").strip()
        titles.append(title)
        for name, kind in _OPML_ATTRIBUTES:
            reference = outline.get(name)
            target = resolver(reference.strip()) if reference else None
            if target:
                context.links.append(
                    Link(target, context.url, kind, title[:200], "alternate" if kind == "feed" else "")
                )
    context.facts.text = "\n".join(filter(None, titles))[: context.settings.limits.text_chars]
