"""HTML pages: what links, facts and prose look like on them.

Rendering is plain string joining: 0.4 ms for a page of 40 KB once the names it links to are known, 1 ms at first.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from html import escape
from typing import NamedTuple

from quadloom_lab.fakeweb.content.markup import (
    broken_jsonld,
    dublin_core,
    jsonld_script,
    microdata,
    microformat,
    opengraph,
    plain_facts,
    rdfa,
)
from quadloom_lab.fakeweb.sites.chance import number, pick, stream
from quadloom_lab.fakeweb.sites.hosts import HostPlan
from quadloom_lab.fakeweb.sites.layout import Layout, PageRef
from quadloom_lab.fakeweb.sites.links import LinkPlan, Role, links_of
from quadloom_lab.fakeweb.sites.prose import paragraphs, pool
from quadloom_lab.fakeweb.sites.things import Fact, Iri, Thing, count, words_of
from quadloom_lab.fakeweb.sites.traits import PageTraits, traits_of, version

_STYLE = "".join(
    f".c{k}{{margin:{k % 7}px;padding:{k % 5}px;color:#{k * 4099 % 4096:03x};border:{k % 3}px solid}}\n"
    for k in range(90)
)
_SCRIPT = "".join(f"window.q{k}=function(a,b){{return (a*{k}+b)%{k + 7}}};\n" for k in range(60))


class RenderedPage(NamedTuple):
    """A page as text. `items` counts the typed things that a reader of its syntaxes finds, per syntax."""

    text: str
    title: str = ""
    items: tuple[tuple[str, int], ...] = ()


class PageParts(NamedTuple):
    """What differs between pages inside the common frame."""

    title: str
    links: list[LinkPlan]
    head: str = ""
    main: str = ""
    prose: Iterable[str] = ()
    banner: str = ""


def item_page(layout: Layout, ref: PageRef, revision: int) -> RenderedPage:
    host = layout.hosts[ref.host]
    traits = traits_of(layout, ref)
    current = version(layout, ref, revision)
    thing = layout.thing(ref, current)
    url = layout.url(ref)
    head, main, items = _embedded(layout, host, ref, traits, thing)
    head += f'<link rel="canonical" href="{escape(url)}">\n'
    if traits.robots and not traits.robots_header:
        head += f'<meta name="robots" content="{traits.robots}">\n'
    main += f'<img src="/photos/{ref.number}.png" alt="{escape(thing.text("name"))}" width="16" height="16">\n'
    parts = PageParts(
        title=thing.text("name"),
        links=links_of(layout, ref, revision),
        head=head,
        main=main,
        prose=_prose(layout, host, ref, current, thing),
        banner=f"Offer of day {revision}: {pick(_OFFERS, ref.number, revision)}" if traits.banner else "",
    )
    text = frame(layout, host, parts)
    return RenderedPage(_break(text) if traits.broken_markup else text, parts.title, items)


_OFFERS = ("free delivery", "ten per cent off", "two for one", "a surprise in every parcel", "gift wrapping")


def _embedded(
    layout: Layout, host: HostPlan, ref: PageRef, traits: PageTraits, thing: Thing
) -> tuple[str, str, tuple[tuple[str, int], ...]]:
    """Head elements, main part and the number of things by syntax."""
    url = layout.url(ref)
    head = main = ""
    items: list[tuple[str, int]] = []
    if traits.opengraph:
        head += opengraph(thing, url, host.title, f"{layout.bases[ref.host]}/photos/{ref.number}.png")
        items.append(("opengraph", 1))
    if traits.jsonld:
        things = [thing, breadcrumbs(layout, ref, thing)] if traits.graph else [thing]
        script = jsonld_script(things)
        if traits.broken_jsonld:
            head += broken_jsonld(script, ref.number)
        else:
            head += script
            items.append(("jsonld", sum(map(count, things))))
    if traits.microdata:
        main += microdata(thing)
        items.append(("microdata", count(thing)))
    if traits.rdfa:
        main += rdfa(thing) + (dublin_core(thing, url) if ref.number % 2 else "")
        items.append(("rdfa", count(thing)))
    if not (traits.microdata or traits.rdfa):
        main += plain_facts(thing)
    if traits.microformats:
        main += microformat(thing, url)
        items.append(("microformats", 1))
    return head, main, tuple(items)


def breadcrumbs(layout: Layout, ref: PageRef, thing: Thing) -> Thing:
    host = layout.hosts[ref.host]
    trail = (
        (layout.bases[ref.host] + "/", host.title),
        (layout.url(PageRef(ref.host, "listing")), host.subject.capitalize()),
        (layout.url(ref), thing.text("name")),
    )
    steps = tuple(
        Fact(
            "itemListElement",
            Thing("ListItem", "", (Fact("position", place), Fact("name", name), Fact("item", Iri(url)))),
        )
        for place, (url, name) in enumerate(trail, 1)
    )
    return Thing("BreadcrumbList", "", steps)


def _prose(layout: Layout, host: HostPlan, ref: PageRef, current: int, thing: Thing) -> list[str]:
    spec = layout.spec
    rng = stream(spec.seed, "prose", ref.host, ref.number)
    size = int(spec.scale * min(rng.lognormvariate(9.04, 1.2), 400_000))
    found = [_opening(thing)]
    found += paragraphs(spec.seed, host.language, host.subject, size, rng)
    if current:
        sentence = pick(pool(spec.seed, host.language, host.subject), ref.host, ref.number, current)
        found.insert(1, f"Update {current}: {sentence}")
    return found


def _opening(thing: Thing) -> str:
    """One English sentence of the thing's own facts, so that a search for them finds the page."""
    pattern = _OPENINGS.get(thing.type, "{name} is described on this page.")
    facts = {fact.name: words_of(fact.value) for fact in thing.facts}
    facts |= {f"{name}_day": value[:10] for name, value in facts.items() if name.endswith("Date")}
    return pattern.format_map(facts)


