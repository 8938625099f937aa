"""A server that can misbehave in any way: answers are bytes, in pieces, at any pace. It keeps a log as judge."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field


@dataclass
class Seen:
    """One request as it arrived."""

    at: float
    method: str
    path: str
    host: str
    headers: dict[str, str]
    connection: int
    body: bytes = b""


Answer = Callable[[Seen], bytes | Iterable[bytes]]


@dataclass
class Server:
    """Answers with bytes (and keeps the connection) or with pieces (and closes it after the last)."""

    answer: Answer
    address: str = "127.0.0.1"
    log: list[Seen] = field(default_factory=list)
    connections: int = 0

    def __enter__(self) -> Server:
        self._socket = socket.create_server((self.address, 0), backlog=256)
        self.port = self._socket.getsockname()[1]
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept, which would take one more
        self._socket.close()
        for connection in list(self._open):
            connection.close()

    def url(self, path: str = "/", host: str = "") -> str:
        return f"http://{host or self.address}:{self.port}{path}"

    def paths(self, host: str = "") -> list[str]:
        return [seen.path for seen in self.log if not host or seen.host.startswith(host)]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection, self.connections), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        buffer = b""
        try:
            while True:
                while b"\r\n\r\n" not in buffer:
                    data = connection.recv(65536)
                    if not data:
                        return
                    buffer += data
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                seen = _parse(head, number)
                wanted = int(seen.headers.get("content-length", "0"))
                while len(buffer) < wanted:
                    buffer += connection.recv(65536)
                seen.body, buffer = buffer[:wanted], buffer[wanted:]
                self.log.append(seen)
                answer = self.answer(seen)
                if isinstance(answer, bytes):
                    connection.sendall(answer)
                    continue
                for piece in answer:
                    connection.sendall(piece)
                return
        except OSError:
            return
        finally:
            self._open.discard(connection)
            connection.close()


def _parse(head: bytes, number: int) -> Seen:
    line, *rest = head.decode("latin-1").split("\r\n")
    method, path, _ = line.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (item.partition(":") for item in rest)}
    return Seen(time.time(), method, path, headers.get("host", ""), headers, number)


def reply(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """A complete response; header names with underscores for hyphens."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def endless(piece: bytes, pause: float = 0.0, head: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> Iterator[bytes]:
    yield head
    while True:
        yield piece
        if pause:
            time.sleep(pause)
