"""How other processes talk to a running crawl: one request, one answer, over a Unix socket in the warehouse.

The owner of the warehouse is the only writer, so `pause`, `seeds add`, `scope`, `refresh` and the like are sent to it
while it runs; if no process owns the warehouse, the CLI executes them itself. Only the user who started the crawl can
connect (the socket's mode is 0600).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from quadloom.errors import QuadloomError, StoreError, UsageError
from quadloom.model.wire import Value as Value

_MAX_PATH = 100  # bytes; sun_path has 108
_MAX_PROCESS = 11  # bytes that the number of a process adds
_MAX_LINE = 64 * 1024 * 1024
_SECONDS = 60.0  # for an answer, and for a place in the queue of those who ask
_CONNECT_PAUSE = 0.02

T = TypeVar("T")


class ControlRequest(msgspec.Struct, frozen=True):
    """`arguments` are JSON; msgspec cannot decode a recursive alias such as `Value`."""

    verb: str
    arguments: dict[str, object] = {}  # decoded by the function `arguments`


def arguments(request: ControlRequest, kind: type[T]) -> T:
    """The arguments of a request as a record. Raises `UsageError` if they do not fit: a wrong request ends no crawl."""
    try:
        return msgspec.convert(request.arguments, kind)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"wrong arguments of {request.verb!r}: {error}", hint="both sides must be of the same version"
        ) from None


class ControlReply(msgspec.Struct, frozen=True):
    ok: bool
    data: object = None  # a `Value`; msgspec has no recursive types
    error: str = ""
    hint: str = ""


def socket_path(warehouse: Path, process: str = "") -> Path:
    """In the warehouse if the path is short enough for a socket, else in a private temporary directory. `process`: the
    number of one that does not fetch."""
    inside = warehouse.resolve() / "control.sock"
    if len(str(inside).encode()) + _MAX_PROCESS > _MAX_PATH:
        digest = hashlib.sha256(str(inside).encode()).hexdigest()[:16]
        inside = _private_folder() / f"{digest}.sock"
    return inside.with_stem(f"{inside.stem}-{process}") if process else inside


def _private_folder() -> Path:
    """A directory of this user alone below the temporary one, which all users share: a user who created it in advance
    could answer in the name of the crawl. Raises `StoreError`."""
    folder = Path(tempfile.gettempdir()) / f"quadloom-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise StoreError(
            f"{folder} is not a private directory of this user",
            hint="remove it, or give the warehouse a shorter path, so that its control socket can be inside",
        )
    return folder


def ask(warehouse: Path, verb: str, **arguments: Value) -> Value | None:
    """Send a request to the running crawl. None = no crawl is running. Raises an error that the crawl answered."""
    return _ask(warehouse, socket_path(warehouse), ControlRequest(verb, dict(arguments)))


def ask_all(warehouse: Path, verb: str, **arguments: Value) -> list[Value]:
    """Send a request to the running crawl and to all processes that run other phases of it on this machine. Empty =
    none is running."""
    main = socket_path(warehouse)
    paths = [main, *sorted(main.parent.glob(f"{main.stem}-*.sock"))]
    answers = [_ask(warehouse, path, ControlRequest(verb, dict(arguments))) for path in paths]
    return [answer for answer in answers if answer is not None]


def _ask(warehouse: Path, path: Path, request: ControlRequest) -> Value | None:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(_SECONDS)
    try:
        _connect(client, path)
    except (FileNotFoundError, ConnectionRefusedError):
        client.close()
        return None
    except PermissionError:
        client.close()
        raise StoreError(
            f"the crawl on {warehouse} belongs to another user", hint="run the command as the user who started it"
        ) from None
    line = b""
    try:
        # A crawl that is killed resets the connection; one that ends closes it.
        with client, contextlib.suppress(ConnectionError), client.makefile("rwb") as stream:
            stream.write(msgspec.json.encode(request) + b"\n")
            stream.flush()
            line = stream.readline(_MAX_LINE)
    except TimeoutError:
        raise _busy() from None
    if not line.endswith(b"\n"):
        raise StoreError("the crawl ended before it answered", hint="repeat the command: it works without a crawl, too")
    reply = msgspec.json.decode(line, type=ControlReply)
    if not reply.ok:
        raise QuadloomError(reply.error, hint=reply.hint)
    return cast(Value, reply.data) if reply.data is not None else True


def _connect(client: socket.socket, path: Path) -> None:
    """While more commands arrive at once than the crawl has accepted, the kernel refuses to queue another."""
    until = time.monotonic() + _SECONDS
    while True:
        try:
            return client.connect(str(path))
        except BlockingIOError:
            if time.monotonic() > until:
                client.close()
                raise _busy() from None
            time.sleep(_CONNECT_PAUSE)


def _busy() -> StoreError:
    return StoreError(
        "the running crawl did not answer within a minute", hint="it may lack CPU or disk speed; try again later"
    )


class ControlServer:
    """Answers requests in its own threads; `handle` must therefore be quick and thread-safe."""

    def __init__(self, warehouse: Path, handle: Callable[[ControlRequest], Value], process: str = "") -> None:
        self._path = socket_path(warehouse, process)
        self._handle = handle
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()  # left by a crash; the warehouse's lock ensures that no crawl is using it
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        previous = os.umask(0o177)
        try:
            self._socket.bind(str(self._path))
        finally:
            os.umask(previous)
        self._socket.listen(16)
        threading.Thread(target=self._accept, name="control", daemon=True).start()

    def close(self) -> None:
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(_SECONDS)
        with connection, connection.makefile("rwb") as stream, contextlib.suppress(OSError):
            line = stream.readline(_MAX_LINE)
            if line:
                stream.write(msgspec.json.encode(self._answer(line)) + b"\n")
                stream.flush()

    def _answer(self, line: bytes) -> ControlReply:
        try:
            return ControlReply(True, self._handle(msgspec.json.decode(line, type=ControlRequest)))
        except QuadloomError as error:
            return ControlReply(False, None, error.message, error.hint)
        except TimeoutError:
            busy = _busy()
            return ControlReply(False, None, busy.message, busy.hint)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return ControlReply(False, None, f"invalid request: {error}", "send one JSON object on one line")