_OPENINGS = {
    "Book": "{name} is a {genre} book by {author}, first published on {datePublished}.",
    "Event": "{name} takes place on {startDate_day} at {location} with {performer}.",
    "Recipe": "{name} is a recipe by {author}, enough for {recipeYield}.",
    "Person": "{name}, {jobTitle}, was born in {birthPlace} on {birthDate}.",
    "Dataset": "{name} was collected by {creator} and covers {temporalCoverage}.",
    "NewsArticle": "{name}. By {author}, {datePublished}.",
    "Product": "{name} comes in {color} and has the number {sku}.",
    "Museum": "{name} is open {openingHours}. Ask for {employee}.",
}


def plain_page(layout: Layout, ref: PageRef, revision: int) -> RenderedPage:
    """Home, listings, about, contact, corners, calendar, registry: all pages but items."""
    host = layout.hosts[ref.host]
    title, head, main, items = _simple(layout, host, ref)
    rng = stream(layout.spec.seed, "prose", ref.host, ref.area, ref.number)
    prose = paragraphs(layout.spec.seed, host.language, host.subject, int(1500 * layout.spec.scale), rng)
    text = frame(layout, host, PageParts(title, links_of(layout, ref, revision), head, main, prose))
    return RenderedPage(text, title, items)


def _simple(layout: Layout, host: HostPlan, ref: PageRef) -> tuple[str, str, str, tuple[tuple[str, int], ...]]:
    base = layout.bases[ref.host]
    if ref.area == "home":
        script = jsonld_script([website(layout, host)])
        return host.title, script, "", (("jsonld", count(website(layout, host))),)
    if ref.area in ("about", "contact"):
        owner = Thing("Organization", f"{base}/about#us", (Fact("name", host.title), Fact("url", Iri(base + "/"))))
        card = (
            f'<address class="h-card"><a class="p-name u-url" href="{base}/">{host.title}</a> '
            f'<a class="u-email" href="mailto:office@{host.domain}">office@{host.domain}</a></address>\n'
        )
        return (
            f"{ref.area.capitalize()}: {host.title}",
            "",
            microdata(owner) + card,
            (("microdata", 1), ("microformats", 1)),
        )
    if ref.area == "page":
        thing = layout.thing(ref, 0)
        return thing.text("name"), "", rdfa(thing), (("rdfa", count(thing)),)
    if ref.area == "listing":
        return f"{host.subject.capitalize()}, page {ref.number + 1}: {host.title}", "", "", ()
    return f"{ref.area.capitalize()} {ref.number or ref.extra}: {host.title}", "", "", ()


def website(layout: Layout, host: HostPlan) -> Thing:
    base = layout.bases[host.index]
    facts = [Fact("name", host.title), Fact("url", Iri(base + "/"))]
    if host.search:
        target = Thing("EntryPoint", "", (Fact("urlTemplate", f"{base}/search?q={{search_term_string}}"),))
        action = (Fact("target", target), Fact("query-input", "required name=search_term_string"))
        facts.append(Fact("potentialAction", Thing("SearchAction", "", action)))
    return Thing("WebSite", f"{base}/#site", tuple(facts))


