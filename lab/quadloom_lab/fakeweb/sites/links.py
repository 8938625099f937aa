"""Which page links to which: the graph of the web, without rendering a byte.

The renderer prints exactly these links and the oracle follows exactly these links; a test compares both with what an
independent crawler finds in the bytes. Everything that must be found is linked from home or listing pages, which have
no defects, so an odd item page never decides whether another page is reachable.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

from quadloom_lab.fakeweb.sites.chance import number, stream
from quadloom_lab.fakeweb.sites.layout import PER_LISTING, Layout, PageRef

Role = Literal[
    "nav", "crumb", "paging", "item", "related", "elsewhere", "external", "special", "corner", "feed", "data",
    "session", "facet", "calendar", "sponsored", "search", "photo",
]  # fmt: skip

# Links that a crawler may follow but need not: traps, and targets that are not pages.
OPTIONAL: frozenset[Role] = frozenset(("session", "facet", "calendar", "search", "photo"))


class LinkPlan(NamedTuple):
    url: str
    text: str
    role: Role
    rel: str = ""

    @property
    def nofollow(self) -> bool:
        return "nofollow" in self.rel


def links_of(layout: Layout, ref: PageRef, revision: int) -> list[LinkPlan]:
    """Every link of an HTML page, in the order of the page."""
    match ref.area:
        case "home":
            return _nav(layout, ref) + _home(layout, ref, revision)
        case "listing":
            return _nav(layout, ref) + _listing(layout, ref, revision)
        case "item":
            return _nav(layout, ref) + _item(layout, ref, revision)
        case "calendar":
            return _nav(layout, ref) + _calendar(layout, ref)
        case "page":
            return _nav(layout, ref) + _person(layout, ref)
        case "facet":
            return _nav(layout, ref) + _members(layout, ref, range(min(PER_LISTING, layout.hosts[ref.host].size)))
        case _:
            return _nav(layout, ref)


def _nav(layout: Layout, ref: PageRef) -> list[LinkPlan]:
    host = layout.hosts[ref.host]
    base = layout.bases[ref.host]
    found = [
        LinkPlan(base + "/", "Home", "nav"),
        LinkPlan(layout.url(PageRef(ref.host, "listing")), host.subject.capitalize(), "nav"),
    ]
    if not host.registry:
        found += [
            LinkPlan(base + "/about", "About us", "nav"),
            LinkPlan(base + "/contact", "Contact", "nav"),
            LinkPlan(base + "/feed.xml", "Latest", "feed"),
        ]
    if layout.calendar(host):
        found.append(LinkPlan(layout.url(PageRef(ref.host, "calendar", 2026 * 12)), "Calendar", "calendar"))
    return found


def _home(layout: Layout, ref: PageRef, revision: int) -> list[LinkPlan]:
    host = layout.hosts[ref.host]
    total = len(layout.hosts)
    neighbours = {(ref.host + 1) % total, total - 1}  # the ring and the registry make every host reachable
    neighbours |= {number(layout.spec.seed, "neighbour", ref.host, k) % total for k in range(4)}
    found = [
        LinkPlan(layout.bases[other] + "/", layout.hosts[other].title, "external")
        for other in sorted(neighbours - {ref.host})
    ]
    size = layout.size(host, revision)
    found += _members(layout, ref, range(max(0, size - 12), size))
    if host.registry:
        return found
    found += [
        LinkPlan(layout.url(PageRef(ref.host, "private", k)), f"Staff page {k}", "corner")
        for k in range(layout.corners)
    ]
    found += [
        LinkPlan(layout.url(PageRef(ref.host, "open", k)), f"House rules {k}", "corner") for k in range(layout.corners)
    ]
    found += [
        LinkPlan(layout.url(PageRef(ref.host, "sponsored", k)), f"Our sponsor {k}", "sponsored", "nofollow sponsored")
        for k in range(layout.corners)
    ]
    if host.search:
        found.append(LinkPlan(layout.url(PageRef(ref.host, "search", 0, "q=harbour")), "Popular: harbour", "search"))
    return found


def _listing(layout: Layout, ref: PageRef, revision: int) -> list[LinkPlan]:
    host = layout.hosts[ref.host]
    start = ref.number * PER_LISTING
    found = _members(layout, ref, range(start, min(start + PER_LISTING, layout.size(host, revision))))
    found += _paging(layout, ref, layout.listings(host, revision))
    bundles = layout.listings(host, 0)
    found += [
        LinkPlan(layout.url(PageRef(ref.host, "special", position)), f"From the archive, no. {position}", "special")
        for position in range(ref.number, layout.specials(host), bundles)
    ]
    if ref.number == 0 and layout.spec.traps and not host.registry:
        queries = [f"sort={sort}&view={view}" for sort in ("name", "date", "price") for view in ("grid", "list")]
        found += [LinkPlan(layout.url(PageRef(ref.host, "facet", 0, query)), query, "facet") for query in queries]
    return found


def _paging(layout: Layout, ref: PageRef, count: int) -> list[LinkPlan]:
    """Neighbours and leaps of 10 and 100, so that depth grows with the logarithm of the listing's length."""
    here = ref.number
    wanted = {0, count - 1} | {here + step for step in (-100, -10, -2, -1, 1, 2, 10, 100)}
    found = []
    for page in sorted(wanted):
        if 0 <= page < count and page != here:
            rel = "next" if page == here + 1 else "prev" if page == here - 1 else ""
            found.append(LinkPlan(layout.url(PageRef(ref.host, "listing", page)), f"Page {page + 1}", "paging", rel))
    return found


