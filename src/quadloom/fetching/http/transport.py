"""The transport over libcurl: hundreds of HTTP requests in flight in one thread.

A request passes these stages, and may end at each with a `Failure`:

    submit ► wait for `not_before` ► guard: URL ► resolve (cache, or a DNS thread) ► guard: addresses
           ► turn of the address ► free handle (by priority) ► transfer ► redirect? back to the guard : done

Waiting requests hold no socket and no thread. The total deadline counts work, not waiting for a turn: it starts with
resolution and continues over all hops. If a name has several addresses and the first cannot be connected to, the
next is tried within the same deadline; no request was sent, so the host is not asked twice.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from quadloom.fetching.dns import DnsAnswer, DnsLookup, DnsResolver, system_lookup
from quadloom.fetching.guard import Guard, literal
from quadloom.fetching.http.curl import CurlLoop, Transfer, of_curl
from quadloom.fetching.http.proxy import local_name, proxy_of, refusal_of
from quadloom.fetching.http.sign_in import NOTHING, SignIn
from quadloom.fetching.politeness import AddressClock, retry_after
from quadloom.fetching.transport import (
    REDIRECTS,
    TOO_LATE,
    Done,
    FetchRequest,
    Result,
    header_lines,
    identity,
    is_too_late,
    make_failure,
    refused_hop,
    status_is_transient,
    without_login,
)
from quadloom.model.finding import Finding
from quadloom.model.page import FailureKind, Hop, Page
from quadloom.model.url import resolve
from quadloom.process.clock import unix_time
from quadloom.settings import Settings

if TYPE_CHECKING:
    from quadloom.fetching.http.signatures import RequestSigner

_LATE = 1.0  # seconds after its turn within which a request may still begin


class _Job(msgspec.Struct):
    """A request on its way through the stages. `url`: of this hop. `seconds`: of work before `working_since`.
    `sent_at`: unix time of the first request."""

    request: FetchRequest
    done: Done
    url: str
    hops: tuple[Hop, ...] = ()
    name: str = ""
    addresses: tuple[str, ...] = ()
    seconds: float = 0.0
    working_since: float | None = None
    sent_at: float = 0.0


class CurlTransport:
    """See `quadloom.fetching.transport.Transport`. `lookup` is the resolver, `ca_file` names authorities to trust,
    `signer` signs requests."""

    def __init__(
        self,
        settings: Settings,
        *,
        lookup: DnsLookup = system_lookup,
        now: Callable[[], float] = unix_time,
        monotonic: Callable[[], float] = time.monotonic,
        ca_file: str = "",
        signer: RequestSigner | None = None,
    ) -> None:
        limits = settings.limits
        self._limits = limits
        self._now = now
        self._monotonic = monotonic
        self._ca_file = ca_file or settings.guard.authorities
        self.guard = Guard(settings.guard)
        self._proxy = proxy_of(settings.fetch)
        self._sign_in = SignIn(settings)
        self._signer = signer
        self._identity = identity(settings.crawl)
        self._addresses = AddressClock(settings.politeness.ip_delay, monotonic())
        self._loop = CurlLoop(limits.connections, monotonic)
        self._resolver = DnsResolver(
            seconds=limits.dns_seconds,
            ttl=limits.dns_ttl,
            negative_ttl=limits.dns_negative_ttl,
            monotonic=monotonic,
            lookup=lookup,
        )
        self._loop.watch(self._resolver.fileno(), self._resolver.collect)
        self._sequence = count()
        self._timers: list[tuple[float, int, Callable[[_Job], None], _Job]] = []  # monotonic, as wall clocks jump
        self._queue: list[tuple[int, int, _Job]] = []  # ready but without a handle, by priority
        self._settled: list[tuple[_Job, Result]] = []
        self._idle: list[Transfer] = []
        self._busy: dict[object, tuple[Transfer, _Job]] = {}
        self._lines: dict[str, tuple[str, ...]] = {}
        self.in_flight = 0

    def submit(self, request: FetchRequest, done: Done) -> None:
        """Accept a request. A later `step` calls `done`."""
        job = _Job(request, done, without_login(request.href) if "@" in request.href else request.href)
        self.in_flight += 1
        wait = request.not_before - self._now() if request.not_before else 0.0
        if wait > 0:
            self._later(self._monotonic() + wait, self._resolve, job)
        else:
            self._resolve(job)

    def step(self, timeout: float = 0.0) -> int:
        """Advance all requests, waiting at most `timeout` seconds for an event. Returns how many requests ended."""
        self._run_timers()
        self._fill()
        for curl, code, text in self._loop.step(0.0 if self._settled else self._wait_at_most(timeout)):
            transfer, job = self._busy.pop(curl)
            self._transferred(transfer, job, code, text)
        self._resolver.expire()
        self._run_timers()
        self._fill()
        settled, self._settled = self._settled, []
        self.in_flight -= len(settled)
        for job, result in settled:
            job.done(result)
        return len(settled)

    def wake(self) -> None:
        """End a running `step` early; may be called from another thread."""
        self._resolver.ring()

    def close(self) -> None:
        """Drop what is in flight, without calling `done`, and close all connections."""
        for transfer, _ in self._busy.values():
            self._loop.remove(transfer.curl)
            transfer.curl.close()
        for transfer in self._idle:
            transfer.curl.close()
        self._busy.clear()
        self._idle.clear()
        self._timers.clear()
        self._queue.clear()
        self._settled.clear()
        self.in_flight = 0
        self._loop.close()
        self._resolver.close()

    def _wait_at_most(self, timeout: float) -> float:
        """`timeout`, or less if a timer or a DNS deadline comes first."""
        if self._timers:
            timeout = min(timeout, self._timers[0][0] - self._monotonic())
        deadline = self._resolver.next_deadline()
        if deadline is not None:
            timeout = min(timeout, deadline - self._monotonic())
        return max(0.0, timeout)

    def _later(self, at: float, stage: Callable[[_Job], None], job: _Job) -> None:
        if job.working_since is not None:
            job.seconds += self._monotonic() - job.working_since
            job.working_since = None
        heapq.heappush(self._timers, (at, next(self._sequence), stage, job))

    def _run_timers(self) -> None:
        now = self._monotonic()
        while self._timers and self._timers[0][0] <= now:
            _, _, stage, job = heapq.heappop(self._timers)
            stage(job)

    def _resolve(self, job: _Job) -> None:
        if job.working_since is None:
            job.working_since = self._monotonic()
        slash = job.url.find("/", job.url.find("//") + 2)
        destination = self.guard.destination(job.url if slash < 0 else job.url[:slash])
        if destination.refusal is not None:
            return self._fail(job, "guard", destination.refusal)
        job.name = destination.name
        if destination.addresses:
            return self._resolved(job, destination.addresses)
        if self._proxy is not None and self._proxy.resolves:
            return self._left_to_proxy(job)
        cached = self._resolver.cached(job.name)
        if cached is not None:
            return self._answered(job, cached)
        return self._resolver.ask(job.name, lambda answer: self._answered(job, answer))

    def _answered(self, job: _Job, answer: DnsAnswer) -> None:
        if answer.addresses:
            self._resolved(job, answer.addresses)
        else:
            self._fail(job, "dns", f"{job.name}: {answer.error}")

    def _left_to_proxy(self, job: _Job) -> None:
        """Take a turn at the name: its addresses are not known here."""
        refusal = local_name(job.name)
        if refusal is not None:
            return self._fail(job, "guard", f"{job.name}: {refusal}")
        job.addresses = (job.name,)
        return self._take_turn(job)

    def _resolved(self, job: _Job, addresses: tuple[str, ...]) -> None:
        """Keep the addresses that the guard permits, and take a turn at the first of them."""
        job.addresses, refusal = self.guard.permitted(addresses)
        if not job.addresses:
            return self._fail(job, "guard", f"{job.name}: {refusal}")
        return self._take_turn(job)

    def _take_turn(self, job: _Job) -> None:
        now = self._monotonic()
        at = self._addresses.reserve(job.addresses[0], now) if job.request.paced else now
        expires = job.request.expires
        if is_too_late(job.request, self._now() + (at - now)):
            return self._unsent(job)
        if expires and self._now() + (at - now) + self._limits.total_seconds > expires:
            message = "the lease would end before the turn of this address comes"
            return self._fail(job, "timeout", message, transient=True)
        if at > now:
            return self._later(at, self._ready, job)
        return self._ready(job)

    def _ready(self, job: _Job) -> None:
        """Start a job whose turn it is; without a free handle it queues, and takes another turn later."""
        if len(self._busy) < self._limits.connections and not self._queue:
            self._start(job)
        else:
            heapq.heappush(self._queue, (job.request.priority, next(self._sequence), job))

    def _fill(self) -> None:
        while self._queue and len(self._busy) < self._limits.connections:
            job = heapq.heappop(self._queue)[2]
            now = self._monotonic()
            at = self._addresses.reserve(job.addresses[0], now) if job.request.paced else now
            if at > now:
                self._later(at, self._ready, job)
            else:
                self._start(job)

    def _start(self, job: _Job) -> None:
        request, now, limit = job.request, self._now(), self._limits.total_seconds
        if is_too_late(request, now):
            return self._unsent(job)
        job.working_since = self._monotonic()
        if (
            request.expires and now - _LATE + limit > request.expires
        ):  # in time for its turn, but the machine was paused
            return self._fail(job, "timeout", "the lease would end before the request could", transient=True)
        if job.seconds >= limit:
            return self._fail(job, "timeout", f"not finished within {limit:g} s")
        credentials = self._sign_in.of(job.url) if self._sign_in.is_used else NOTHING
        is_special = bool(credentials.certificate)
        transfer = self._idle.pop() if self._idle and not is_special else self._new_transfer(credentials.certificate)
        lines = self._lines.get(request.accept)
        if lines is None:
            plain = FetchRequest(href="", accept=request.accept)
            lines = self._lines[request.accept] = (*self._identity, *header_lines(plain))
        if request.etag or request.last_modified or request.headers:
            lines = (*self._identity, *header_lines(request))
        if credentials.lines:
            lines = (*lines, *credentials.lines)
        if self._signer is not None:
            lines = (*lines, *self._signer.lines(job.url))
        transfer.prepare(request, job.url, self._address(job), lines, limit - job.seconds)
        job.sent_at = job.sent_at or now
        self._busy[transfer.curl] = (transfer, job)
        return self._loop.add(transfer.curl)

    def _address(self, job: _Job) -> str:
        """Where the request goes; "" if only the proxy knows."""
        address = job.addresses[0]
        return "" if self._proxy is not None and address == job.name and literal(address) is None else address

    def _new_transfer(self, certificate: str) -> Transfer:
        proxy = self._proxy
        verdict = self.guard.address_verdict if proxy is None else proxy.verdict
        return Transfer(self._limits, verdict, self._ca_file, proxy, certificate, self._now)

    def _transferred(self, transfer: Transfer, job: _Job, code: int, text: str) -> None:
        body = transfer.body
        if body is None or not body.decoded:
            transfer.finish_headers()
        if self._signer is not None:
            self._signer.answered(job.url, transfer.headers)
        if transfer.verdict == TOO_LATE:
            self._unsent(job)
        elif code and not transfer.verdict:
            self._broken(transfer, job, code, text)
        elif isinstance(transfer.verdict, tuple):
            self._fail(job, *transfer.verdict, status=transfer.status, headers=transfer.headers)
        elif transfer.status < 300:
            self._settled.append((job, self._page(transfer, job)))
        else:
            self._redirected_or_refused(transfer, job)
        transfer.clear()
        if job.request.method == "GET" and not transfer.certificate:
            self._idle.append(transfer)
        else:  # the options of such a handle would have to be undone
            transfer.curl.close()

    def _broken(self, transfer: Transfer, job: _Job, code: int, text: str) -> None:
        kind, message = of_curl(code, text, self._limits)
        if self._proxy is not None and (fault := refusal_of(0, text)):
            self._fail(job, "connect", fault)
        elif kind == "connect" and not transfer.status and len(job.addresses) > 1:
            self._resolver.demote(job.name, job.addresses[0])
            self._resolved(job, job.addresses[1:])
        else:
            self._fail(job, kind, message, status=transfer.status, headers=transfer.headers)

    def _redirected_or_refused(self, transfer: Transfer, job: _Job) -> None:
        """A status of 300 or more."""
        status = transfer.status
        location = next((value for key, value in transfer.headers if key == "location"), "")
        if status in REDIRECTS and location:
            target = resolve(location, job.url)
            hop = Hop(job.url, status, target or location[:2083])
            job.hops = (*job.hops, hop)
            if job.request.redirects:
                return self._hop(job, target)
        if status == 407 and self._proxy is not None:
            return self._fail(job, "connect", refusal_of(status, ""))
        if status >= 400:
            pause = retry_after(next((v for k, v in transfer.headers if k == "retry-after"), ""), self._now())
            return self._fail(
                job,
                "status",
                f"HTTP {status}",
                transient=status_is_transient(status),
                status=status,
                pause=pause,
                headers=transfer.headers,
            )
        return self._settled.append((job, self._page(transfer, job)))

    def _hop(self, job: _Job, target: str | None) -> None:
        """Follow a redirect: back to the guard."""
        refusal = refused_hop(job.request, job.hops, target)
        if refusal is not None:
            return self._fail(job, *refusal)
        job.url = without_login(job.hops[-1].location)
        return self._resolve(job)

    def _page(self, transfer: Transfer, job: _Job) -> Page:
        body = transfer.body
        findings: tuple[Finding, ...] = ()
        cut = transfer.verdict == "cut"
        if cut:
            most = job.request.max_bytes or self._limits.body_bytes
            text = f"the body was cut after {most} bytes (limits.body_bytes)"
            findings = (Finding("fetch-cut", text, "warning", "fetch"),)
        elif body is not None and body.incomplete():
            cut = True
            findings = (Finding("fetch-incomplete", "the compressed body ends too early", "warning", "fetch"),)
        return Page(
            url=job.request.href,
            final_url=job.url,
            status=transfer.status,
            headers=transfer.headers,
            body=body.bytes() if body is not None else b"",
            fetched_at=job.sent_at,
            seconds=job.seconds + self._monotonic() - (job.working_since or 0.0),
            address=transfer.address,
            http_version=transfer.http_version,
            hops=job.hops,
            truncated=cut,
            findings=findings,
            wire_bytes=transfer.header_bytes + (body.wire if body is not None else 0),
        )

    def _unsent(self, job: _Job) -> None:
        """Nothing was sent, so it took no time: that tells it apart from a host that does not answer."""
        job.working_since, job.seconds = None, 0.0
        self._fail(job, *TOO_LATE, transient=True)

    def _fail(
        self,
        job: _Job,
        kind: FailureKind,
        message: str,
        *,
        transient: bool | None = None,
        status: int = 0,
        pause: float | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        failure = make_failure(
            job.request.href,
            kind,
            message,
            fetched_at=job.sent_at or self._now(),
            seconds=job.seconds + (self._monotonic() - job.working_since if job.working_since is not None else 0.0),
            transient=transient,
            status=status,
            retry_after=pause,
            address=self._address(job) if job.addresses else "",
            hops=job.hops,
            headers=headers,
        )
        self._settled.append((job, failure))
