"""A small WebSub hub on loopback: takes subscriptions, verifies intent, and distributes signed content."""

from __future__ import annotations

import hashlib
import hmac
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode


class Asked(NamedTuple):
    mode: str
    topic: str
    callback: str
    secret: str
    lease: int


class Hub:
    """`granted`: seconds of lease, whatever was asked. `subscribers`: callback → what it asked, once verified."""

    def __init__(self, granted: int) -> None:
        self.url = ""
        self.granted = granted
        self.asked: list[Asked] = []
        self.subscribers: dict[str, Asked] = {}
        self.verifications: list[int] = []  # statuses of our GETs
        self.is_eager = False  # verify before the request is answered, as section 5.2 allows

    def take(self, form: dict[str, str]) -> None:
        asked = Asked(
            form["hub.mode"], form["hub.topic"], form["hub.callback"], form.get("hub.secret", ""),
            int(form.get("hub.lease_seconds", 0)),
        )  # fmt: skip
        self.asked.append(asked)
        if self.is_eager:
            self.verify(asked)
        else:
            threading.Thread(target=self.verify, args=(asked,), daemon=True).start()

    def verify(self, asked: Asked) -> int:
        """GET the callback; only an echoed challenge counts."""
        query = {"hub.mode": asked.mode, "hub.topic": asked.topic, "hub.challenge": "c" * 32}
        if asked.mode == "subscribe":
            query["hub.lease_seconds"] = str(self.granted)
        status, body = _asked(f"{asked.callback}?{urlencode(query)}")
        self.verifications.append(status)
        if status == 200 and body == query["hub.challenge"]:
            if asked.mode == "subscribe":
                self.subscribers[asked.callback] = asked
            else:
                self.subscribers.pop(asked.callback, None)
        return status

    def distribute(self, topic: str, body: bytes, *, secret: str = "") -> list[int]:
        """POST content to all subscribers of a topic; statuses they answer. `secret`: another one, as a forger has."""
        return [
            _asked(callback, body, {"X-Hub-Signature": _signature(body, secret or asked.secret)})[0]
            for callback, asked in list(self.subscribers.items())
            if asked.topic == topic
        ]


def _signature(body: bytes, secret: str) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _asked(url: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers or {}), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, ""


@contextmanager
def hub_on_loopback(granted: int = 864000) -> Iterator[Hub]:
    hub = Hub(granted)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            hub.take({name: values[0] for name, values in parse_qs(text).items()})
            self.send_response(202)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Tests read `Hub`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    hub.url = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
