"""Requests of a topical crawl, as polite as those of any crawl: scope, robots.txt, host pace, address pace, guard.

The frontier's lease is not used, since a topical crawl decides by itself what comes next; its clocks are. A host's
next moment, back-off and robots.txt are read from the frontier and written back to it, so that two crawls of one
warehouse never crowd a host between them. Redirects are followed hop by hop, and every hop passes all checks again.

`services` are hosts that the user named to be asked, as a web searcher is: scope and robots.txt are about crawling and
do not hold for them, pace does. Several request sequences may meet at such a host; they take turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from quadloom.fetching import politeness
from quadloom.fetching.fetcher import ROBOTS_REDIRECTS, robots_row
from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.request import ACCEPT_ROBOTS, FetchRequest, Result
from quadloom.fetching.robots import RobotsRow, path_of, verdict
from quadloom.model.outcome import HostPace
from quadloom.model.page import Failure, Page
from quadloom.model.url import Url, canonical, fingerprint, host_of, resolve, site_of
from quadloom.model.visit import Visit
from quadloom.settings import Settings
from quadloom.stores.protocols.frontier import Frontier, HostRow, ScopeRules
from quadloom.topical.access import SiteRequest, SiteResponse

ACCEPT = "text/html, application/xhtml+xml, application/json;q=0.9, application/rss+xml;q=0.9, */*;q=0.1"
_HOPS = 5
_REDIRECTS = frozenset((301, 302, 303, 307, 308))


class FetchedPage(msgspec.Struct, frozen=True):
    """A page that was fetched to be kept."""

    visit: Visit
    result: Page
    pace: HostPace


class _Errand:
    """One ask on its way; `answer` is set when it ends, None where it was refused or failed."""

    __slots__ = ("answer", "ask", "done", "hops", "method", "url")

    def __init__(self, ask: SiteRequest) -> None:
        self.ask = ask
        self.url = ask.url
        self.method = ask.method
        self.hops = 0
        self.done = False
        self.answer: SiteResponse | None = None


class PoliteAccess:
    """`Access` over the network. `keep` receives every document; `refused` counts what was not sent, by reason.

    One thread. Close it, or use `CurlTransport`'s own life cycle.
    """

    def __init__(
        self,
        settings: Settings,
        frontier: Frontier,
        scope: ScopeRules,
        keep: Callable[[FetchedPage], None],
        *,
        services: frozenset[str] = frozenset(),
        clock: Callable[[], float] = time.time,
        random: Random | None = None,
    ) -> None:
        self._settings = settings
        self._services = services
        self._frontier = frontier
        self._scope = scope
        self._keep = keep
        self._clock = clock
        self._random = random or Random()
        self._client = CurlTransport(settings, now=clock)
        self._robots: dict[str, RobotsRow] = {}
        self._waiting: dict[str, list[_Errand]] = {}  # by origin, while its robots.txt is on the way
        self._free_at: dict[str, float] = {}
        self._strikes: dict[str, int] = {}
        self.refused: dict[str, int] = {}

    def ask(self, asks: Sequence[SiteRequest]) -> list[SiteResponse | None]:
        errands = [_Errand(ask) for ask in asks]
        for errand in errands:
            self._begin(errand)
        while not all(errand.done for errand in errands):
            self._client.step(1.0)
        return [errand.answer for errand in errands]

    def close(self) -> None:
        self._client.close()

    def _begin(self, errand: _Errand) -> None:
        href = resolve(errand.url)
        if href is None:
            return self._refuse(errand, "address")  # no web address, or too long to be sent
        url = Url.parse(href)
        if url.host in self._services:
            return self._send(errand, 0.0)
        if self._scope.verdict(url.href, url.host, 0) is not None:
            return self._refuse(errand, "scope")
        if politeness.rules_for(url.host, self._settings).robots == "ignore":
            return self._send(errand, 0.0)
        origin = url.href[: url.href.find("/", url.href.find("//") + 2)]
        row = self._known_robots(origin, url.host)
        if origin in self._waiting:
            self._waiting[origin].append(errand)
            return None
        if row is None:
            return self._ask_robots(errand, origin, url.host)
        return self._decide(errand, row)

    def _known_robots(self, origin: str, host: str) -> RobotsRow | None:
        row = self._robots.get(origin)
        if row is None:
            stored = self._frontier.host(host)
            row = RobotsRow.decode(stored.robots) if stored is not None and stored.robots else None
            if row is not None and row.origin == origin:
                self._robots[origin] = row
            else:
                row = None
        return row if row is not None and row.expires > self._clock() else None

    def _ask_robots(self, errand: _Errand, origin: str, host: str) -> None:
        self._waiting[origin] = [errand]
        request = FetchRequest(
            href=f"{origin}/robots.txt",
            accept=ACCEPT_ROBOTS,
            not_before=self._moment(host),
            max_bytes=self._settings.limits.robots_bytes + 1,
            redirects=ROBOTS_REDIRECTS,
        )

        def came(result: Result) -> None:
            now = self._clock()
            row = robots_row(origin, result, self._settings.crawl.user_agent, self._settings, now)
            self._robots[origin] = row
            rules = politeness.rules_for(host, self._settings)
            self._free_at[host] = now + politeness.delay_of(result.seconds, row.robots.crawl_delay, rules)
            old = self._frontier.host(host) or HostRow(host=host, site=site_of(host))
            self._frontier.put_host(
                msgspec.structs.replace(
                    old, robots=row.encode(), robots_expires=row.expires, crawl_delay=row.robots.crawl_delay
                )
            )
            for waiting in self._waiting.pop(origin):
                self._decide(waiting, row)

        self._client.submit(request, came)

    def _decide(self, errand: _Errand, row: RobotsRow) -> None:
        if row.status == "unavailable" or verdict(row.robots.rules, path_of(errand.url)) is not None:
            return self._refuse(errand, "robots")
        return self._send(errand, row.robots.crawl_delay)

    def _moment(self, host: str) -> float:
        """When a host may be asked next, by our own clock and the frontier's."""
        if host not in self._free_at:
            stored = self._frontier.host(host)
            self._free_at[host] = max(stored.next_at, stored.blocked_until) if stored is not None else 0.0
        return self._free_at[host]

    def _send(self, errand: _Errand, crawl_delay: float) -> None:
        host = host_of(errand.url)
        moment = self._moment(host)
        if moment > self._clock() + self._settings.crawl.max_wait:
            return self._refuse(errand, "pace")  # it may be asked, but not so soon that waiting for it pays
        pause = politeness.delay_of(0.0, crawl_delay, politeness.rules_for(host, self._settings))
        self._free_at[host] = max(moment, self._clock()) + pause  # for whoever comes before the answer does
        request = FetchRequest(href=errand.url, accept=ACCEPT, not_before=moment, headers=errand.ask.headers)
        if errand.method == "post":
            payload, headers = _encoded(errand.ask)
            request = msgspec.structs.replace(
                request, method="POST", payload=payload, headers=(*request.headers, *headers)
            )
        return self._client.submit(request, lambda result: self._came(errand, host, crawl_delay, result))

    def _came(self, errand: _Errand, host: str, crawl_delay: float, result: Result) -> None:
        now = self._clock()
        self._strikes[host] = politeness.strikes_after(result, self._strikes.get(host, 0))
        pace = politeness.pace(
            host,
            result,
            now=now,
            rules=politeness.rules_for(host, self._settings),
            crawl_delay=crawl_delay,
            strikes=self._strikes[host],
            random=self._random.random,
        )
        self._free_at[host] = max(self._free_at[host], pace.next_at, pace.blocked_until)
        if pace.blocked_until > now:
            self._frontier.block(host, pace.blocked_until, pace.reason)
        if isinstance(result, Failure):
            errand.done = True
            if result.status:
                errand.answer = SiteResponse(errand.url, result.status, "", b"", result.headers)
            return None
        target = resolve(result.header("location"), errand.url) if result.status in _REDIRECTS else None
        if target is not None and errand.hops < _HOPS:
            errand.hops += 1
            errand.method = "get" if result.status in (301, 302, 303) else errand.method
            errand.url = target
            return self._begin(errand)
        errand.done = True
        errand.answer = SiteResponse(errand.url, result.status, result.content_type, result.body, result.headers)
        if errand.ask.purpose == "page" and 200 <= result.status < 300:
            self._keep(FetchedPage(_visit(errand.url, errand.ask.score), result, pace))
        return None

    def _refuse(self, errand: _Errand, reason: str) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + 1
        errand.done = True


def _visit(href: str, score: float) -> Visit:
    key = canonical(href)
    return Visit(href, key, host_of(href), fingerprint(key), kind="result", priority=2, score=score)


def _encoded(ask: SiteRequest) -> tuple[bytes, tuple[tuple[str, str], ...]]:
    """Body and headers of a submitted form, or of a question in JSON."""
    if ask.payload:
        return ask.payload, (("Content-Type", "application/json"),)
    if not ask.multipart:
        return urlencode(ask.fields).encode(), (("Content-Type", "application/x-www-form-urlencoded"),)
    boundary = UUID(int=abs(hash(ask.fields)) % (1 << 128)).hex
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"\r\n\r\n{value}\r\n'
        for name, value in ask.fields
    ]
    body = "".join(parts) + f"--{boundary}--\r\n"
    return body.encode(), (("Content-Type", f"multipart/form-data; boundary={boundary}"),)


def _quoted(name: str) -> str:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
