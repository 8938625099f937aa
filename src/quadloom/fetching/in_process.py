"""A transport without a network: a plain function answers the requests, in the same process.

For tests, simulations and replays. The function returns a `Page` as one server would send it, with the body decoded;
this module adds what a transport owes its caller: the guard, redirects hop by hop, limits, `not_before`. There is no
clock of addresses, because nobody is asked.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from itertools import count

import msgspec

from quadloom.fetching.guard import Guard, origin_of
from quadloom.fetching.politeness import retry_after
from quadloom.fetching.transport import (
    REDIRECTS,
    TOO_LATE,
    Done,
    FetchRequest,
    Headers,
    Result,
    is_too_late,
    make_failure,
    refused_hop,
    refused_response,
    status_is_transient,
    without_login,
)
from quadloom.model.finding import Finding
from quadloom.model.page import FailureKind, Hop, Page
from quadloom.model.url import resolve
from quadloom.process.clock import unix_time
from quadloom.settings import Settings

Responder = Callable[[FetchRequest], Result]
"""Answers one request, redirects not followed. `fetched_at` 0 = now; `seconds` = how long the answer took."""

_LATE = 1.0  # seconds after its turn within which a request may still begin


class InProcessTransport:
    """See `quadloom.fetching.transport.Transport`. An exception that `respond` raises is a defect and passes through.

    `clock` is unix time. `sleep` is called to wait for a request that is not due yet; a simulation passes a function
    that moves its clock. Without it, `step` really waits, and `wake` ends the wait.
    """

    def __init__(
        self,
        settings: Settings,
        respond: Responder,
        *,
        clock: Callable[[], float] = unix_time,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._limits = settings.limits
        self._guard = Guard(settings.guard)
        self._respond = respond
        self._clock = clock
        self._sleep = sleep or self._wait
        self._woken = threading.Event()
        self._sequence = count()
        self._waiting: list[tuple[float, int, FetchRequest, Done]] = []  # by `not_before`
        self.in_flight = 0

    def submit(self, request: FetchRequest, done: Done) -> None:
        """Accept a request. A later `step` calls `done`."""
        heapq.heappush(self._waiting, (request.not_before, next(self._sequence), request, done))
        self.in_flight += 1

    def step(self, timeout: float = 0.0) -> int:
        """Answer what is due, the most urgent first; if nothing is, wait at most `timeout` seconds for it."""
        if timeout > 0 and not self._is_due():
            pause = timeout
            if self._waiting:
                pause = min(timeout, self._waiting[0][0] - self._clock())
            self._sleep(max(0.0, pause))
        due: list[tuple[int, int, FetchRequest, Done]] = []
        while self._is_due():
            _, number, request, done = heapq.heappop(self._waiting)
            due.append((request.priority, number, request, done))
        for _, _, request, done in sorted(due, key=lambda entry: entry[:2]):
            result = self._result(request)
            self.in_flight -= 1
            done(result)
        return len(due)

    def wake(self) -> None:
        """End a running `step` early; may be called from another thread."""
        self._woken.set()

    def close(self) -> None:
        """Drop what is in flight, without calling `done`."""
        self._waiting.clear()
        self.in_flight = 0
        self._woken.set()

    def _wait(self, seconds: float) -> None:
        self._woken.wait(seconds)
        self._woken.clear()

    def _is_due(self) -> bool:
        return bool(self._waiting) and self._waiting[0][0] <= self._clock()

    def _result(self, request: FetchRequest) -> Result:
        now = self._clock()
        if is_too_late(request, now):
            return make_failure(request.href, *TOO_LATE, transient=True, fetched_at=now)
        if request.expires and now - _LATE + self._limits.total_seconds > request.expires:
            message = "the lease would end before the request could"
            return make_failure(request.href, "timeout", message, transient=True, fetched_at=now)
        return self._follow(_Exchange(request, now))

    def _follow(self, exchange: _Exchange) -> Result:
        while True:
            request = exchange.request
            reason = self._refused_address(exchange)
            if reason is not None:
                return exchange.failure("guard", reason)
            if exchange.url != request.href:
                request = msgspec.structs.replace(request, href=exchange.url)
            answer = self._respond(request)
            if not isinstance(answer, Page):
                at = answer.fetched_at or exchange.started
                hops = (*exchange.hops, *answer.hops)
                return msgspec.structs.replace(answer, url=exchange.request.href, fetched_at=at, hops=hops)
            exchange.seconds += answer.seconds
            refusal = self._refused_answer(exchange, answer)
            if refusal is not None:
                return exchange.failure(*refusal, answer)
            location = answer.header("location")
            if answer.status in REDIRECTS and location:
                target = resolve(location, exchange.url)
                exchange.hops = (*exchange.hops, Hop(exchange.url, answer.status, target or location[:2083]))
                if not request.redirects:
                    return self._page(exchange, answer)
                refusal = refused_hop(exchange.request, exchange.hops, target)
                if refusal is not None:
                    return exchange.failure(*refusal, answer)
                exchange.url = without_login(exchange.hops[-1].location)
                continue
            if answer.status >= 400:
                return self._status(exchange, answer)
            exchange.hops = (*exchange.hops, *answer.hops)  # followed when the response was archived
            exchange.url = answer.final_url
            return self._page(exchange, answer)

    def _refused_address(self, exchange: _Exchange) -> str | None:
        """What the guard has against the URL, or against the address that it or `guard.hosts` spells out."""
        destination = self._guard.destination(origin_of(exchange.url))
        if destination.refusal is not None or not destination.addresses:
            return destination.refusal
        exchange.address = destination.addresses[0]
        reason = self._guard.address_verdict(exchange.address)
        return None if reason is None else f"{destination.name}: {exchange.address} is {reason}"

    def _refused_answer(self, exchange: _Exchange, answer: Page) -> tuple[FailureKind, str] | None:
        limits = self._limits
        if exchange.seconds > limits.total_seconds:
            return "timeout", f"not finished within {limits.total_seconds:g} s (limits.total_seconds)"
        return refused_response(exchange.request, answer.status, answer.headers, _size(answer.headers), limits)

    def _status(self, exchange: _Exchange, answer: Page) -> Result:
        return exchange.failure(
            "status",
            f"HTTP {answer.status}",
            answer,
            transient=status_is_transient(answer.status),
            pause=retry_after(answer.header("retry-after"), self._clock()),
        )

    def _page(self, exchange: _Exchange, answer: Page) -> Page:
        request = exchange.request
        most = request.max_bytes or self._limits.body_bytes
        body = b"" if request.method == "HEAD" else answer.body
        findings = answer.findings
        truncated = answer.truncated
        if len(body) > most:
            body = body[:most]
            truncated = True
            text = f"the body was cut after {most} bytes (limits.body_bytes)"
            findings = (*findings, Finding("fetch-cut", text, "warning", "fetch"))
        wire_bytes = answer.wire_bytes or _size(answer.headers) + len(body)
        if request.sink is not None and 200 <= answer.status < 300:
            request.sink(body)
            body = b""
        return msgspec.structs.replace(
            answer,
            url=request.href,
            final_url=exchange.url,
            body=body,
            fetched_at=answer.fetched_at or exchange.started,
            seconds=exchange.seconds,
            address=answer.address or exchange.address,
            hops=exchange.hops,
            truncated=truncated,
            findings=findings,
            wire_bytes=wire_bytes,
        )


class _Exchange:
    """One request with its hops so far."""

    __slots__ = ("address", "hops", "request", "seconds", "started", "url")

    def __init__(self, request: FetchRequest, started: float) -> None:
        self.request = request
        self.started = started
        self.url = without_login(request.href)  # of this hop
        self.hops: tuple[Hop, ...] = ()
        self.seconds = 0.0
        self.address = ""

    def failure(
        self,
        kind: FailureKind,
        message: str,
        answer: Page | None = None,
        *,
        transient: bool | None = None,
        pause: float | None = None,
    ) -> Result:
        return make_failure(
            self.request.href,
            kind,
            message,
            fetched_at=answer.fetched_at or self.started if answer is not None else self.started,
            seconds=self.seconds,
            transient=transient,
            status=answer.status if answer is not None else 0,
            retry_after=pause,
            address=self.address,
            hops=self.hops,
            headers=answer.headers if answer is not None else (),
        )


def respond(
    request: FetchRequest, body: bytes = b"", *, status: int = 200, headers: Headers = (), seconds: float = 0.0
) -> Page:
    """A response of a `Responder`: 304 if the request is conditional and its validators still hold."""
    page = Page(request.href, request.href, status, headers, body, 0.0, seconds)
    return not_modified(page) if matches_validators(request, page) else page


def matches_validators(request: FetchRequest, page: Page) -> bool:
    """Whether a conditional request has this version already. RFC 9110 13.2.2: If-None-Match goes first."""
    if page.status != 200:
        return False
    if request.etag:
        tag = page.header("etag").removeprefix("W/")
        return bool(tag) and request.etag.removeprefix("W/") == tag
    return bool(request.last_modified) and _not_later(page.header("last-modified"), request.last_modified)


def not_modified(page: Page) -> Page:
    """The 304 response for a version that the client has."""
    headers = tuple((name, value) for name, value in page.headers if name in ("etag", "last-modified"))
    return msgspec.structs.replace(page, status=304, headers=headers, body=b"", truncated=False, wire_bytes=0)


def _not_later(last_modified: str, since: str) -> bool:
    try:
        return parsedate_to_datetime(last_modified) <= parsedate_to_datetime(since)
    except (ValueError, TypeError):
        return False  # RFC 9110 13.1.3: an invalid date is ignored


def _size(headers: Headers) -> int:
    return sum(len(name) + len(value) + 4 for name, value in headers)
