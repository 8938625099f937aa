"""The one way to start a child process: killable, with limits, a deadline, and framed messages over a socket pair.

A child runs `main()` of a module, in a new interpreter or in a fork of one that has imported the module already
(`quadloom.process.template`). Either way it needs no `__main__` guard in the user's script, and inherits nothing but
its end of the channel. A frame is a length in four bytes and as many bytes as it says.

What holds for every child:

* It has the owner's import path, folder, variables and time, and never leaves a core file.
* Ctrl-C never ends it, not even while its interpreter starts: that signal is for the owner.
* Its address space is capped by the kernel, if the owner gives a number.
* When the owner dies or closes the channel, the child ends, also in the middle of its work (`attach`).
* When the child dies, even in the middle of a frame, the owner's `receive` raises `ChannelClosed`, and
  `ChildProcess.wait` names the cause.

Owner: `start`, then `ChildProcess`. Child: `run` as its main function, or `attach`.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeVar

from quadloom.model import wire
from quadloom.process import clock, limits, template
from quadloom.process.limits import ChildExit

T = TypeVar("T")
_LENGTH = struct.Struct("<I")
_BUFFER = 1 << 20
_CHUNK = 1 << 18
_SMALL = 1 << 16
_LARGE = 1 << 22
_END_SECONDS = 5.0  # between the end of a child's stream and the end of the child


class ChannelClosed(Exception):
    """The other side has gone."""


class Channel:
    """One end. One thread may send while another receives.

    `send` blocks while the other side's buffer is full; someone must always be receiving there.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._received = bytearray()
        self._chunk = memoryview(bytearray(_CHUNK))  # read into: `recv` would make and shrink a new object each time

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: object) -> None:
        data = wire.encode(message)
        try:
            if len(data) < _SMALL:
                self._socket.sendall(_LENGTH.pack(len(data)) + data)
            else:  # a second call costs less than a copy of the whole
                self._socket.sendall(_LENGTH.pack(len(data)))
                self._socket.sendall(data)
        except OSError as error:
            raise ChannelClosed from error

    def receive(self, kind: type[T]) -> T:
        """Wait for one message."""
        return wire.decode(self.receive_bytes(), kind)

    def receive_bytes(self) -> bytes:
        """Wait for one message, still encoded. Raises `ChannelClosed` if the stream ends before or within it."""
        while (message := self._next_message()) is None:
            self._fill()
        return message

    def poll(self) -> list[bytes]:
        """All complete messages after one read; call it when the descriptor is readable."""
        self._fill()
        return self.complete()

    def complete(self) -> list[bytes]:
        """All complete messages that have been read already, for instance together with the one `receive` returned."""
        messages = []
        while (message := self._next_message()) is not None:
            messages.append(message)
        return messages

    def close(self) -> None:
        self._socket.close()

    def shut(self) -> None:
        """End the stream for both sides. Unlike `close` it may be called while another thread sends or receives: that
        gets `ChannelClosed`."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _fill(self) -> None:
        try:
            size = self._socket.recv_into(self._chunk)
        except OSError as error:
            raise ChannelClosed from error
        if not size:
            raise ChannelClosed
        self._received += self._chunk[:size]

    def _next_message(self) -> bytes | None:
        if len(self._received) < 4:
            return None
        (length,) = _LENGTH.unpack_from(self._received)
        if len(self._received) < 4 + length:
            return None
        message = bytes(memoryview(self._received)[4 : 4 + length])
        if length > _LARGE:  # a buffer that was once large would stay so
            self._received = self._received[4 + length :]
        else:
            del self._received[: 4 + length]
        return message


class ProcessHeartbeat(NamedTuple):
    """A process of the crawl at one moment: resident bytes, CPU seconds so far, pages in hand. An array on the wire."""

    name: str
    pid: int
    memory: int
    cpu_seconds: float
    in_hand: int


class RunningProcess(Protocol):
    """What an owner needs of a process: `subprocess.Popen` has it, and a fork of the template."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


