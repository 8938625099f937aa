"""The politeness engine: visits in, results out. Decides what a transport is asked, and when.

How many requests a visit means:

- **One visit, one request.** Redirects are never followed here, not even within a host: the page comes back with its
  3xx status and the frontier treats the target as any other URL. So scope, robots, guard, host clock and address clock
  apply by construction, and a target that many pages redirect to is read once. Chains are remembered: a circle,
  or more than `limits.redirects` in a row, ends in a failure.
- **robots.txt first.** On first contact, and when it has expired, the visit's turn is used for /robots.txt, and the
  visit itself waits the host's delay after it. Visits of other hosts never wait. A robots.txt may redirect up to five
  times, also to other hosts (RFC 9309 2.3.1.2); every hop passes the guard and the clock of its address.
- **With a browser** (`crawl.browser`), a visit is its page and the requests of its scripts. They pass the same rules of
  robots.txt and follow each other at the pace of their host, whatever the scripts want.
- A disallowed visit sends nothing. If a robots.txt is unavailable, its host is blocked until the file is requested
  again.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from random import Random

import msgspec

from quadloom.fetching import politeness
from quadloom.fetching.browser.renderer import PageRenderer, Rendering
from quadloom.fetching.robots import RobotsRow, parse, path_of, verdict
from quadloom.fetching.transport import (
    ACCEPT_ANY,
    ACCEPT_ROBOTS,
    Done,
    FetchRequest,
    Result,
    Transport,
    Wanted,
    make_failure,
    wanted_types,
)
from quadloom.model.outcome import HostPace
from quadloom.model.page import Failure, Page, RobotsUpdate
from quadloom.model.url import host_of
from quadloom.model.visit import Visit
from quadloom.process.clock import unix_time
from quadloom.settings import PolitenessSettings, Settings
from quadloom.settings.sites import rules_for

ROBOTS_REDIRECTS = 5  # RFC 9309 2.3.1.2: at least five hops
SITEMAP_BYTES = 50 * 1024 * 1024  # the limit of sitemaps.org for one file
_CLOCKS_APART = (
    3600.0  # seconds by which the clocks of machines may differ. A row from later was written by a wrong one
)
_MAX_HOSTS = 20_000
_MAX_CHAINS = 10_000
_RENDER_TURNS = 20  # times `limits.render_seconds` that a page may wait for the browser, unless its lease ends before
_RENDER_MARGIN = 10.0  # seconds before the end of a lease by which its page is back
_UNAVAILABLE = "robots.txt unavailable, so nothing may be fetched: "

RequestFactory = Callable[[Visit, float, float], FetchRequest]
"""(visit, not before, expires) → the request of a visit."""


class FetchResult(msgspec.Struct, frozen=True, array_like=True):
    """The end of one visit. `learned` is set on the first visit that ends after a robots.txt was read, `rendering` if
    `result` is the page after its scripts ran."""

    visit: Visit
    result: Page | Failure
    pace: HostPace
    learned: RobotsUpdate | None = None
    rendering: Rendering | None = None


class _Host:
    """The state of one host; all of it can be lost without harm."""

    __slots__ = ("free_at", "learned", "rows", "rules", "strikes", "waiting")

    def __init__(self, rules: PolitenessSettings) -> None:
        self.rules = rules
        self.rows: dict[str, RobotsRow] = {}  # by origin: http and https may differ
        self.waiting: dict[str, list[Visit]] = {}  # by origin, while its robots.txt is in flight
        self.free_at = 0.0  # monotonic: after a robots.txt, when the next request may go out
        self.strikes = 0
        self.learned: RobotsUpdate | None = None


class Fetcher:
    """`submit` visits, `step` until `in_flight` is 0. Each visit comes back exactly once. One thread; `wake` from any.

    `clock` is unix time, `random` gives the jitter. `request_for` replaces the request that is made of a visit;
    `wanted(content type)` decides which bodies are read otherwise. `renderer` runs the scripts of pages.
    """

    def __init__(
        self,
        settings: Settings,
        transport: Transport,
        *,
        clock: Callable[[], float] = unix_time,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] | None = None,
        wanted: Wanted | None = None,
        request_for: RequestFactory | None = None,
        renderer: PageRenderer | None = None,
    ) -> None:
        self._renderer = renderer
        self._settings = settings
        self._clock = clock
        self._monotonic = monotonic
        self._random = random or Random().random
        self._wanted = wanted or wanted_types(settings.crawl.read_types, settings.crawl.skip_types)
        self._request_for = request_for
        self._transport = transport
        self._product = settings.crawl.user_agent
        self._hosts: OrderedDict[str, _Host] = OrderedDict()
        self._chains: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._fetched: list[FetchResult] = []
        self._resources: dict[int, tuple[Visit, Done]] = {}  # requests for pages in the browser, by their identity
        self.in_flight = 0

    def submit(
        self,
        visits: Sequence[Visit],
        robots: Mapping[str, bytes] | None = None,
        strikes: Mapping[str, int] | None = None,
    ) -> None:
        """Accept visits. `robots`: rows that the catalog has of their hosts; `strikes`: their failures in a row."""
        for host, data in (robots or {}).items():
            row = RobotsRow.decode(data)
            if row is not None:
                known = self._host(host).rows
                if row.origin not in known or known[row.origin].fetched_at < row.fetched_at:
                    known[row.origin] = row
        for host, number in (strikes or {}).items():
            self._host(host).strikes = max(self._host(host).strikes, number)
        self.in_flight += len(visits)
        for visit in visits:
            self._begin(visit)

    def step(self, timeout: float = 0.0) -> list[FetchResult]:
        """Advance all visits for at most `timeout` seconds; return those that ended."""
        self._transport.step(0.0 if self._fetched else timeout)
        if self._renderer is not None:
            self._renderer.step()
        fetched, self._fetched = self._fetched, []
        self.in_flight -= len(fetched)
        return fetched

    def wake(self) -> None:
        """End a running `step` early; may be called from another thread."""
        self._transport.wake()

    def close(self) -> None:
        """Close the transport. Visits in flight do not come back (their leases run out)."""
        if self._renderer is not None:
            self._renderer.close()
        self._transport.close()
        self.in_flight = 0

    def _host(self, name: str) -> _Host:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host(rules_for(name, self._settings))
            if len(self._hosts) > _MAX_HOSTS:
                self._forget_oldest()
        return host

    def _forget_oldest(self) -> None:
        for name, host in self._hosts.items():
            if not host.waiting and host.learned is None:
                del self._hosts[name]
                return

    def _free(self, host: _Host) -> float:
        """`free_at` as unix time, 0 if it is past. It is stored as monotonic time, because wall clocks are set back."""
        left = host.free_at - self._monotonic()
        return self._clock() + left if left > 0 else 0.0

    def _begin(self, visit: Visit) -> None:
        host = self._hosts.get(visit.host) or self._host(visit.host)
        now = self._clock()
        if visit.start_before and now > visit.start_before:
            return self._too_late(visit, host, now)
        if host.rules.robots == "ignore":
            return self._send(visit, host, 0.0, now)
        origin = visit.href[: visit.href.find("/", visit.href.find("//") + 2)]
        if origin in host.waiting:
            host.waiting[origin].append(visit)
            return None
        row = host.rows.get(origin)
        if row is None or not row.fetched_at - _CLOCKS_APART <= now < row.expires:
            return self._ask_robots(visit, host, origin)
        if row.robots.rules or row.status == "unavailable":
            return self._decide(visit, host, row)
        return self._send(visit, host, row.robots.crawl_delay, now)

    def _ask_robots(self, visit: Visit, host: _Host, origin: str) -> None:
        host.waiting[origin] = [visit]
        request = FetchRequest(
            href=f"{origin}/robots.txt",
            accept=ACCEPT_ROBOTS,
            priority=min(visit.priority, 1),
            not_before=max(visit.not_before, self._free(host)),
            send_before=visit.start_before,
            paced=host.rules.ip_delay > 0.0,
            max_bytes=self._settings.limits.robots_bytes + 1,  # one more, so that the parser notices a cut
            redirects=ROBOTS_REDIRECTS,
        )
        self._transport.submit(request, lambda result: self._on_robots(visit.host, origin, result))

    def _on_robots(self, name: str, origin: str, result: Result) -> None:
        host = self._host(name)
        now = self._clock()
        if isinstance(result, Failure) and result.is_unsent:
            for visit in host.waiting.pop(origin):
                self._too_late(visit, host, now)
            return
        row = robots_row(origin, result, self._product, self._settings, now)
        failure = result if isinstance(result, Failure) and row.status == "unavailable" else None
        if failure is not None and politeness.is_strike(failure):
            host.strikes += 1
        if failure is not None and not failure.status:
            # Nobody answered: the host, or the network, may be back soon. The pause grows with each failure, and is too
            # long for a crawl with an end to wait for it.
            pause = politeness.back_off(host.strikes, host.rules, self._random)
            pause = max(pause, 1.1 * self._settings.crawl.max_wait)
            row = msgspec.structs.replace(row, expires=min(row.expires, now + pause))
        host.rows[origin] = row
        response = result if isinstance(result, Page) and row.status == "found" else None
        waiting = host.waiting.pop(origin)
        if any(id(visit) not in self._resources for visit in waiting):  # no visit would hand it on otherwise
            host.learned = RobotsUpdate(
                name, row.encode(), row.expires, row.robots.crawl_delay, row.robots.sitemaps, response
            )
        host.free_at = self._monotonic() + politeness.delay_of(result.seconds, row.robots.crawl_delay, host.rules)
        for visit in waiting:
            if failure is not None:
                self._unavailable(visit, host, row, failure)
            else:
                self._decide(visit, host, row)

    def _decide(self, visit: Visit, host: _Host, row: RobotsRow) -> None:
        if row.status == "unavailable":
            return self._unavailable(visit, host, row, None)
        rule = verdict(row.robots.rules, path_of(visit.href))
        if rule is not None:
            message = f"robots.txt of {visit.host} disallows {rule.pattern[:200]}"
            failure = make_failure(visit.href, "robots", message, fetched_at=self._clock())
            return self._end(visit, host, failure, row.robots.crawl_delay)
        return self._send(visit, host, row.robots.crawl_delay, self._clock())

    def _unavailable(self, visit: Visit, host: _Host, row: RobotsRow, failure: Failure | None) -> None:
        """Complete disallow for a while. The kind is that of the host's failure, not `robots`, which would be final."""
        now = self._clock()
        message = f"{_UNAVAILABLE}{row.reason}"
        result = make_failure(
            visit.href,
            failure.kind if failure is not None else "connect",
            message,
            transient=failure.transient if failure is not None else True,
            fetched_at=now,
            seconds=failure.seconds if failure is not None else 0.0,
            address=failure.address if failure is not None else "",
            status=failure.status if failure is not None else 0,
            retry_after=max(0.0, row.expires - now),
        )
        pace = politeness.pace(visit.host, result, now=now, rules=host.rules, random=self._random)
        pace = msgspec.structs.replace(pace, blocked_until=row.expires, reason=message)
        self._emit(visit, host, result, pace)

    def _send(self, visit: Visit, host: _Host, crawl_delay: float, now: float) -> None:
        limits = self._settings.limits
        not_before = visit.not_before
        is_resource = id(visit) in self._resources
        if is_resource or host.free_at > self._monotonic():
            not_before = max(not_before, self._free(host))
            pause = politeness.delay_of(0.0, crawl_delay, host.rules)
            host.free_at = self._monotonic() + max(0.0, not_before - now) + pause
        expires, send_before = visit.deadline, visit.start_before
        if (expires and not_before + limits.total_seconds > expires) or 0.0 < send_before <= not_before:
            return self._too_late(visit, host, not_before)
        if is_resource:
            request = FetchRequest(
                href=visit.href, accept=ACCEPT_ANY, not_before=not_before, expires=expires, send_before=send_before
            )
        elif self._request_for is not None:
            request = self._request_for(visit, not_before, expires)
            request = msgspec.structs.replace(request, send_before=send_before)
        else:
            request = FetchRequest(
                href=visit.href,
                etag=visit.etag,
                last_modified=visit.last_modified,
                priority=visit.priority,
                not_before=not_before,
                expires=expires,
                send_before=send_before,
                paced=host.rules.ip_delay > 0.0,
                max_bytes=max(limits.body_bytes, SITEMAP_BYTES) if visit.kind == "sitemap" else 0,
                wanted=self._wanted,
            )
        return self._transport.submit(request, lambda result: self._on_result(visit, crawl_delay, result))

    def _too_late(self, visit: Visit, host: _Host, not_before: float) -> None:
        """The lease ends before the request could: after a long Crawl-delay, or because the worker was paused and
        another one may own the host now. Give the visit back, with the host's clock set."""
        now = self._clock()
        message = f"{visit.host} can be asked in {not_before - now:.0f} s, which is too late for the lease"
        result = make_failure(
            visit.href, "timeout", message, transient=True, fetched_at=now, retry_after=max(0.0, not_before - now)
        )
        pace = HostPace(visit.host, "", max(0.0, not_before - now), not_before, 0.0, message, politeness.COST_UNSENT)
        self._emit(visit, host, result, pace)

    def _on_result(self, visit: Visit, crawl_delay: float, result: Result) -> None:
        host = self._hosts.get(visit.host) or self._host(visit.host)
        if id(visit) in self._resources:
            return self._end(visit, host, result, crawl_delay)
        if isinstance(result, Failure) and result.is_unsent:
            return self._too_late(visit, host, self._clock())
        if isinstance(result, Page) and result.hops:
            result = self._chained(visit, result)
        if self._renderer is not None and isinstance(result, Page) and self._renderer.wants(result):
            return self._render(visit, host, result, crawl_delay, self._renderer)
        return self._end(visit, host, result, crawl_delay)

    def _render(self, visit: Visit, host: _Host, page: Page, crawl_delay: float, renderer: PageRenderer) -> None:
        """The visit ends when the scripts of its page have run. Their first request waits as any request would."""
        pause = politeness.delay_of(page.seconds, crawl_delay, host.rules)
        host.free_at = max(host.free_at, self._monotonic() + pause)
        until = self._clock() + _RENDER_TURNS * self._settings.limits.render_seconds
        if visit.deadline:
            until = min(until, visit.deadline - _RENDER_MARGIN)

        def ask(href: str, done: Done) -> None:
            resource = Visit(href, href, host_of(href), 0, deadline=visit.deadline, start_before=visit.start_before)
            self._resources[id(resource)] = (resource, done)
            self._begin(resource)

        def rendered(result: Page, rendering: Rendering | None) -> None:
            self._end(visit, self._host(visit.host), result, crawl_delay, rendering)

        renderer.render(page, until, ask, rendered)

    def _chained(self, visit: Visit, page: Page) -> Result:
        """Return a redirect as it is, unless it closes a circle or is one too many in a row."""
        target = page.hops[-1].location
        chain = (*self._chains.pop(visit.href, ()), visit.href)
        limit = self._settings.limits.redirects
        if target in chain:
            message = f"redirects in a circle: {visit.href} to {target}"
        elif len(chain) > limit:
            message = f"more than {limit} redirects in a row (limits.redirects)"
        else:
            self._chains[target] = chain
            if len(self._chains) > _MAX_CHAINS:
                self._chains.popitem(last=False)
            return page
        return make_failure(
            visit.href,
            "redirects",
            message,
            fetched_at=page.fetched_at,
            seconds=page.seconds,
            status=page.status,
            address=page.address,
            hops=page.hops,
            headers=page.headers,
        )

    def _end(
        self,
        visit: Visit,
        host: _Host,
        result: Result,
        crawl_delay: float = 0.0,
        rendering: Rendering | None = None,
    ) -> None:
        is_page = isinstance(result, Page)
        host.strikes = 0 if is_page else politeness.strikes_after(result, max(host.strikes, visit.attempt - 1))
        now = self._clock()
        pace = politeness.pace(
            visit.host,
            result,
            now=now,
            rules=host.rules,
            crawl_delay=crawl_delay,
            strikes=host.strikes,
            random=self._random,
        )
        free = now + host.free_at - self._monotonic()
        if free > pace.next_at:  # nothing was sent for this visit, but its robots.txt was
            pace = msgspec.structs.replace(pace, next_at=free)
        self._emit(visit, host, result, pace, rendering)

    def _emit(
        self, visit: Visit, host: _Host, result: Result, pace: HostPace, rendering: Rendering | None = None
    ) -> None:
        resource = self._resources.pop(id(visit), None)
        if resource is not None:
            if pace.blocked_until:  # the page's own host, or another one, wants to be left alone
                host.free_at = max(host.free_at, self._monotonic() + pace.blocked_until - self._clock())
            return resource[1](result)
        learned, host.learned = host.learned, None
        return self._fetched.append(FetchResult(visit, result, pace, learned, rendering))


def robots_row(origin: str, result: Result, product: str, settings: Settings, now: float) -> RobotsRow:
    """What the response to /robots.txt means (RFC 9309 2.3.1): rules, no rules, or complete disallow for a while.

    429 is the one 4xx that does not mean "no rules": a server over its limit has not allowed more requests.
    """
    rules = settings.politeness
    if isinstance(result, Page):
        if 200 <= result.status < 300:
            robots = parse(result.body, product, max_bytes=settings.limits.robots_bytes)
            return RobotsRow(origin, "found", now, now + rules.robots_ttl, robots)
        return RobotsRow(origin, "missing", now, now + rules.robots_missing_ttl, reason=f"HTTP {result.status}")
    if result.kind in ("redirects", "not-archived") or (400 <= result.status < 500 and result.status != 429):
        return RobotsRow(origin, "missing", now, now + rules.robots_missing_ttl, reason=result.message)
    pause = max(rules.robots_error_ttl, result.retry_after or 0.0)
    return RobotsRow(origin, "unavailable", now, now + pause, reason=result.message)


def is_robots_unavailable(result: Result) -> bool:
    """Whether nothing was sent because the host's robots.txt could not be read."""
    return isinstance(result, Failure) and result.message.startswith(_UNAVAILABLE)
