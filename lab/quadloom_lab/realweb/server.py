"""Serve a `RealWeb` from memory on loopback, in a process of its own: `python -m quadloom_lab.realweb.server SPEC`.

SPEC is the JSON of `ServedWeb`. The server renders all pages, binds its hosts, prints `ready` and ends when its
standard input is closed. Bodies are compressed in advance, as a web server with stored files does.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

import quadloom_lab
from quadloom_lab.realweb.web import OPEN_WEB, SMALL, RealWeb

_ROBOTS = b"User-agent: *\nDisallow: /private/\n"


class ServedWeb(msgspec.Struct, frozen=True):
    """What to serve."""

    pages: int
    hosts: int
    seed: int
    port: int
    skeletons: str = ""
    small: bool = False

    def web(self) -> RealWeb:
        skeletons = Path(self.skeletons) if self.skeletons else None
        like = SMALL if self.small else OPEN_WEB
        return RealWeb(self.pages, self.hosts, self.seed, self.port, skeletons, like)


@contextmanager
def serving(spec: ServedWeb) -> Iterator[None]:
    """A running server; it ends with the block."""
    search = os.pathsep.join([str(Path(quadloom_lab.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "quadloom_lab.realweb.server", msgspec.json.encode(spec).decode()]
    environment = {**os.environ, "PYTHONPATH": search.rstrip(os.pathsep)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise OSError("the server of the real-like web did not start")
        try:
            yield
        finally:
            process.stdin.close()


def free_port() -> int:
    """A port that is free on all loopback addresses, as far as one of them can tell."""
    with socket.create_server(("127.0.1.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


class _Answers:
    """Whole HTTP responses by host and path, plain and compressed."""

    def __init__(self, web: RealWeb) -> None:
        self._plain: dict[bytes, bytes] = {}
        self._packed: dict[bytes, bytes] = {}
        for page in web.pages():
            self._add(page.url, page.content_type, page.body)
        for host in web.hosts:
            self._add(f"http://{host}/robots.txt", "text/plain", _ROBOTS)

    def _add(self, url: str, content_type: str, body: bytes) -> None:
        key = url.removeprefix("http://").encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nVary: Accept-Encoding\r\n"
        self._plain[key] = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        packed = gzip.compress(body, 5, mtime=0)
        self._packed[key] = f"{head}Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode() + packed

    def to(self, request: bytes) -> bytes:
        lines = request.split(b"\r\n")
        path = lines[0].split(b" ")[1]
        headers = {line.partition(b":")[0].lower(): line.partition(b":")[2].strip() for line in lines[1:]}
        answers = self._packed if b"gzip" in headers.get(b"accept-encoding", b"") else self._plain
        return answers.get(headers.get(b"host", b"") + path) or b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


async def _serve(spec: ServedWeb) -> None:
    answers = _Answers(spec.web())

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(answers.to(await reader.readuntil(b"\r\n\r\n")))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.LimitOverrunError):
            writer.close()

    for number in range(spec.hosts):
        await asyncio.start_server(talk, f"127.0.1.{number + 1}", spec.port, backlog=512)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(msgspec.json.decode(sys.argv[1], type=ServedWeb)))
