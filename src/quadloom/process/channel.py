"""Framed messages between the owner and its child processes, over a socket pair.

`subprocess` instead of `multiprocessing`: a child starts from a clean interpreter, needs no `__main__` guard in
the user's script, and inherits nothing but its end of the channel. When the owner dies, the child reads the end of
the stream and exits, so no orphan keeps fetching.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from typing import TypeVar

import msgspec

from quadloom.model import wire

T = TypeVar("T")
_LENGTH = struct.Struct("<I")
_BUFFER = 1 << 20
_CHUNK = 1 << 18
_SMALL = 1 << 16


class ChannelClosed(Exception):
    """The other side has gone."""


class Channel:
    """One end. `send` blocks while the other side's buffer is full; someone must always be receiving there."""

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
        while (message := self._taken()) is None:
            self._fill()
        return message

    def poll(self) -> list[bytes]:
        """All complete messages after one read; call it when the descriptor is readable."""
        self._fill()
        messages = []
        while (message := self._taken()) is not None:
            messages.append(message)
        return messages

    def close(self) -> None:
        self._socket.close()

    def _fill(self) -> None:
        try:
            size = self._socket.recv_into(self._chunk)
        except OSError as error:
            raise ChannelClosed from error
        if not size:
            raise ChannelClosed
        self._received += self._chunk[:size]

    def _taken(self) -> bytes | None:
        if len(self._received) < 4:
            return None
        (length,) = _LENGTH.unpack_from(self._received)
        if len(self._received) < 4 + length:
            return None
        message = bytes(memoryview(self._received)[4 : 4 + length])
        del self._received[: 4 + length]
        return message


class ChildProcess(msgspec.Struct):
    """A child process and the owner's end of its channel."""

    process: subprocess.Popen[bytes]
    channel: Channel

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def cpu_seconds(self) -> float:
        """User and system time so far; 0 when the process has gone."""
        try:
            with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
                parts = stat.read().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        try:
            with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as statm:
                return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return 0


def start(module: str, first: object) -> ChildProcess:
    """Run `python -m module FD` and send it `first` (its settings)."""
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
    # Ctrl-C reaches the whole process group and is the owner's affair. A child can ignore it once it runs, but it needs
    # a moment to get there; a blocked signal is inherited, whichever thread starts the child.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    channel = Channel(ours)
    channel.send(first)
    return ChildProcess(process, channel)


def attach() -> Channel:
    """The child's end, from its command line."""
    return Channel(socket.socket(fileno=int(sys.argv[1])))
