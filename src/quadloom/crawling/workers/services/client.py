"""Asks services over HTTP and runs commands, many at once in one thread.

Requests go through the guarded client. The user names the services, so they may be on private addresses too.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from quadloom.crawling.workers.services.balance import CallOutcome, Instance, ServiceBalance, ServiceCall, slots_of
from quadloom.crawling.workers.services.command import kill_all, run_command
from quadloom.documents.syntaxes.external import ACCEPT, MAX_ANSWER_BYTES
from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.transport import FetchRequest, Result
from quadloom.model.page import Failure
from quadloom.model.service import InstanceLoad, ServiceAnswer, ServiceReply, ServiceRequest
from quadloom.settings import FetchSettings, Settings

_EVERYWHERE = ["0.0.0.0/0", "::/0"]
_IDLE = 1.0  # seconds; `wake` ends the wait
_SHARED = 0.01  # seconds to wait in each, if there are several transports

Ended = tuple[ServiceBalance, Instance, ServiceCall, CallOutcome, float]


class ServiceClient:
    """`submit` calls, then `step` for their answers. One thread; only `wake` from any.

    Guarantees: each call is answered exactly once, unless `close` comes first; no instance has more requests than
    `parallel`; no request takes longer than `timeout` or brings more than `MAX_ANSWER_BYTES`.
    """

    def __init__(
        self,
        settings: Settings,
        notice: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._notice = notice
        self._clock = clock
        self._balances = [ServiceBalance(service, clock) for service in settings.service]
        self._transports: dict[float, CurlTransport] = {}  # by the timeout, which is a limit of the whole transport
        self._ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self._resting: set[str] = set()
        self._runners: ThreadPoolExecutor | None = None
        # Also without any URL: its `step` is what this thread waits in.
        for seconds in {service.timeout for service in settings.service if service.url} or {_IDLE}:
            slots = sum(slots_of(service) for service in settings.service if service.timeout == seconds)
            self._transports[seconds] = CurlTransport(_for_services(settings, seconds, slots))

    def submit(self, call: ServiceCall) -> None:
        self._balances[call.request.service].add(call)

    def step(self, timeout: float = _IDLE) -> list[tuple[int, ServiceAnswer]]:
        """Advance all calls, waiting at most `timeout` seconds. Returns the answers with the keys of their calls."""
        self._start()
        waits = [at - self._clock() for balance in self._balances if (at := balance.next_at()) is not None]
        timeout = max(0.0, min([timeout, *waits]))
        for transport in self._transports.values():
            transport.step(timeout if len(self._transports) == 1 else min(timeout, _SHARED))
        answers = []
        while not self._ended.empty():
            balance, instance, call, outcome, began = self._ended.get()
            if balance.ended(instance, call, outcome, began):
                answers.append((call.key, _answer(call, instance, outcome)))
            self._tell(instance, outcome)
        self._start()
        for balance in self._balances:
            answers += [(call.key, _abandoned(call)) for call in balance.given_up()]
        return answers

    def wake(self) -> None:
        for transport in self._transports.values():
            transport.wake()

    def loads(self) -> list[InstanceLoad]:
        return [load for balance in self._balances for load in balance.loads()]

    def close(self) -> None:
        if self._runners is not None:
            kill_all()
            self._runners.shutdown(cancel_futures=True)
        for transport in self._transports.values():
            transport.close()

    def _start(self) -> None:
        for balance in self._balances:
            for instance, call in balance.starts():
                began = instance.in_progress[-1]
                self._send(balance, instance, call, began)

    def _send(self, balance: ServiceBalance, instance: Instance, call: ServiceCall, began: float) -> None:
        if balance.service.command:
            self._executor().submit(self._run, balance, instance, call, began)
            return
        request = FetchRequest(
            href=instance.url,
            accept=ACCEPT,
            method="POST",
            payload=call.body,
            headers=(("content-type", call.request.media_type), ("content-location", call.request.url)),
            max_bytes=MAX_ANSWER_BYTES,
        )
        self._transports[balance.service.timeout].submit(
            request, lambda result: self._ended.put((balance, instance, call, _outcome(result), began))
        )

    def _run(self, balance: ServiceBalance, instance: Instance, call: ServiceCall, began: float) -> None:
        """A command, in a thread that does nothing but wait for it."""
        try:
            outcome = run_command(balance.service, call.request, call.body)
        except OSError as error:  # no room for its files, no process left
            outcome = CallOutcome(None, f"{instance.url}: {error}", absent=True)
        self._ended.put((balance, instance, call, outcome, began))
        self.wake()

    def _executor(self) -> ThreadPoolExecutor:
        if self._runners is None:
            most = sum(slots_of(service) for service in self._settings.service if service.command)
            self._runners = ThreadPoolExecutor(most, "command")
        return self._runners

    def _tell(self, instance: Instance, outcome: CallOutcome) -> None:
        """A notice when an instance begins to rest, and when it is back."""
        if instance.rest and instance.url not in self._resting:
            self._resting.add(instance.url)
            self._notice(f"service {instance.url} failed {instance.failures} times in a row: {outcome.reason}")
        elif not instance.rest and instance.url in self._resting:
            self._resting.discard(instance.url)
            self._notice(f"service {instance.url} answers again")


def ask_now(settings: Settings, body: bytes, requests: Sequence[ServiceRequest]) -> tuple[ServiceAnswer, ...]:
    """The answers to the requests of one document, for a caller that can do nothing without them. It does not wait for
    services that are away."""
    at_once = [msgspec.structs.replace(service, patience=0.0) for service in settings.service]
    client = ServiceClient(msgspec.structs.replace(settings, service=at_once))
    try:
        for key, request in enumerate(requests):
            client.submit(ServiceCall(key, request, body))
        answers: dict[int, ServiceAnswer] = {}
        while len(answers) < len(requests):
            answers.update(client.step())
        return tuple(answers[key] for key in range(len(requests)))
    finally:
        client.close()


def _outcome(result: Result) -> CallOutcome:
    if isinstance(result, Failure):
        if result.status:
            reason = f"{result.url} answered {result.status}"
            return CallOutcome(ServiceReply(result.status, "", b""), reason)
        return CallOutcome(None, f"{result.url}: {result.message}", absent=result.kind in ("connect", "dns"))
    if result.truncated:
        return CallOutcome(None, f"{result.url}: the answer has more than {MAX_ANSWER_BYTES} bytes")
    return CallOutcome(
        ServiceReply(result.status, result.content_type, result.body), f"{result.url} answered {result.status}"
    )


def _answer(call: ServiceCall, instance: Instance, outcome: CallOutcome) -> ServiceAnswer:
    if outcome.reply is not None and outcome.reply.status < 300:
        return ServiceAnswer(call.request.service, outcome.reply)
    return ServiceAnswer(call.request.service, None, outcome.reason or f"{instance.url} failed")


def _abandoned(call: ServiceCall) -> ServiceAnswer:
    reason = "it has no instance that may be asked now" + (f"; last: {call.reason}" if call.reason else "")
    return ServiceAnswer(call.request.service, None, reason)


def _for_services(settings: Settings, seconds: float, slots: int) -> Settings:
    """The client's limits: those of the service, for addresses that the user has named, without the proxy that leads
    out of the network and without what the user's sites ask for."""
    limits = msgspec.structs.replace(
        settings.limits, total_seconds=seconds, low_speed_seconds=seconds, connections=max(1, slots)
    )
    return msgspec.structs.replace(
        settings,
        limits=limits,
        guard=msgspec.structs.replace(settings.guard, allow=_EVERYWHERE, ports=[]),
        politeness=msgspec.structs.replace(settings.politeness, ip_delay=0.0),
        fetch=FetchSettings(),
        site=[],
    )
