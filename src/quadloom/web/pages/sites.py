"""`/sites` and `/site/…`: the hosts of the frontier, and one site with its pages, vocabularies, links and findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from urllib.parse import quote

import msgspec
from msgspec.structs import asdict
from starlette.responses import Response

from quadloom.asking.audit.across_pages import audited_pages
from quadloom.asking.audit.report import FORMULA, PageFindings, SiteAudit, TrendPoint, audit
from quadloom.asking.report.site_links import SiteLinks, site_links
from quadloom.crawling.ingest.traps.filter import TrapCount, read_traps
from quadloom.model.outcome import PageRow
from quadloom.stores.protocols.frontier import HostRow
from quadloom.web.pages.entity import PICTURE_POLICY
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.view.charts import trend
from quadloom.web.view.pictures import Branch, Edge, Node, star, tree
from quadloom.web.view.terms import page_link

_MAX_HOSTS = 100_000
_MAX_PAGES = 2000
_MAX_LISTED = 100
_MAX_DRAWN = 60
_MAX_NEIGHBOURS = 12
_MAX_TRAPS = 20
_SORTS = {
    "pages": lambda row: -row.pages,
    "host": lambda row: row.host,
    "queued": lambda row: -row.queued,
    "delay": lambda row: -row.delay,
    "failed": lambda row: -row.failures,
    "next": lambda row: (not row.queued, row.next_at),
    "traps": lambda row: row.host,  # sorted by counts that are not in the row
}
SORTS = tuple(_SORTS)
TABS = ("overview", "pages", "links")


class HostView(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    site: str
    pages: int
    queued: int
    delay: float
    crawl_delay: float
    failures: int
    next_at: float
    blocked_until: float
    block_reason: str
    address: str
    robots_known: bool
    trapped: int  # URLs refused because they look like an endless series


class SiteView(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    hosts: list[HostView]
    pages: list[PageRow]
    kinds: dict[str, int]
    outcomes: dict[str, int]
    findings: dict[str, int]
    types: list[tuple[str, int]]
    vocabularies: list[tuple[str, int]]
    traps: list[TrapCount]
    links: SiteLinks
    audit: SiteAudit | None  # None without pages
    trend: tuple[TrendPoint, ...]


def sites_page(request: WebRequest) -> ViewResponse:
    sort = request.text("sort", "pages")
    if sort not in _SORTS:
        raise HttpError(400, f"cannot sort by {sort[:30]}", hint=f"sort by {', '.join(SORTS)}")
    limit = request.number("limit", 100, low=1, high=1000)
    traps = read_traps(request.warehouse.stores.catalog)
    counts = _trapped(traps)
    rows = request.warehouse.stores.frontier.hosts.rows(limit=_MAX_HOSTS)
    part = request.text("q").strip().lower()
    wanted = [row for row in rows if part in row.host] if part else rows
    shown = sorted(wanted, key=(lambda row: -counts[row.host]) if sort == "traps" else _SORTS[sort])[:limit]
    data: dict[str, object] = {
        "hosts": [_host(row, counts) for row in shown],
        "total": len(rows),
        "matching": len(wanted),
        "sort": sort,
        "traps": traps[:_MAX_TRAPS],
        "traps_total": len(traps),
    }
    return ViewResponse("sites.html", data, {"q": part, "now": request.site.clock()})


def site_page(request: WebRequest) -> ViewResponse:
    name, hosts = _hosts(request)
    pages = _pages(request, hosts)
    names = {row.host for row in hosts}
    traps = [trap for trap in read_traps(request.warehouse.stores.catalog) if trap.host in names]
    counts = _trapped(traps)
    facets = request.warehouse.search(site=name, limit=1, facets=True).facets
    found: Counter[str] = Counter()
    across = request.site.across_pages(request.warehouse.stores)
    report = audit(_counted(audited_pages(request.warehouse.stores, (name,), across.pages), found))
    site = SiteView(
        name=name,
        hosts=[_host(row, counts) for row in hosts],
        pages=sorted(pages, key=lambda page: (page.depth, page.href))[:_MAX_LISTED],
        kinds=dict(Counter(page.kind or "unknown" for page in pages).most_common()),
        outcomes=dict(Counter(str(page.outcome) for page in pages).most_common()),
        findings=dict(found.most_common(20)),
        types=facets.get("types", []),
        vocabularies=facets.get("vocabularies", []),
        traps=traps,
        links=_links(request, name, hosts, pages),
        audit=report.sites[0] if report.sites else None,
        trend=report.trend,
    )
    tab = request.text("tab", "overview")
    extra: dict[str, object] = {"now": request.site.clock(), "page_count": len(pages), "formula": FORMULA}
    extra["chart"] = trend(report.trend, f"Open errors and warnings of {name}")
    extra["left_out"] = across.left_out
    return ViewResponse("site.html", site, {**extra, "tab": tab if tab in TABS else "overview"})


def _counted(pages: Iterable[PageFindings], found: Counter[str]) -> Iterator[PageFindings]:
    """The pages themselves; `found` receives their codes."""
    for page in pages:
        found.update(finding.code for finding in page.findings)
        yield page


def picture(request: WebRequest) -> Response:
    """How the site's pages were found from each other, nearest to the seeds first."""
    name, hosts = _hosts(request)
    pages = sorted(_pages(request, hosts), key=lambda page: (page.depth, page.href))[:_MAX_DRAWN]
    places = {page.fingerprint: place for place, page in enumerate(pages)}
    first = min((page.depth for page in pages), default=0)
    branches = [Branch(_node(page), page.depth - first, places.get(page.via, -1)) for page in pages]
    drawn = tree(branches, title=f"Pages of {name} by distance from the seeds")
    return Response(drawn, media_type="image/svg+xml", headers={"Content-Security-Policy": PICTURE_POLICY})