def _members(layout: Layout, ref: PageRef, items: range) -> list[LinkPlan]:
    host = layout.hosts[ref.host]
    if host.registry:
        return [LinkPlan(layout.url(PageRef(ref.host, "id", item)), layout.name(host, item), "item") for item in items]
    return [_member(layout, ref.host, item, "item") for item in items]


@lru_cache(maxsize=65536)
def _member(layout: Layout, host: int, item: int, role: Role) -> LinkPlan:
    path = layout.item_path(host, item)
    form = layout.form(host, item)
    text = layout.name(layout.hosts[host], item)
    return LinkPlan(layout.bases[host] + path, text if form == "html" else f"{text} ({form})", role)


def _item(layout: Layout, ref: PageRef, revision: int) -> list[LinkPlan]:
    host = layout.hosts[ref.host]
    spec = layout.spec
    rng = stream(spec.seed, "links", ref.host, ref.number)
    found = [
        LinkPlan(layout.bases[ref.host] + "/", host.title, "crumb"),
        LinkPlan(
            layout.url(PageRef(ref.host, "listing", ref.number // PER_LISTING)), host.subject.capitalize(), "crumb"
        ),
    ]
    for step, rel in ((-1, "prev"), (1, "next")):
        if 0 <= ref.number + step < host.size:
            found.append(_member(layout, ref.host, ref.number + step, "related")._replace(rel=rel))
    found += _elsewhere(layout, ref)
    wanted = max(4, int(spec.links * rng.lognormvariate(-0.06, 0.35)) - len(found) - 5)
    outside = max(1, wanted // 8)
    found += [_member(layout, ref.host, int(rng.random() * host.size), "related") for _ in range(wanted - outside)]
    found += [_outside(layout, rng.getrandbits(32)) for _ in range(outside)]
    if host.sessions:
        found.append(LinkPlan(f"{layout.url(ref)}?PHPSESSID={rng.getrandbits(64):016x}", "Keep this page", "session"))
    return found


def _elsewhere(layout: Layout, ref: PageRef) -> list[LinkPlan]:
    """Other sites about the same thing."""
    host = layout.hosts[ref.host]
    thing = layout.thing_index(host, ref.number)
    others = [other for other in layout.describers(host.subject, thing) if other.host != ref.host]
    return [
        LinkPlan(layout.url(other), f"{layout.name(host, ref.number)} at {layout.hosts[other.host].title}", "elsewhere")
        for other in others[:3]
    ]


def _outside(layout: Layout, value: int) -> LinkPlan:
    """A page on any host but the registry; one in six is only recommended with rel=nofollow."""
    host = layout.hosts[value % (len(layout.hosts) - 1)]
    link = _member(layout, host.index, value // 64 % host.size, "external")
    return link._replace(rel="nofollow") if value % 6 == 0 else link


def _calendar(layout: Layout, ref: PageRef) -> list[LinkPlan]:
    """Previous and next month, for ever: a crawler trap."""
    months = (ref.number - 1, ref.number + 1, ref.number + 12)
    return [
        LinkPlan(layout.url(PageRef(ref.host, "calendar", month)), f"{month // 12}, month {month % 12 + 1}", "calendar")
        for month in months
        if 1000 * 12 <= month < 10_000 * 12
    ]


def _person(layout: Layout, ref: PageRef) -> list[LinkPlan]:
    name = layout.name(layout.hosts[ref.host], ref.number)
    ending = ("ttl", "rdf", "jsonld", "nt")[ref.number % 4]
    found = [
        LinkPlan(layout.url(PageRef(ref.host, "data", ref.number, ending)), f"{name} as data", "data", "alternate")
    ]
    others = [other for other in layout.describers("people", ref.number) if other.host != ref.host]
    found += [
        LinkPlan(layout.url(other), f"{name} at {layout.hosts[other.host].title}", "elsewhere") for other in others[:5]
    ]
    return found
