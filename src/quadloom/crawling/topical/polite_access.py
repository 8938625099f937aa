"""Requests of a topical crawl, made by the same `Fetcher` as those of any crawl: robots.txt, pace, back-off, guard.

The frontier leases nothing here, because a topical crawl decides by itself what comes next; but its clocks hold. A
host's next moment, back-off, failures and robots.txt are read from the frontier and written back to it, so that two
crawls of one warehouse never crowd a host between them. Redirects are followed hop by hop, and every hop is a visit of
its own.

`services` are hosts that the user named to be asked, such as a web searcher: scope and robots.txt are about crawling
and do not apply to them, pace does. Several request sequences may ask such a host at a time; they take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from glob import escape
from hashlib import blake2b
from random import Random
from urllib.parse import urlencode

import msgspec
from msgspec import json

from quadloom.crawling.topical.access import Purpose, SiteRequest, SiteResponse
from quadloom.fetching import politeness
from quadloom.fetching.fetcher import FetchResult, is_robots_unavailable
from quadloom.fetching.transport import REDIRECTS, FetchRequest, Transport
from quadloom.fetching.unit import open_fetcher
from quadloom.model.outcome import HostPace
from quadloom.model.page import Failure, Page, RobotsUpdate
from quadloom.model.url import Url, canonical, fingerprint, host_of, resolve, site_of
from quadloom.model.visit import Visit
from quadloom.planning.scope import KEPT_DEPTH
from quadloom.process.clock import unix_time
from quadloom.settings import Settings, SiteSettings
from quadloom.stores.protocols.frontier import HostClocks, HostRow, ScopeRules

ACCEPT = "text/html, application/xhtml+xml, application/json;q=0.9, application/rss+xml;q=0.9, */*;q=0.1"
_HOPS = 5
_RETRY = 0.02  # seconds between two looks at a host that is busy
_KEPT: frozenset[Purpose] = frozenset(("page", "home"))  # home pages, too: they say what a site is about


class FetchedPage(msgspec.Struct, frozen=True):
    """A page that was fetched to be stored."""

    visit: Visit
    result: Page
    pace: HostPace


class _Exchange:
    """One request and its hops so far; `response` stays None if it was refused or failed."""

    __slots__ = ("done", "hops", "latest", "method", "request", "response", "url")

    def __init__(self, request: SiteRequest) -> None:
        self.request = request
        self.url = request.url
        self.method = request.method
        self.hops = 0
        self.latest = 0.0  # when it must be sent
        self.done = False
        self.response: SiteResponse | None = None


class PoliteAccess:
    """`Access` by a `Fetcher`. `keep` receives every document; `refused` counts what was not sent, by reason.

    One thread. Close it after use.
    """

    def __init__(
        self,
        settings: Settings,
        frontier: HostClocks,
        scope: ScopeRules,
        keep: Callable[[FetchedPage], None],
        *,
        services: frozenset[str] = frozenset(),
        clock: Callable[[], float] = unix_time,
        random: Random | None = None,
        transport: Transport | None = None,
        throttle: Callable[[], None] = lambda: None,
        begin_until: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`transport`: another one than that of `crawl.transport`. `throttle` is called before each request, and may
        wait. `begin_until`: no request may begin later, because another worker may own its host by then; 0 = any
        time."""
        self._throttle = throttle
        self._begin_until = begin_until
        self._settings = _without_robots(settings, services)
        self._services = services
        self._frontier = frontier
        self._scope = scope
        self._keep = keep
        self._clock = clock
        self._fetcher = open_fetcher(
            self._settings,
            clock=clock,
            random=(random or Random()).random,
            request_for=self._request,
            transport=transport,
        )
        self._exchanges: dict[int, _Exchange] = {}  # in flight, by number
        self._waiting: list[_Exchange] = []  # for a turn of their hosts
        self._sent = 0
        self._free_at: dict[str, float] = {}  # by host: when its next request may be sent
        self.refused: dict[str, int] = {}

    def ask(self, requests: Sequence[SiteRequest]) -> list[SiteResponse | None]:
        exchanges = [_Exchange(request) for request in requests]
        for exchange in exchanges:
            self._begin(exchange)
        while not all(exchange.done for exchange in exchanges):
            waiting, self._waiting = self._waiting, []
            for exchange in waiting:
                self._send(exchange)
            for fetched in self._fetcher.step(_RETRY if self._waiting else 1.0):
                self._on_result(self._exchanges.pop(fetched.visit.fingerprint), fetched)
        return [exchange.response for exchange in exchanges]

    def close(self) -> None:
        self._fetcher.close()

    def _begin(self, exchange: _Exchange) -> None:
        href = resolve(exchange.url)
        if href is None:
            return self._refuse(exchange, "address")  # not a web address, or too long to be sent
        url = Url.parse(href)
        if url.host not in self._services and self._scope.verdict(url.href, url.host, 0) is not None:
            return self._refuse(exchange, "scope")
        self._throttle()
        exchange.latest = self._clock() + self._settings.crawl.max_wait
        return self._send(exchange)

    def _send(self, exchange: _Exchange) -> None:
        """Send a request in the host's next turn. If the host is busy with others, it is tried again."""
        url = Url.parse(exchange.url)
        now, latest = self._clock(), exchange.latest
        robots, strikes = self._first_contact(url.host)
        moment = self._free_at[url.host]
        turn = self._frontier.reserve(url.host, now) if moment <= latest else None
        if turn is None and max(moment, now) <= latest:
            self._waiting.append(exchange)
            return None
        if turn is None or max(moment, turn) > latest:
            if turn is not None:
                self._frontier.free(url.host, 0.0, now)
            return self._refuse(exchange, "pace")  # it may be asked, but waiting for it is not worth it
        self._sent += 1
        self._exchanges[self._sent] = exchange
        deadline = latest + self._settings.limits.total_seconds
        visit = Visit(
            url.href,
            url.key,
            url.host,
            self._sent,
            priority=2,
            not_before=max(moment, turn),
            deadline=deadline,
            start_before=self._begin_until(),
        )
        return self._fetcher.submit([visit], robots, strikes)

    def _first_contact(self, host: str) -> tuple[dict[str, bytes], dict[str, int]]:
        """What the frontier has of a host that was not asked yet: robots.txt and failures in a row, for the fetcher."""
        if host in self._free_at:
            return {}, {}
        row = self._frontier.get(host) or HostRow(host=host, site=site_of(host))
        self._free_at[host] = max(row.next_at, row.blocked_until)
        return {host: row.robots} if row.robots else {}, {host: row.failures}

    def _request(self, visit: Visit, not_before: float, _expires: float) -> FetchRequest:
        exchange = self._exchanges[visit.fingerprint]
        request = FetchRequest(href=visit.href, accept=ACCEPT, not_before=not_before, headers=exchange.request.headers)
        if exchange.method == "post":
            payload, headers = _encoded(exchange.request)
            request = msgspec.structs.replace(
                request, method="POST", payload=payload, headers=(*request.headers, *headers)
            )
        return request

    def _on_result(self, exchange: _Exchange, fetched: FetchResult) -> None:
        result, pace, host = fetched.result, fetched.pace, fetched.visit.host
        if fetched.learned is not None:
            self._store_robots(fetched.learned)
        self._free_at[host] = max(self._free_at[host], pace.next_at, pace.blocked_until)
        self._frontier.free(host, pace.next_at, self._clock())
        if pace.blocked_until > self._clock():
            self._frontier.block(host, pace.blocked_until, pace.reason)
        if isinstance(result, Failure):
            return self._on_failure(exchange, result, pace)
        target = resolve(result.header("location"), exchange.url) if result.status in REDIRECTS else None
        if target is not None and exchange.hops < _HOPS:
            exchange.hops += 1
            exchange.method = "get" if result.status in (301, 302, 303) else exchange.method
            exchange.url = target
            return self._begin(exchange)
        exchange.done = True
        exchange.response = SiteResponse(exchange.url, result.status, result.content_type, result.body, result.headers)
        if exchange.request.purpose in _KEPT and 200 <= result.status < 300:
            self._keep(FetchedPage(_visit(exchange.url, exchange.request.score), result, pace))
        return None

    def _on_failure(self, exchange: _Exchange, failure: Failure, pace: HostPace) -> None:
        if failure.kind == "robots" or is_robots_unavailable(failure):
            return self._refuse(exchange, "robots")
        if failure.kind == "timeout" and pace.cost == politeness.COST_UNSENT:
            return self._refuse(exchange, "pace")  # a Crawl-delay longer than `crawl.max_wait`
        exchange.done = True
        if failure.status:
            exchange.response = SiteResponse(exchange.url, failure.status, "", b"", failure.headers)
        return None

    def _store_robots(self, learned: RobotsUpdate) -> None:
        old = self._frontier.get(learned.host) or HostRow(host=learned.host, site=site_of(learned.host))
        self._frontier.put(
            msgspec.structs.replace(
                old, robots=learned.robots, robots_expires=learned.expires, crawl_delay=learned.crawl_delay
            )
        )

    def _refuse(self, exchange: _Exchange, reason: str) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + 1
        exchange.done = True


