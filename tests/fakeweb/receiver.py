"""A receiver of webhooks on loopback: checks every signature, keeps what came, and answers as it is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from quadloom.crawling.subscriptions.webhooks import NoticeMessage, signature


class Receiver:
    """`answer(n)` gives the status of the n-th request, from 1; `delay` seconds pass before it."""

    def __init__(self, secret: str, answer: Callable[[int], int]) -> None:
        self.url = ""
        self.secret = secret
        self.answer = answer
        self.delay = 0.0
        self.headers: dict[str, str] = {}
        self.bodies: dict[int, set[bytes]] = {}  # id → different bodies, of acknowledged requests
        self.order: list[int] = []  # ids acknowledged, with repetitions
        self.refused: list[int] = []
        self.times: list[float] = []
        self.badly_signed = 0
        self._lock = threading.Lock()

    def take(self, body: bytes, headers: dict[str, str]) -> int:
        """The answer's status."""
        time.sleep(self.delay)
        with self._lock:
            self.times.append(time.monotonic())
            self.headers = headers
            id, moment = int(headers["webhook-id"]), int(headers["webhook-timestamp"])
            expected = signature(str(id), moment, body, self.secret) if self.secret else ""
            self.badly_signed += headers.get("webhook-signature", "") != expected
            self.badly_signed += msgspec.json.decode(body, type=NoticeMessage).id != id
            status = self.answer(len(self.order) + len(self.refused) + 1)
            if 200 <= status < 300:
                self.bodies.setdefault(id, set()).add(body)
                self.order.append(id)
            else:
                self.refused.append(id)
            return status

    @property
    def firsts(self) -> list[int]:
        """Each id once, in the order of its first arrival."""
        return list(dict.fromkeys(self.order))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A sender that is killed cuts its connection."""


@contextmanager
def receiving(secret: str = "", answer: Callable[[int], int] = lambda _number: 204) -> Iterator[Receiver]:
    receiver = Receiver(secret, answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.take(body, {name.lower(): value for name, value in self.headers.items()})
            try:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
            except OSError:
                self.close_connection = True  # the sender gave up waiting

        def log_message(self, format: str, *args: object) -> None:
            """Tests read `Receiver`."""

    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