def _node(page: PageRow) -> Node:
    label = page.title or page.href.partition("//")[2].partition("/")[2] or page.host
    return Node(label, page_link(page.href), page.href)


def neighbours(request: WebRequest) -> Response:
    """The site between those that link to it and those that it links to."""
    name, hosts = _hosts(request)
    links = _links(request, name, hosts, _pages(request, hosts))

    def edge(site: str, number: int, inward: bool) -> Edge:
        return Edge(f"{number} link{'s' if number > 1 else ''}", Node(site, f"/site/{quote(site)}", site), inward)

    edges = [
        *(edge(found.site, found.links, True) for found in links.inward[:_MAX_NEIGHBOURS]),
        *(edge(found.site, found.links, False) for found in links.outward[:_MAX_NEIGHBOURS]),
    ]
    drawn = star(Node(name, f"/site/{quote(name)}", name), edges, title=f"Sites linked with {name}")
    return Response(drawn, media_type="image/svg+xml", headers={"Content-Security-Policy": PICTURE_POLICY})


def _links(request: WebRequest, name: str, hosts: list[HostRow], pages: list[PageRow]) -> SiteLinks:
    whole = len(pages) >= sum(row.pages for row in hosts)
    return site_links(
        request.warehouse.stores.places.links, request.warehouse.stores.catalog, name, pages, all_pages=whole
    )


def _trapped(traps: list[TrapCount]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for trap in traps:
        counts[trap.host] += trap.count
    return counts


def _hosts(request: WebRequest) -> tuple[str, list[HostRow]]:
    name = request.path("name")
    hosts = [
        row for row in request.warehouse.stores.frontier.hosts.rows(limit=_MAX_HOSTS) if name in (row.site, row.host)
    ]
    if not hosts:
        raise HttpError(404, f"the site {name[:100]} is not known", hint="/sites lists all known hosts")
    return hosts[0].site, hosts


def _pages(request: WebRequest, hosts: list[HostRow]) -> list[PageRow]:
    each = max(20, _MAX_PAGES // len(hosts))
    return [page for row in hosts[:50] for page in request.warehouse.stores.catalog.scan(limit=each, host=row.host)]


def _host(row: HostRow, trapped: Counter[str]) -> HostView:
    known = {name: value for name, value in asdict(row).items() if name in HostView.__struct_fields__}
    return HostView(**known, robots_known=bool(row.robots), trapped=trapped[row.host])
