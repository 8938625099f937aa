"""Silent, slow and many connections: others are served, by the real server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from quadloom.errors import QueryLimit
from quadloom.settings import WebSettings
from quadloom.web.server import connections
from quadloom.web.server.connections import ServerConfig
from quadloom.web.server.errors import HttpError
from quadloom.web.server.security import BodyMemory
from waiting import wait_until

GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF_HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
HALF_BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nhalf of"


class App:
    """`/wait` is answered when `go` is set, `/long` with 64 MB, `/cut` up to an error; everything else at once, after
    its body."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.waiting = 0
        self.long_ended = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        while (message := await receive())["type"] == "http.request" and message.get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/wait":
            self.waiting += 1
            while not self.go.is_set():
                await asyncio.sleep(0.02)
        for _ in range(1024 if scope["path"] == "/long" else 0):
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        if scope["path"] == "/long":
            self.long_ended.set()
        if scope["path"] == "/cut":
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
            raise QueryLimit("the query was ended")
        await send({"type": "http.response.body", "body": b"done"})


class Running:
    def __init__(self, app: App, web: WebSettings) -> None:
        self.app = app
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.place = ("127.0.0.1", int(self._listening.getsockname()[1]))
        self._server = uvicorn.Server(ServerConfig(app, web))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listening]})
        self._clients: list[socket.socket] = []

    def __enter__(self) -> Running:
        self._thread.start()
        wait_until(lambda: self._server.started)
        return self

    def __exit__(self, *_: object) -> None:
        self.app.go.set()
        for client in self._clients:
            client.close()
        self._server.should_exit = True
        self._thread.join(timeout=30)

    def connect(self, sent: bytes = b"") -> socket.socket:
        client = socket.create_connection(self.place, timeout=20)
        self._clients.append(client)
        with contextlib.suppress(ConnectionError):  # the server may have dropped it already
            client.sendall(sent)
        return client

    def get(self, path: bytes = b"/") -> bytes:
        """The response, as it is sent."""
        with socket.create_connection(self.place, timeout=20) as client:
            client.sendall(GET[:-2] % path + b"Connection: close\r\n\r\n")
            return b"".join(iter(lambda: client.recv(65536), b""))

    def wait_busy(self, count: int) -> None:
        wait_until(lambda: self.app.waiting >= count)


@contextlib.contextmanager
def running(**settings: float) -> Iterator[Running]:
    with Running(App(), WebSettings(**settings)) as server:  # type: ignore[arg-type]  # numbers by name
        yield server


