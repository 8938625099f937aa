"""The process that asks services for all transform workers, and the owner's end of it.

It is started with the first page that a service takes, so a crawl without services has none. If it dies, it is started
again and gets once more what it had in hand; a call that is lost twice is answered with the reason.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

import msgspec

from quadloom.crawling.workers.services.balance import ServiceCall
from quadloom.crawling.workers.services.client import ServiceClient
from quadloom.crawling.workers.services.command import kill_all
from quadloom.model import wire
from quadloom.model.event import EventKind
from quadloom.model.service import InstanceLoad, ServiceAnswer, ServiceRequest
from quadloom.process import threads
from quadloom.process.channel import Channel, ChannelClosed, ChildProcess, ProcessHeartbeat, attach, start
from quadloom.process.restarts import Restarts
from quadloom.settings import Settings

_LIVES = 2  # times that a call is sent
_REPORT_SECONDS = 0.5


class ServiceOrder(msgspec.Struct, frozen=True, array_like=True):
    """A document that a service should read. `key` comes back with the answer."""

    key: int
    request: ServiceRequest
    body: bytes


class ServiceMessage(msgspec.Struct, frozen=True, array_like=True):
    """Answers by key, what a person should know, and the load of all instances if it has changed."""

    answers: tuple[tuple[int, ServiceAnswer], ...] = ()
    notices: tuple[str, ...] = ()
    loads: tuple[InstanceLoad, ...] = ()


class _InHand:
    __slots__ = ("lives", "order")

    def __init__(self, order: ServiceOrder) -> None:
        self.order = order
        self.lives = _LIVES


class ServiceProcess:
    """`ask` from any thread; `answered` is called from a thread of its own, once for each key, until `close`."""

    def __init__(
        self,
        settings: Settings,
        answered: Callable[[int, ServiceAnswer], None],
        notice: Callable[[EventKind, str], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._settings = settings
        self._answered = answered
        self._notice = notice
        self._failed = failed
        self._lock = threading.Lock()
        self._in_hand: dict[int, _InHand] = {}
        self._orders: queue.SimpleQueue[ServiceOrder | None] = queue.SimpleQueue()
        self._restarts = Restarts("services")
        self._spent_cpu = 0.0
        self.loads: tuple[InstanceLoad, ...] = ()
        self._child = self._start()
        # Sent by a thread: neither the owner nor the watchdog of the workers may wait for a full channel.
        self._sender = threads.start("service-sender", self._send, failed)

    @property
    def in_hand(self) -> int:
        return len(self._in_hand)

    def ask(self, key: int, request: ServiceRequest, body: bytes) -> None:
        order = ServiceOrder(key, request, body)
        with self._lock:
            self._in_hand[key] = _InHand(order)
        self._orders.put(order)

    def cpu_seconds(self) -> float:
        return self._spent_cpu + self._child.cpu_seconds()

    def heartbeat(self) -> ProcessHeartbeat:
        return self._child.heartbeat("services", self.in_hand)

    def close(self) -> None:
        """The process ends by itself when its channel does, and ends its commands before."""
        self._restarts.close()
        self._spent_cpu = self.cpu_seconds()
        self._orders.put(None)
        with self._lock:
            child = self._child
            child.channel.shut()
        child.wait()
        child.close()

    def _start(self) -> ChildProcess:
        child = start("quadloom.crawling.workers.services.service_process", self._settings)
        threads.start("service-receiver", lambda: self._receive(child), self._failed)
        return child

    def _send(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                self._child.channel.send(order)
            except ChannelClosed:
                continue  # the receiver sees the death too, and sends again what was in hand

    def _receive(self, child: ChildProcess) -> None:
        ready = False
        try:
            while True:
                message = child.channel.receive(ServiceMessage)
                if not ready:
                    ready = True
                    self._restarts.ready()
                if message.answers:
                    self._restarts.worked()
                if message.loads:
                    self.loads = message.loads
                for text in message.notices:
                    self._notice("notice", text)
                for key, answer in message.answers:
                    self._end(key, answer)
        except ChannelClosed:
            if not self._restarts.is_closed:
                self._replace(child, ready)

    def _end(self, key: int, answer: ServiceAnswer) -> None:
        with self._lock:
            known = self._in_hand.pop(key, None)
        if known is not None:
            self._answered(key, answer)

    def _replace(self, dead: ChildProcess, ready: bool) -> None:
        self._spent_cpu += dead.cpu_seconds()
        cause = dead.wait().describe(0.0, 0)
        lost = self._restarts.start_again(self._start_another, was_ready=ready, cause=cause)
        if lost is None:
            return
        dead.close()
        self._notice("worker-killed", "the services process died and was started again")
        for call in lost:
            call.lives -= 1
            if call.lives > 0:
                self._orders.put(call.order)
            else:
                answer = ServiceAnswer(call.order.request.service, None, "the process that asks it died twice")
                self._end(call.order.key, answer)

    def _start_another(self) -> list[_InHand]:
        """The calls that the dead process had in hand."""
        with self._lock:
            self._child = self._start()
            return list(self._in_hand.values())


def main() -> None:
    channel = attach(kill_all)
    notices: list[str] = []
    client = ServiceClient(channel.receive(Settings), notices.append)
    channel.send(ServiceMessage())  # ready
    orders: queue.SimpleQueue[ServiceOrder] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(channel, orders, client), daemon=True).start()
    reported = 0.0
    known: tuple[InstanceLoad, ...] = ()
    try:
        while True:
            while not orders.empty():
                order = orders.get()
                client.submit(ServiceCall(order.key, order.request, order.body))
            answers = tuple(client.step())
            loads: tuple[InstanceLoad, ...] = ()
            if time.monotonic() - reported >= _REPORT_SECONDS and (newest := tuple(client.loads())) != known:
                reported, known, loads = time.monotonic(), newest, newest
            for answer in answers:  # one message each: a message is a copy of all its bodies
                channel.send(ServiceMessage((answer,)))
            if notices or loads:
                channel.send(ServiceMessage((), tuple(notices), loads))
                notices.clear()
    except ChannelClosed:
        kill_all()


def _read(channel: Channel, orders: queue.SimpleQueue[ServiceOrder], client: ServiceClient) -> None:
    """Runs in a thread, so that orders are read even while the loop is sending."""
    try:
        while True:
            orders.put(wire.decode(channel.receive_bytes(), ServiceOrder))
            client.wake()
    except ChannelClosed:
        return  # the watch of the owner ends this process


if __name__ == "__main__":
    main()
