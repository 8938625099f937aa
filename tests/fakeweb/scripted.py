"""A small site written in the test that needs it: paths to answers, with a log of every request and its headers.

`quadloom_lab.fakeweb` serves whole webs; this one is for tests of a single rule, which should show the page.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import NamedTuple

from quadloom.settings.loading import Value


class Answer(NamedTuple):
    """What a path answers. `etag` makes it answer 304 to a request that has it."""

    body: bytes = b""
    type: str = "text/html"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    etag: str = ""


class Asked(NamedTuple):
    path: str
    headers: Mapping[str, str]
    status: int


def html(body: str, head: str = "") -> Answer:
    return Answer(f"<!doctype html><html lang=en><head>{head}</head><body>{body}</body></html>".encode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that cuts the connection is within its rights."""


class ScriptedSite:
    """Serves `pages` on 127.0.0.1; `log` has the requests in the order of arrival. Paths may be changed meanwhile."""

    def __init__(self, pages: Mapping[str, Answer]) -> None:
        self.pages = dict(pages)
        self.log: list[Asked] = []
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> ScriptedSite:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def settings(self, **sections: dict[str, Value]) -> dict[str, Value]:
        """Overrides for `quadloom.settings.loading.load`: visits to this site are allowed, quick and by one worker."""
        merged: dict[str, dict[str, Value]] = {
            "crawl": {"contact": "test@quadloom.invalid", "workers": 1, "max_wait": 1.0, "batch_seconds": 0.02},
            "politeness": {"delay": 0.0, "ip_delay": 0.0, "adaptive": 0.0, "per_site": 4, "retries": 0},
            "guard": {"allow": ["127.0.0.0/8"]},
            "index": {"text_commit_seconds": 0.1},
        }
        for section, values in sections.items():
            merged.setdefault(section, {}).update(values)
        return {f"{section}.{key}": value for section, values in merged.items() for key, value in values.items()}

    def paths(self, status: int | None = None) -> list[str]:
        return [asked.path for asked in self.log if status is None or asked.status == status]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                answer = site.pages.get(self.path, Answer(b"nothing here", "text/plain", 404))
                if answer.etag and self.headers.get("If-None-Match") == answer.etag:
                    answer = Answer(status=304, etag=answer.etag)
                site.log.append(Asked(self.path, dict(self.headers), answer.status))
                self.send_response(answer.status)
                if answer.etag:
                    self.send_header("ETag", answer.etag)
                for name, value in answer.headers:
                    self.send_header(name, value)
                if answer.status != 304:
                    self.send_header("Content-Type", answer.type)
                    self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                if self.command != "HEAD" and answer.status != 304:
                    self.wfile.write(answer.body)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                """Quiet."""

        return Handler
