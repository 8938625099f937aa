"""Requests of people to a crawl: seeds, pages to read again now (`quadloom refresh`), publications, explanations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from quadloom.crawling.run.explain import Why, why
from quadloom.crawling.run.publication import Publication, PublishReport, accept, remember_published
from quadloom.crawling.run.scope import CrawlScope
from quadloom.documents.extract import seed_discoveries
from quadloom.fetching.guard import is_opened
from quadloom.model.link import Discovery
from quadloom.model.outcome import READ_OUTCOMES, PageRow
from quadloom.model.url import Url, belongs_to
from quadloom.planning.ranking.page_ranks import page_rank_of
from quadloom.planning.refresh.state import Schedule, schedule_of
from quadloom.process.clock import unix_time
from quadloom.settings import Settings
from quadloom.stores.named_values import NamedValue
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import AddReport, Frontier

_CHUNK = 1000
_CONTACT = NamedValue("contact", str)


class RefreshRequest(msgspec.Struct, frozen=True):
    """Control request `refresh`."""

    urls: list[str] = []
    site: str = ""
    read_before: float | None = None


def request_urls(frontier: Frontier, urls: Sequence[str], now: float) -> int:
    """Known or not, in scope or not: who names a URL wants it. Raises `UrlError` for what is none."""
    return frontier.request(seed_discoveries(urls, kind="seed", priority=0), now)


def request_pages(
    frontier: Frontier, catalog: Catalog, now: float, *, site: str = "", read_before: float | None = None
) -> int:
    """All pages of a site (or host), or all read last before a time, or both. Dead pages are asked for once more."""
    total = 0
    for rows in _pages(frontier, catalog, site):
        found = [_discovery(row) for row in rows if read_before is None or row.fetched_at < read_before]
        total += frontier.request(found, now) if found else 0
    return total


def _pages(frontier: Frontier, catalog: Catalog, site: str) -> Iterator[list[PageRow]]:
    for host in _hosts(frontier, site) if site else [""]:
        after = -(1 << 63)
        while rows := catalog.scan(after=after, limit=_CHUNK, host=host):
            after = rows[-1].fingerprint
            yield rows


def _hosts(frontier: Frontier, site: str) -> list[str]:
    names: list[str] = []
    offset = 0
    while rows := frontier.hosts.rows(limit=_CHUNK, offset=offset):
        names += [row.host for row in rows if belongs_to(row.host, (site,))]
        offset += len(rows)
    return names


def _discovery(row: PageRow) -> Discovery:
    return Discovery(row.href, row.key, row.host, row.fingerprint, row.depth, "other", 0)


class CrawlRequests:
    """What people ask of a crawl, whether one is running or not: seeds, refreshes, publications, explanations."""

    def __init__(self, stores: Stores, scope: CrawlScope) -> None:
        self._stores = stores
        self._scope = scope

    def add_seeds(self, urls: Sequence[str]) -> AddReport:
        """Widen the scope to these URLs and queue them."""
        return self._scope.add_seeds(urls, unix_time())

    def retry_failed(self, urls: Sequence[str]) -> int:
        """Request those of these URLs again that brought no page so far: who names a URL wants it, whatever became of
        it before. Returns their number."""
        found = {one.fingerprint: one for one in seed_discoveries(urls, kind="seed", priority=0)}
        rows = self._stores.catalog.pages(list(found))
        failed = [one for key, one in found.items() if key in rows and rows[key].outcome not in READ_OUTCOMES]
        return self._stores.frontier.request(failed, unix_time()) if failed else 0

    def refresh(self, urls: Sequence[str] = (), *, site: str = "", read_before: float | None = None) -> int:
        """Read these again before anything else: named URLs, a site's pages, pages last read before a time."""
        stores, now = self._stores, unix_time()
        count = request_urls(stores.frontier, urls, now) if urls else 0
        if site or read_before is not None:
            count += request_pages(stores.frontier, stores.catalog, now, site=site, read_before=read_before)
        return count

    def never_read(self, urls: Sequence[str]) -> list[str]:
        """Those of these URLs that were never visited. Raises `UrlError` for what is none."""
        found = {one.fingerprint: one.href for one in seed_discoveries(urls, kind="seed", priority=0)}
        rows = self._stores.catalog.pages(list(found))
        return [href for fingerprint, href in found.items() if fingerprint not in rows]

    def publish(self, publication: Publication) -> PublishReport:
        """Accept what a site owner announces: URLs, or a sitemap that has changed."""
        scope = self._scope.current
        report = accept(publication, frontier=self._stores.frontier, scope=scope, now=unix_time())
        remember_published(self._stores.catalog, scope, publication)
        return report

    def why(self, url: str, schedule: Schedule | None = None) -> Why:
        """Every number that decides about a URL, with its rule. `schedule`: of a running crawl, else the saved one."""
        stores = self._stores
        return why(
            url,
            frontier=stores.frontier,
            catalog=stores.catalog,
            scope=self._scope.current,
            schedule=schedule or schedule_of(stores.catalog, stores.settings),
            settings=stores.settings,
            now=unix_time(),
            rank=page_rank_of(stores.places.links, Url.parse(url).fingerprint),
        )

    @property
    def contact(self) -> str:
        """The address that sites may write to, from an earlier crawl; empty = none was given."""
        return _CONTACT.get(self._stores.catalog) or ""

    def remember_contact(self, contact: str) -> None:
        _CONTACT.put(self._stores.catalog, contact)

    def with_contact(self, settings: Settings) -> Settings:
        """The settings, with the remembered contact if they name none."""
        if settings.crawl.contact or not self.contact:
            return settings
        return replace(settings, crawl=replace(settings.crawl, contact=self.contact))

    def is_private(self, urls: Sequence[str]) -> bool:
        """Whether all these (else the seeds) are inside what `guard.allow` opens: then no stranger is visited."""
        starts = urls or self._scope.seeds()
        guard = self._stores.settings.guard
        return bool(starts) and all(is_opened(Url.parse(url).host, guard) for url in starts)