def _without_robots(settings: Settings, hosts: frozenset[str]) -> Settings:
    """The same settings, in which robots.txt does not apply to these hosts."""
    if not hosts:
        return settings
    sites = [SiteSettings(match=escape(host), robots="ignore") for host in sorted(hosts)]
    return msgspec.structs.replace(settings, site=[*sites, *settings.site])


def _visit(href: str, score: float) -> Visit:
    key = canonical(href)
    return Visit(href, key, host_of(href), fingerprint(key), KEPT_DEPTH, kind="result", priority=2, score=score)


def _encoded(request: SiteRequest) -> tuple[bytes, tuple[tuple[str, str], ...]]:
    """Body and headers of a submitted form, or of a query in JSON."""
    if request.payload:
        return request.payload, (("Content-Type", "application/json"),)
    if not request.multipart:
        return urlencode(request.fields).encode(), (("Content-Type", "application/x-www-form-urlencoded"),)
    boundary = _boundary(request.fields)
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"\r\n\r\n{value}\r\n'
        for name, value in request.fields
    ]
    body = "".join(parts) + f"--{boundary}--\r\n"
    return body.encode(), (("Content-Type", f"multipart/form-data; boundary={boundary}"),)


def _boundary(fields: tuple[tuple[str, str], ...]) -> str:
    """A delimiter that is in none of the fields (RFC 2046, 5.1.1), and the same for them in every process."""
    content = json.encode(fields)
    candidates = (blake2b(content, digest_size=16, salt=bytes([number])).hexdigest() for number in range(256))
    return next(one for one in candidates if one.encode() not in content)


def _quoted(name: str) -> str:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