class ChildProcess:
    """A child process and the owner's end of its channel. `kill_after` and `kill` may be called from any thread."""

    def __init__(self, process: RunningProcess, channel: Channel) -> None:
        self.process = process
        self.channel = channel
        self.timed_out = False  # the deadline has killed it
        self._timer: threading.Timer | None = None

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def kill_after(self, seconds: float) -> None:
        """Kill the child in `seconds`, whatever both sides do then. Replaces the last deadline; 0 = none."""
        self.cancel_deadline()
        if seconds:
            self._timer = threading.Timer(seconds, self._expire)
            self._timer.daemon = True
            self._timer.start()

    def cancel_deadline(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def wait(self) -> ChildExit:
        """How the child ended. Call it after `ChannelClosed`; a child that lives on without its channel is killed."""
        try:
            self.process.wait(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return limits.exit_of(self.process.wait(), timed_out=self.timed_out)

    def kill(self) -> None:
        """End the child and reap it. The channel stays open, so that another thread can read the end of the stream."""
        self.cancel_deadline()
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """`kill`, and close the channel."""
        self.kill()
        self.channel.close()

    def cpu_seconds(self) -> float:
        """User and system time so far; 0 when the process has gone."""
        return limits.cpu_seconds(self.process.pid)

    def resident_bytes(self) -> int:
        return limits.resident_bytes(self.process.pid)

    def heartbeat(self, name: str, in_hand: int) -> ProcessHeartbeat:
        return ProcessHeartbeat(name, self.process.pid, self.resident_bytes(), self.cpu_seconds(), in_hand)

    def _expire(self) -> None:
        self.timed_out = True
        self.process.kill()
        self.process.wait()


def start(
    module: str,
    first: object,
    *,
    address_space: int = 0,
    environment: Mapping[str, str] = MappingProxyType({}),
    stderr: int | None = None,
    from_template: bool = False,
) -> ChildProcess:
    """Run a module's `main()` as a child and send it `first`, a small message such as its settings. One that has ended
    by then is noticed where all deaths are: by the first who receives from it.

    `address_space`: cap in bytes, 0 = none. `environment`: further variables. `stderr`: as for `Popen`, None = ours.
    `from_template`: fork it from a process that has imported the module, if the system can do that. For modules that
    start no thread and open nothing when they are imported, and of which a command starts several.
    """
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
    process: RunningProcess
    with theirs:
        if from_template and template.is_available():
            process = _forked(module, theirs.fileno(), address_space, environment, stderr)
        else:
            process = _new_interpreter(module, theirs.fileno(), address_space, environment, stderr)
    child = ChildProcess(process, Channel(ours))
    with suppress(ChannelClosed):
        child.channel.send(first)
    return child


def _forked(
    module: str, channel: int, address_space: int, environment: Mapping[str, str], stderr: int | None
) -> RunningProcess:
    nowhere = os.open(os.devnull, os.O_WRONLY) if stderr == subprocess.DEVNULL else None
    target = nowhere if nowhere is not None else 2 if stderr is None else stderr
    try:
        return template.fork(module, channel, address_space=address_space, environment=environment, stderr=target)
    except OSError:  # the template has just died, or the order is too large for it
        return _new_interpreter(module, channel, address_space, environment, stderr)
    finally:
        if nowhere is not None:
            os.close(nowhere)


def _new_interpreter(
    module: str, channel: int, address_space: int, environment: Mapping[str, str], stderr: int | None
) -> RunningProcess:
    # Ctrl-C reaches the whole process group and is the owner's affair. A child can ignore it once it runs, but it needs
    # a moment to get there; a blocked signal is inherited, whichever thread starts the child.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(channel), str(address_space), repr(clock.origin())],
            pass_fds=(channel,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **environment},
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run(serve: Callable[[Channel], None]) -> None:
    """The main function of a child: serve its channel until the owner closes it."""
    try:
        serve(attach())
    except ChannelClosed:
        return
    except MemoryError:
        os._exit(limits.EXIT_OUT_OF_MEMORY)  # nothing that would need memory, such as a traceback


def attach(at_end: Callable[[], None] = lambda: None) -> Channel:
    """The child's end, from its command line. From here on the child has its limits and ends with its owner.

    `at_end` is called before it ends so, from a thread, and must not wait for anything.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sock = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=_end_with_owner, args=(sock.fileno(), at_end), name="owner-watch", daemon=True).start()
    limits.limit_memory(int(sys.argv[2]))
    clock.adopt(float(sys.argv[3]))
    return Channel(sock)


def _end_with_owner(descriptor: int, at_end: Callable[[], None]) -> None:
    """Wait, without reading, until the other end is closed. Then nobody wants an answer, however far it is."""
    owner = select.poll()
    owner.register(descriptor, 0)  # a hang-up is always reported
    owner.poll()
    try:
        at_end()
    finally:
        os._exit(0)
