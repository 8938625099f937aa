"""The bytes of each page: which renderer makes them, in which charset, with which Content-Type."""

from __future__ import annotations

from typing import NamedTuple

from quadloom_lab.fakeweb.content import feeds, pages
from quadloom_lab.fakeweb.content.feeds import DAY, EPOCH, FeedItem, FeedPlan
from quadloom_lab.fakeweb.content.pages import RenderedPage
from quadloom_lab.fakeweb.content.rdf_documents import MEDIA_TYPES, RdfFormat, document
from quadloom_lab.fakeweb.content.site_files import SiteSearch, opensearch, robots_text, sitemap_body, sitemap_refs
from quadloom_lab.fakeweb.sites.chance import number, pick, share
from quadloom_lab.fakeweb.sites.hosts import HostPlan
from quadloom_lab.fakeweb.sites.layout import Form, Layout, PageRef
from quadloom_lab.fakeweb.sites.prose import pool
from quadloom_lab.fakeweb.sites.things import count, statements
from quadloom_lab.fakeweb.sites.traits import PageTraits, changed_at, traits_of, version

RDF_FORMS: tuple[RdfFormat, ...] = ("ttl", "rdf", "nt", "trig", "nq", "jsonld")
FEED_ENTRIES = 15

_TYPES: dict[Form, str] = {
    "rss": "application/rss+xml; charset=utf-8", "atom": "application/atom+xml; charset=utf-8",
    "rss1": "application/rdf+xml", "jsonfeed": "application/feed+json", "xml": "application/xml",
    "svg": "image/svg+xml", "opml": "text/x-opml", "xsd": "application/xml", "png": "image/png",
    "pdf": "application/pdf",
}  # fmt: skip
# Wrong Content-Types as real servers send them: the content has to win.
_WRONG_TYPES: dict[str, str] = {
    "html": "text/plain", "rss": "text/html", "atom": "text/xml", "jsonfeed": "application/json",
    "ttl": "text/plain", "rdf": "text/xml", "nt": "text/plain", "jsonld": "application/json", "png": "text/plain",
}  # fmt: skip

_KINDS: dict[str, str] = {
    "rss": "rss", "atom": "atom", "rss1": "rss", "jsonfeed": "jsonfeed", "ttl": "turtle", "rdf": "rdfxml",
    "nt": "ntriples", "trig": "trig", "nq": "nquads", "jsonld": "jsonld", "xml": "xml", "svg": "svg", "opml": "opml",
    "xsd": "xsd", "png": "image", "pdf": "pdf", "html": "html",
}  # fmt: skip


class PageBody(NamedTuple):
    """A page's bytes and what a reader should find in them: `kind` is a word of `quadloom.model.document.Kind`."""

    content: bytes
    content_type: str
    kind: str
    title: str = ""
    items: tuple[tuple[str, int], ...] = ()


def body_of(layout: Layout, search: SiteSearch, ref: PageRef, revision: int) -> PageBody | None:
    """The page at `ref`, or None for files that this host does not have."""
    host = layout.hosts[ref.host]
    match ref.area:
        case "item":
            return _item(layout, ref, revision)
        case "robots":
            text = robots_text(layout, host)
            return None if text is None else PageBody(text.encode(), "text/plain; charset=utf-8", "text")
        case "sitemap":
            return _sitemap(layout, host, ref, revision)
        case "style":
            return PageBody(b"body{font-family:serif;max-width:60em;margin:auto}\n", "text/css", "css")
        case "photo":
            return PageBody(feeds.png(pages.photo_value(layout, ref)), "image/png", "image")
        case "opensearch":
            text = opensearch(layout, host)
            return PageBody(text.encode(), "application/opensearchdescription+xml", "opensearch")
        case "feed":
            return _feed("rss", layout, ref, latest(layout, ref, revision))
        case "search" | "searchfeed":
            return _search(layout, search, ref)
        case "data":
            return _registered(layout, ref, revision)
        case _:
            return _html(pages.plain_page(layout, ref, revision))