def frame(layout: Layout, host: HostPlan, parts: PageParts) -> str:
    """The whole document around the parts."""
    base = layout.bases[host.index]
    local = base if host.index % 2 == 0 else "\0"  # even hosts write paths, odd ones absolute URLs
    title = escape(parts.title)
    scale = min(1.0, layout.spec.scale)
    feed = '<link rel="alternate" type="application/rss+xml" href="/feed.xml" title="Latest">\n'
    search = '<link rel="search" type="application/opensearchdescription+xml" href="/opensearch.xml" title="Search">\n'
    out = [
        f'<!DOCTYPE html>\n<html lang="{host.language}">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n',
        f'<meta name="description" content="{title}: {escape(host.title)}">\n',
        '<link rel="stylesheet" href="/style.css">\n',
        "" if host.registry else feed,
        search if host.search else "",
        parts.head,
        f"<style>{_STYLE[: int(len(_STYLE) * scale)]}</style>\n</head>\n<body>\n<header>{escape(host.title)}\n",
        _list("nav", ("nav", "feed", "calendar"), parts.links, local),
        _SEARCH_FORM if host.search else "",
        "</header>\n",
        _list("breadcrumbs", ("crumb",), parts.links, local),
        f"<main>\n<h1>{title}</h1>\n",
        parts.main,
        "".join([f"<p>{escape(text, quote=False)}</p>\n" for text in parts.prose]),
        _list(
            "items", ("item", "data", "special", "corner", "sponsored", "search", "facet", "paging"), parts.links, local
        ),
        "</main>\n<aside>\n",
        f'<div class="advert">{escape(parts.banner)}</div>\n' if parts.banner else "",
        _list("elsewhere", ("elsewhere", "external"), parts.links, local),
        _list("related", ("related", "session"), parts.links, local),
        f"</aside>\n<footer><p>{escape(host.title)} and friends</p></footer>\n",
        f"<script>{_SCRIPT[: int(len(_SCRIPT) * scale)]}</script>\n</body>\n</html>\n",
    ]
    return "".join(out)


_SEARCH_FORM = (
    '<form action="/search" method="get" role="search"><label>Search <input type="search" name="q"></label>'
    "<button>Find</button></form>\n"
)


def _list(name: str, roles: tuple[Role, ...], links: list[LinkPlan], local: str) -> str:
    rows = [_row(link, local) for link in links if link.role in roles]
    return f'<nav class="{name}"><ul>\n{"".join(rows)}</ul></nav>\n' if rows else ""


@lru_cache(maxsize=65536)
def _row(link: LinkPlan, local: str) -> str:
    """Cached, because about a hundred pages link to each page and escaping is the most expensive part of rendering."""
    rel = f' rel="{link.rel}"' if link.rel else ""
    href = escape(link.url.removeprefix(local))
    return f'<li class="{link.role}"><a href="{href}"{rel}>{escape(link.text, quote=False)}</a></li>\n'


def _break(text: str) -> str:
    """Markup as found in the wild: unclosed and misnested elements, unquoted values, a stray end tag."""
    text = text.replace("</li>", "").replace("<main>", "<main><b><i></b>", 1).replace("</h1>", "</h2>", 1)
    return text.replace('<nav class="related">', "<nav class=related></table><p><div>", 1).replace("</body>", "", 1)


def search_page(
    layout: Layout, host: HostPlan, query: str, hits: list[LinkPlan], total: int, page: int
) -> RenderedPage:
    """Results of the site's own search: ten per page, with a total and a link to the next ten."""
    rows = "".join(f'<li class="result"><a href="{escape(hit.url)}">{escape(hit.text)}</a></li>\n' for hit in hits)
    shown = escape(query)
    main = f'<p class="count">{total} results for <em>{shown}</em></p>\n<ol class="results">\n{rows}</ol>\n'
    if total > (page + 1) * 10:
        main += f'<a rel="next" href="/search?q={escape(query.replace(" ", "+"))}&amp;page={page + 1}">Next</a>\n'
    title = f"Search: {query}"
    links = links_of(layout, PageRef(host.index, "search"), 0)
    return RenderedPage(frame(layout, host, PageParts(title, links, "", main)), title)


def photo_value(layout: Layout, ref: PageRef) -> int:
    return number(layout.spec.seed, "photo", ref.host, ref.number)
