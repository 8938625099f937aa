"""A server that does what no server should: for tests of limits and deadlines.

Each path is one kind of attack. Every connection ends by itself after `SECONDS`, so a client without limits fails its
test instead of hanging it.
"""

from __future__ import annotations

import gzip
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from itertools import repeat

SECONDS = 15.0
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"


def _bomb() -> Iterator[bytes]:
    """1 GiB of zeros in about 1 MiB of gzip: members of 16 MiB, one after the other."""
    member = gzip.compress(bytes(16 << 20), 9, mtime=0)
    yield _OK + b"Content-Encoding: gzip\r\n\r\n"
    yield from repeat(member, 64)


def _drip() -> Iterator[bytes]:
    """A byte every tenth of a second, for ever."""
    yield _OK + b"Content-Length: 1000000\r\n\r\n"
    while True:
        time.sleep(0.1)
        yield b"x"


def _endless() -> Iterator[bytes]:
    """A body without end."""
    yield _OK + b"\r\n"
    yield from repeat(b"<p>more</p>" * 4096)


def _headers() -> Iterator[bytes]:
    """Headers without end."""
    yield b"HTTP/1.1 200 OK\r\n"
    yield from (f"X-Header-{number}: {'y' * 100}\r\n".encode() for number in range(10_000_000))


def _silence() -> Iterator[bytes]:
    """Nothing at all."""
    time.sleep(SECONDS)
    yield b""


def _short() -> Iterator[bytes]:
    """Less than announced."""
    yield _OK + b"Content-Length: 5000\r\n\r\nhalf"


def _chunks() -> Iterator[bytes]:
    """Chunked coding that is none."""
    yield _OK + b"Transfer-Encoding: chunked\r\n\r\nZZZZ\r\nnot a chunk\r\n"


def _garbage() -> Iterator[bytes]:
    """Not HTTP."""
    yield b"\x00\xff\x16\x03" * 64 + b"\r\n\r\n"


def _nested() -> Iterator[bytes]:
    """Two hundred thousand elements within each other."""
    yield _OK + b"\r\n" + b"<div>" * 200_000


def _lying_gzip() -> Iterator[bytes]:
    """Says gzip and is not."""
    yield _OK + b"Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\nnot gzip!"


ATTACKS: dict[str, Callable[[], Iterator[bytes]]] = {
    "/bomb": _bomb,
    "/drip": _drip,
    "/endless": _endless,
    "/headers": _headers,
    "/silence": _silence,
    "/short": _short,
    "/chunks": _chunks,
    "/garbage": _garbage,
    "/nested": _nested,
    "/lying-gzip": _lying_gzip,
}


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        words = self.rfile.readline(65536).split()
        while self.rfile.readline(65536).strip():
            pass
        path = words[1].decode("latin-1") if len(words) > 1 else ""
        attack = ATTACKS.get(path)
        if attack is None:
            self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        end = time.monotonic() + SECONDS
        try:
            for piece in attack():
                if time.monotonic() > end:
                    return
                self.wfile.write(piece)
        except OSError:
            return  # the client had enough, as it should


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False


class HostileServer:
    """Context manager; `url("/bomb")` is the address of an attack."""

    def __enter__(self) -> HostileServer:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"
