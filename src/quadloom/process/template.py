"""A template of child processes: imports once, then forks each child in milliseconds.

The template is a process of its own with one thread, and nothing open but its socket. So a fork of it copies no lock of
another thread and no descriptor of a store, which is what makes a fork of the owner itself dangerous (decision 0018).
It imports what its children need and does nothing else.

A command that has opened nothing yet calls `begin`: then the template is a fork of the command, with all that it has
imported. Otherwise `fork` starts a template in a new interpreter when the first child is needed. A template ends with
its owner, or after a minute without children; its own side is `quadloom.process.template_main`.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache

import msgspec

from quadloom.model import wire
from quadloom.process import clock, limits

UNKNOWN_EXIT = 255  # code of a child whose template died before it could say how the child ended
STATUS_BYTES = 4  # process id, later exit code, each a signed number
MOST_BYTES = 1 << 20  # of one order; the environment is nearly all of it
_END_SECONDS = 5.0


class ForkOrder(msgspec.Struct, frozen=True, array_like=True):
    """One child to fork. Three descriptors travel with it: channel, status, standard error.

    Folder and variables are the owner's at this moment, as a child inherits them that is started directly.
    """

    module: str
    address_space: int
    clock_origin: float
    folder: str
    environment: dict[str, str]


class ForkedProcess:
    """A child of the template, with the methods of `subprocess.Popen` that an owner uses, from any thread.

    It is held by a descriptor and not by its number, so a signal never reaches a later process of the same number.
    """

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        self._lock = threading.Lock()
        self._pid = 0
        self._handle = -1
        self.returncode: int | None = None

    @property
    def pid(self) -> int:
        """Waits until the template has forked; 0 if the template died before that."""
        with self._lock:
            self._await_birth()
            return self._pid

    def poll(self) -> int | None:
        """The exit code, or None while the child runs."""
        return self._code(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once the child has ended and is reaped. Raises `subprocess.TimeoutExpired`."""
        code = self._code(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(["forked", str(self._pid)], timeout or 0.0)
        return code

    def kill(self) -> None:
        if self.pid:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def _code(self, timeout: float | None) -> int | None:
        if self.returncode is not None or not self.pid:
            return self.returncode
        if not _has_ended(self._handle, timeout):
            return None
        with self._lock:
            if self.returncode is None:
                code = self._receive(0)[0]  # sent when the child is reaped; the end of the stream if nobody does that
                self.returncode = UNKNOWN_EXIT if code is None else code
            return self.returncode

    def _await_birth(self) -> None:
        if self._pid or self.returncode is not None:
            return
        pid, handle = self._receive(1)
        if pid is None or handle is None:
            self.returncode = UNKNOWN_EXIT
            return
        self._pid, self._handle = pid, handle
        weakref.finalize(self, os.close, handle)

    def _receive(self, handles: int) -> tuple[int | None, int | None]:
        try:
            message, received, _, _ = socket.recv_fds(self._status, STATUS_BYTES, handles)
        except OSError:
            return None, None
        number = int.from_bytes(message, "little", signed=True) if message else None
        return number, received[0] if received else None


class _Template:
    """The owner's end of a template process. `launch` starts it with the descriptor of its socket."""

    def __init__(self, launch: Callable[[int], subprocess.Popen[bytes] | _Twin]) -> None:
        self.path = tuple(sys.path)
        self.owner = os.getpid()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MOST_BYTES)
        self._socket = ours
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))  # as for every child
        try:
            self._process = launch(theirs.fileno())
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()

    def serves(self) -> bool:
        """Whether it can fork children for this process, as it is now."""
        return self.owner == os.getpid() and self.path == tuple(sys.path) and self._process.poll() is None

    def order(self, order: ForkOrder, descriptors: Sequence[int]) -> None:
        """Raises `OSError` if the template has gone."""
        socket.send_fds(self._socket, [wire.encode(order)], list(descriptors))

    def cpu_seconds(self) -> float:
        return limits.cpu_seconds(self._process.pid)

    def close(self) -> None:
        """End the template and wait for it, so that its time counts as ours. Its children end with their channels."""
        self._socket.close()
        if self.owner != os.getpid():
            return
        try:
            self._process.wait(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Twin:
    """A template that is a fork of its owner, with the methods of `subprocess.Popen` that are used here."""

    def __init__(self, control: int) -> None:
        self.pid = os.fork()
        if self.pid == 0:
            _serve_as_template(control)
        self._handle = os.pidfd_open(self.pid)
        self._code: int | None = None
        weakref.finalize(self, os.close, self._handle)

    def poll(self) -> int | None:
        if self._code is None and _has_ended(self._handle, 0.0):
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        if not _has_ended(self._handle, timeout):
            raise subprocess.TimeoutExpired(["template", str(self.pid)], timeout or 0.0)
        code = self.poll()
        assert code is not None, "it has ended"
        return code

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)


def _serve_as_template(control: int) -> None:
    """The rest of the twin's life. It keeps what the owner has imported and nothing else. Never returns."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(nothing, stream)
        os.closerange(3, control)
        os.closerange(control + 1, os.sysconf("SC_OPEN_MAX"))
        from quadloom.process.template_main import serve

        serve(control)
    finally:
        os._exit(1)


def _new_interpreter(control: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "quadloom.process.template_main", str(control)],
        pass_fds=(control,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )


def _has_ended(handle: int, timeout: float | None) -> bool:
    ended = select.poll()
    ended.register(handle, select.POLLIN)
    return bool(ended.poll(None if timeout is None else timeout * 1000))


_lock = threading.Lock()
_current: _Template | None = None


@cache
def is_available() -> bool:
    """Whether this system has what a template needs: fork, and descriptors of processes (Linux, if not forbidden)."""
    if not hasattr(os, "fork") or not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def fork(
    module: str, channel: int, *, address_space: int, environment: Mapping[str, str], stderr: int
) -> ForkedProcess:
    """Run `module.main()` in a child that is forked from the template. Raises `OSError`."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        order = ForkOrder(module, address_space, clock.origin(), os.getcwd(), {**os.environ, **environment})
        _order(order, (channel, theirs.fileno(), stderr))
    return ForkedProcess(ours)


def begin() -> None:
    """Make the template a fork of this process, if it has a single thread. For a command that is about to start
    children: it has imported half of what they need, and a new interpreter would do that again (.1 CPU-s)."""
    if is_available() and _current is None and len(os.listdir("/proc/self/task")) == 1:
        _replace(_Template(_Twin))


def cpu_seconds() -> float:
    """What the template itself has used so far, for imports; its children count for themselves."""
    with _lock:
        return _current.cpu_seconds() if _current is not None else 0.0


def close() -> None:
    """End the template, if there is one. The next child starts another."""
    global _current
    with _lock:
        ended, _current = _current, None
    if ended is not None:
        ended.close()


def _order(order: ForkOrder, descriptors: Sequence[int]) -> None:
    with _lock:
        if _current is None or not _current.serves():
            _replace(_Template(_new_interpreter))
        assert _current is not None, "it was replaced"
        _current.order(order, descriptors)


def _replace(new: _Template) -> None:
    global _current
    replaced, _current = _current, new
    if replaced is not None:
        replaced.close()
    else:
        atexit.register(close)