def redirect_target(layout: Layout, ref: PageRef) -> str:
    """Where a special page redirects to, or the empty string."""
    host = layout.hosts[ref.host]
    item = layout.url(PageRef(ref.host, "item", number(layout.spec.seed, "target", ref.host, ref.number) % host.size))
    match layout.special(host, ref.number):
        case "moved" | "found" | "other" | "temporary" | "permanent":
            return item
        case "away":
            other = layout.hosts[(ref.host + 1) % (len(layout.hosts) - 1)]
            return layout.url(PageRef(other.index, "item", ref.number % other.size))
        case "chain":
            steps = {"": "2", "2": "1"}
            return layout.url(ref._replace(extra=steps[ref.extra])) if ref.extra in steps else item
        case "loop":
            return layout.url(ref._replace(extra="" if ref.extra else "b"))
        case _:
            return ""


def _html(page: RenderedPage) -> PageBody:
    return PageBody(page.text.encode(), "text/html; charset=utf-8", "html", page.title, page.items)


def _item(layout: Layout, ref: PageRef, revision: int) -> PageBody:
    form = layout.form(ref.host, ref.number)
    body = _form_body(layout, ref, form, revision)
    odd = layout.spec.faults and form != "html" and share(layout.spec.seed, "label", ref.host, ref.number) < 0.06
    return body._replace(content_type=_WRONG_TYPES[form]) if odd and form in _WRONG_TYPES else body


def _form_body(layout: Layout, ref: PageRef, form: Form, revision: int) -> PageBody:
    title = layout.name(layout.hosts[ref.host], ref.number)
    match form:
        case "html":
            return _encoded(pages.item_page(layout, ref, revision), traits_of(layout, ref))
        case "rss" | "atom" | "rss1" | "jsonfeed" | "opml" | "xml":
            return _feed(form, layout, ref, neighbours(layout, ref, revision))
        case "ttl" | "rdf" | "nt" | "trig" | "nq" | "jsonld":
            return _rdf(layout, ref, form, revision)
        case "svg":
            text = feeds.svg(title, number(layout.spec.seed, "bars", ref.host, ref.number))
            return PageBody(text.encode(), _TYPES[form], "svg", title)
        case "xsd":
            return PageBody(feeds.xsd(title).encode(), _TYPES[form], "xsd", title)
        case "png":
            return PageBody(feeds.png(pages.photo_value(layout, ref)), _TYPES[form], "image")
        case "pdf":
            return PageBody(feeds.pdf(title), _TYPES[form], "pdf", title)


def _encoded(page: RenderedPage, traits: PageTraits) -> PageBody:
    """The page in its charset: labelled in the header, in a meta element, by a byte order mark, or falsely."""
    text, label = page.text, traits.label
    content_type = "text/html; charset=utf-8"
    if label in ("header", "meta"):
        text = text.replace(
            '<meta charset="utf-8">', f'<meta charset="{traits.charset}">' if label == "meta" else "", 1
        )
        content_type = "text/html" if label == "meta" else f"text/html; charset={traits.charset}"
    elif label == "bom":
        text = "\ufeff" + text.replace('<meta charset="utf-8">', "", 1)
        content_type = "text/html"
    elif label == "lie":
        content_type = "text/html; charset=iso-8859-1"
    codec = "utf-16-le" if label == "bom" else traits.charset
    if traits.wrong_type:
        content_type = _WRONG_TYPES["html"]
    return PageBody(text.encode(codec, "xmlcharrefreplace"), content_type, "html", page.title, page.items)


def neighbours(layout: Layout, ref: PageRef, revision: int) -> FeedPlan:
    """A feed about the pages that follow this one on its host."""
    host = layout.hosts[ref.host]
    items = range(ref.number + 1, min(ref.number + 1 + FEED_ENTRIES, host.size))
    as_of = changed_at(layout, ref, revision)  # the feed itself changes at its own intervals, as its validators say
    return _channel(layout, host, ref, list(items) or [0], as_of)


