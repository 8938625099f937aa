"""Webhooks whose receivers, names and numbers are hostile: memory and time stay bounded, nothing private is asked, and
those that answer get their notices."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from quadloom.crawling.subscriptions.webhooks import WebhookDeliverer, message
from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.in_process import InProcessTransport, respond
from quadloom.fetching.transport import FetchRequest, Transport
from quadloom.model.event import Notice
from quadloom.model.page import Page
from quadloom.model.subscription import Subscription
from quadloom.settings import GuardSettings, LimitSettings, PolitenessSettings, Settings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.protocols.quads import Difference
from quadloom_lab.memory.catalog import MemoryCatalog
from quadloom_lab.memory.frontier import MemoryFrontier
from quadloom_lab.memory.outbox import MemoryOutbox
from servers import free_port

NOW = 1_700_000_000.0
SETTINGS = Settings(
    guard=GuardSettings(allow=["127.0.0.1/32"]),
    politeness=PolitenessSettings(ip_delay=0.0),
    limits=LimitSettings(total_seconds=1.0, dns_ttl=0.0),
)
SMALL = Difference(("a",), ())
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


class Flood:
    """One notice for each of many subscriptions, and what is in flight when a message is added."""

    def __init__(self, transport: Transport, difference: Difference = SMALL) -> None:
        self.outbox = MemoryOutbox(MemoryCatalog(MemoryFrontier(FrontierPolicy(), now=NOW)))
        self.now = NOW
        self.most = 0
        self._transport = transport
        self._difference = difference
        self.deliverer = WebhookDeliverer(self.outbox, transport, self._difference_of, lambda: self.now)

    def add(self, *subscriptions: Subscription) -> list[Subscription]:
        self.outbox.append([Notice(at=NOW, subscription=item.id, kind="new", url="u") for item in subscriptions])
        return list(subscriptions)

    def _difference_of(self, _: Notice) -> Difference:
        self.most = max(self.most, self._transport.in_flight + 1)
        return self._difference


def subscription(id: str, webhook: str) -> Subscription:
    return Subscription(id=id, sites=("a.example",), webhook=webhook, secret="of the test")


def fine(request: FetchRequest) -> Page:
    return respond(request, b"", status=204)


def test_those_that_are_due_at_once_are_sent_some_at_a_time() -> None:
    flood = Flood(InProcessTransport(SETTINGS, fine))
    due = flood.add(*(subscription(f"s{number}", "http://127.0.0.1/") for number in range(2000)))
    assert flood.deliverer.turn(due) == 2000
    assert flood.most <= 256


def test_large_messages_are_cut_and_fewer_of_them_are_in_flight() -> None:
    lines = tuple(f"{number}{'x' * 30_000}" for number in range(500))
    sent = message(Notice(at=NOW, subscription="s", kind="new"), Difference(lines, lines))
    assert len(sent.added) == len(sent.removed) == 33 and sent.more == 2 * 467
    flood = Flood(InProcessTransport(SETTINGS, fine), Difference(lines, lines))
    due = flood.add(*(subscription(f"s{number}", "http://127.0.0.1/") for number in range(60)))
    assert flood.deliverer.turn(due) == 60
    assert flood.most <= 18, "two megabytes each, and no more than 32 together"


def test_receivers_that_fail_come_after_those_that_answer_and_each_has_its_turn() -> None:
    asked: list[str] = []
    ends = False

    def answer(request: FetchRequest) -> Page:
        asked.append(request.href)
        if ends:
            flood.now += 10.0  # longer than a turn
        return respond(request, b"", status=500 if "bad" in request.href else 204)

    flood = Flood(InProcessTransport(SETTINGS, answer))
    bad = [subscription(f"bad{number}", f"http://127.0.0.1/bad{number}") for number in range(300)]
    good = [subscription(f"good{number}", f"http://127.0.0.1/good{number}") for number in range(300)]
    flood.add(*bad, *good)
    assert flood.deliverer.turn([*bad, *good]) == 300
    flood.add(*bad, *good)
    flood.now += 20.0
    asked.clear()
    flood.deliverer.turn([*bad, *good])
    assert all("good" in href for href in asked[:256])
    ends = True
    flood.add(*good)
    served: set[str] = set()
    for _ in range(3):
        asked.clear()
        flood.deliverer.turn(good)
        assert asked and not served & set(asked), "a turn goes on where the last one ended"
        served |= set(asked)
        if len(served) == 300:
            break
    assert len(served) == 300


def test_a_subscription_that_is_added_again_has_no_pause_of_its_predecessor() -> None:
    statuses = [500, 204]
    flood = Flood(InProcessTransport(SETTINGS, lambda request: respond(request, b"", status=statuses.pop(0))))
    (item,) = flood.add(subscription("s", "http://127.0.0.1/"))
    assert flood.deliverer.turn([item]) == 0
    flood.outbox.forget_delivery("s")
    flood.deliverer.turn([])
    assert flood.deliverer.turn([item]) == 1


@contextmanager
def answering(
    answer: Callable[[socket.socket], None], address: str = "127.0.0.1", port: int = 0
) -> Iterator[list[int]]:
    """A server which reads the head of a request and calls `answer`. Yields its port, then one number a connection."""
    with socket.create_server((address, port)) as server:
        seen = [server.getsockname()[1]]

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    seen.append(len(seen))
                    with connection, suppress(OSError):
                        connection.settimeout(5.0)
                        while not connection.recv(65536).endswith(b"}"):
                            pass
                        answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield seen
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
    thread.join(10.0)


def gigabyte(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Content-Length: 1000000000\r\n\r\n")
    for _ in range(1000):
        connection.sendall(bytes(1_000_000))


def bomb(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(bytes(20_000_000)))


def wrong_coding(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok")


def drip(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
    for _ in range(50):
        connection.sendall(b".")
        time.sleep(0.1)


def close_early(connection: socket.socket) -> None:
    connection.sendall(HEAD[:10])


def endless_headers(connection: socket.socket) -> None:
    for _ in range(100_000):
        connection.sendall(b"X-A: " + b"a" * 1000 + b"\r\n")


def into_the_network(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 307 Moved\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize("answer", [gigabyte, bomb, wrong_coding, drip])
def test_a_status_acknowledges_whatever_follows_it(answer: Callable[[socket.socket], None]) -> None:
    with closing(CurlTransport(SETTINGS)) as client, answering(answer) as seen:
        flood = Flood(client)
        due = flood.add(subscription("s", f"http://127.0.0.1:{seen[0]}/"))
        assert flood.deliverer.turn(due) == 1
        assert flood.deliverer.turn(due) == 0 and len(seen) == 2, "it is not repeated"


@pytest.mark.parametrize("answer", [close_early, endless_headers, into_the_network])
def test_what_is_no_acknowledgement_is_tried_again_and_its_error_names_no_secret(
    answer: Callable[[socket.socket], None],
) -> None:
    with closing(CurlTransport(SETTINGS)) as client, answering(answer) as seen:
        flood = Flood(client)
        due = flood.add(subscription("s", f"http://127.0.0.1:{seen[0]}/token-in-the-path?key=value"))
        assert flood.deliverer.turn(due) == 0
        failed = flood.outbox.delivery("s")
        assert failed.attempts == 1 and failed.retry_at == NOW + 10.0 and failed.error
        assert not any(word in failed.error for word in ("token-in-the-path", "key=value", "of the test"))


def test_a_name_that_changes_between_two_notices_reaches_nothing_private() -> None:
    answers = ["127.0.0.1", "127.0.0.2", "127.0.0.2"]

    def lookup(name: str) -> list[str]:
        assert name == "receiver.example"
        return [answers.pop(0)]

    port = free_port()
    with (
        answering(lambda _: None, "127.0.0.2", port) as canary,
        answering(lambda c: c.sendall(HEAD + b"Content-Length: 0\r\nConnection: close\r\n\r\n"), port=port) as seen,
        closing(CurlTransport(SETTINGS, lookup=lookup)) as client,
    ):
        flood = Flood(client)
        due = flood.add(subscription("s", f"http://receiver.example:{port}/"))
        assert flood.deliverer.turn(due) == 1 and len(seen) == 2
        flood.add(*due)
        assert flood.deliverer.turn(due) == 0
        assert len(canary) == 1, "no connection came"
        assert "127.0.0.2" in flood.outbox.delivery("s").error