def test_a_limit_within_a_response_cuts_it_without_a_traceback(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Otherwise any visitor writes sixty lines to the log with each request."""
    with running() as server:
        answer = server.get(b"/cut")
        assert b"begun" in answer and not answer.endswith(b"0\r\n\r\n"), "the client sees that the end is missing"
        assert server.get().endswith(b"0\r\n\r\n")
    said = "".join((*capfd.readouterr(), caplog.text))
    assert "Traceback" not in said and "ASGI" not in said


def drip(client: socket.socket, byte: bytes) -> None:
    """A byte now and then, which does not help: until the server ends the connection, at most three times its limit."""
    until = time.monotonic() + 1.5
    while byte and time.monotonic() < until:
        time.sleep(0.1)
        try:
            client.sendall(byte)
        except ConnectionError:
            return


def is_ended(client: socket.socket, seconds: float = 20.0) -> bool:
    """Whether the server ends the connection, after what it may still send."""
    client.settimeout(seconds)
    try:
        while client.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("sent", [b"", HALF_HEAD, HALF_BODY], ids=["silent", "half-head", "half-body"])
@pytest.mark.parametrize(
    ("most", "attackers"),
    [(40, 130), pytest.param(1000, 1005, marks=pytest.mark.slow), pytest.param(1000, 3000, marks=pytest.mark.slow)],
)
def test_unfinished_requests_shut_nobody_out(sent: bytes, most: int, attackers: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * attackers + 500  # both ends are in this process
    if soft < needed:
        if hard < needed:
            pytest.skip(f"the system allows only {hard} open files")
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    with running(connections=most) as server:
        for number in range(attackers):
            server.connect(sent)
            if number % (attackers // 5) == 0:
                assert server.get().startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        for path in (b"/", b"/health/live") * 3:
            assert server.get(path).startswith(b"HTTP/1.1 200")
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("sent", [b"", HALF_HEAD, GET % b"/" + HALF_HEAD], ids=["silent", "half", "second"])
def test_a_head_has_its_time(sent: bytes) -> None:
    with running(head_seconds=0.5) as server:
        client = server.connect(sent)
        if sent.startswith(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            while b"done" not in client.recv(65536):
                pass
        drip(client, b"x" if sent else b"")
        assert is_ended(client)
        assert server.get().startswith(b"HTTP/1.1 200")


def test_a_body_has_its_time() -> None:
    with running(body_seconds=0.5) as server:
        client = server.connect(HALF_BODY)
        drip(client, b"x")
        assert is_ended(client)


def test_who_does_not_read_is_dropped() -> None:
    with running(send_seconds=0.6) as server:
        client = server.connect(GET % b"/long")
        assert server.app.long_ended.wait(20), "its handler is released"
        received = 0
        with contextlib.suppress(ConnectionError):
            while part := client.recv(1 << 20):
                received += len(part)
        assert 0 < received < 60 << 20


def test_who_reads_gets_all_and_may_take_long() -> None:
    """The time limits count for what the client has to do, not for the whole exchange."""
    with running(send_seconds=2.0, head_seconds=0.5, body_seconds=0.5) as server:
        waiting = server.connect(GET % b"/wait")
        reading = server.connect(GET % b"/long")
        received = 0
        while received < 64 << 20:
            received += len(reading.recv(1 << 20))
            time.sleep(0.04)  # 64 times: longer than each of the limits
        server.app.go.set()
        waiting.settimeout(10)
        answer = b""
        while b"done" not in answer:
            part = waiting.recv(65536)
            assert part, answer
            answer += part


def test_a_full_server_says_so_and_answers_health_checks() -> None:
    with running(connections=20) as server:
        for _ in range(18):
            server.connect(GET % b"/wait")
        server.wait_busy(18)
        for _ in range(30):
            server.connect()
        refused = server.get(b"/")
        assert refused.startswith(b"HTTP/1.1 503") and b'"hint"' in refused and b"retry-after: 5" in refused.lower()
        assert server.get(b"/health/live").startswith(b"HTTP/1.1 200")
        server.app.go.set()
        until = time.monotonic() + 10
        while not server.get(b"/").startswith(b"HTTP/1.1 200"):
            assert time.monotonic() < until


def test_a_client_has_its_share_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(client_connections=3) as server:
        for _ in range(5):
            server.connect(GET % b"/wait")
        server.wait_busy(5)  # loopback is exempt
    monkeypatch.setattr(connections, "_is_local", lambda _: False)
    with running(client_connections=3) as server:
        silent = [server.connect() for _ in range(3)]
        assert server.get().startswith(b"HTTP/1.1 200"), "in place of the oldest silent one"
        assert is_ended(silent[0], 2) and not is_ended(silent[2], 0.2)
        for _ in range(3):
            server.connect(GET % b"/wait")
        server.wait_busy(3)
        refused = server.get()
        assert refused.startswith(b"HTTP/1.1 429") and b"too many connections" in refused


def test_all_bodies_together_are_limited() -> None:
    memory = BodyMemory(100_000)
    first, second, small = memory.hold(), memory.hold(), memory.hold()
    first.grow(150_000)
    with pytest.raises(HttpError, match="at the same time"):
        second.grow(150_000)
    second.release()
    small.grow(64 * 1024)
    first.release()
    second.grow(150_000)
    second.release()
    small.release()
    assert memory.free == 100_000