def latest(layout: Layout, ref: PageRef, revision: int) -> FeedPlan:
    host = layout.hosts[ref.host]
    size = layout.size(host, revision)
    return _channel(layout, host, ref, list(range(size - 1, max(-1, size - 1 - FEED_ENTRIES), -1)), revision)


def _channel(layout: Layout, host: HostPlan, ref: PageRef, items: list[int], revision: int) -> FeedPlan:
    sentences = pool(layout.spec.seed, host.language, host.subject)
    entries = []
    for item in items:
        page = PageRef(ref.host, "item", item)
        updated = EPOCH + DAY * changed_at(layout, page, revision)
        entries.append(FeedItem(layout.url(page), layout.name(host, item), pick(sentences, ref.host, item), updated))
    return FeedPlan(
        layout.url(ref), layout.bases[ref.host] + "/", f"{host.title}: latest {host.subject}", tuple(entries)
    )


def _feed(form: Form, layout: Layout, ref: PageRef, channel: FeedPlan) -> PageBody:
    writers = {
        "rss": feeds.rss,
        "atom": feeds.atom,
        "rss1": feeds.rss1,
        "jsonfeed": feeds.json_feed,
        "opml": feeds.opml,
        "xml": feeds.catalogue_xml,
    }
    text = writers[form](channel)
    return PageBody(text.encode(), _TYPES[form], _KINDS[form], channel.title, (("entries", len(channel.entries)),))


def _rdf(layout: Layout, ref: PageRef, form: RdfFormat, revision: int) -> PageBody:
    """The page's own thing and the things of the four pages after it."""
    host = layout.hosts[ref.host]
    chosen = sorted({(ref.number + step) % host.size for step in range(5)})
    things = [
        layout.thing(
            PageRef(ref.host, "item", item),
            version(layout, PageRef(ref.host, "item", item), changed_at(layout, ref, revision)),
        )
        for item in chosen
    ]
    text = document(form, things, layout.url(ref))
    items = (("nodes", sum(map(count, things))), ("triples", sum(map(statements, things))))
    return PageBody(text.encode(), MEDIA_TYPES[form], _KINDS[form], "", items)


def _registered(layout: Layout, ref: PageRef, revision: int) -> PageBody:
    """What the registry knows about a person, with the names that other sites use for it."""
    thing = layout.thing(PageRef(ref.host, "page", ref.number), 0)
    form = next(known for known in RDF_FORMS if known == ref.extra)
    text = document(form, [thing], layout.url(ref))
    items = (("nodes", count(thing)), ("triples", statements(thing)))
    return PageBody(text.encode(), MEDIA_TYPES[form], _KINDS[form], "", items)


def _sitemap(layout: Layout, host: HostPlan, ref: PageRef, revision: int) -> PageBody:
    refs = sitemap_refs(layout, host, ref.number, revision)
    is_index = bool(refs) and refs[0].area == "sitemap"
    packed = ref.number > 0 and ref.number % 2 == 0
    return PageBody(
        sitemap_body(layout, host, ref.number, revision),
        "application/gzip" if packed else "application/xml",
        "sitemapindex" if is_index else "sitemap",
        "",
        (("entries", len(refs)),),
    )


def _search(layout: Layout, search: SiteSearch, ref: PageRef) -> PageBody:
    host = layout.hosts[ref.host]
    hits = search.find(host, ref.extra)
    if ref.area == "search":
        return _html(pages.search_page(layout, host, hits.query, hits.links, hits.total, hits.page))
    entries = tuple(FeedItem(link.url, link.text, link.text, EPOCH) for link in hits.links)
    channel = FeedPlan(layout.url(ref), layout.bases[ref.host] + "/", f"{hits.query}: {host.title}", entries)
    return PageBody(
        feeds.rss(channel, hits.total).encode(), _TYPES["rss"], "rss", channel.title, (("entries", len(entries)),)
    )
