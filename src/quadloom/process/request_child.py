"""A child process that answers one request at a time, and is started again after a request has ended it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from quadloom.process.channel import ChannelClosed, ChildProcess
from quadloom.process.limits import ChildExit

T = TypeVar("T")


class ChildEnded(Exception):
    """There is no answer. `exit`: how the child ended; None = it did not start, or was closed before."""

    def __init__(self, exit: ChildExit | None, reason: str = "did not start") -> None:
        super().__init__(reason)
        self.exit = exit
        self._reason = reason

    def describe(self, seconds: float, memory: int) -> str:
        """As `ChildExit.describe`, also for a child that did not start."""
        return self.exit.describe(seconds, memory) if self.exit is not None else self._reason


class RequestChild:
    """The child is started with the first request. One thread at a time asks; any thread may call `close`.

    `start` starts a child. `ready_seconds`: the child sends a text when it is ready, and is given up if that takes
    longer; 0 = it says nothing. Its start does not count for the request.
    """

    def __init__(self, start: Callable[[], ChildProcess], *, ready_seconds: float = 0.0) -> None:
        self._start = start
        self._ready_seconds = ready_seconds
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self._closed = False

    def ask(self, request: object, reply: type[T], *, seconds: float = 0.0) -> T:
        """The child's answer. A child that takes longer than `seconds` is killed; 0 = it may take as long as it needs.
        Raises `ChildEnded` if the child ends without an answer, or was closed."""
        child = self._running()
        try:
            child.kill_after(seconds)
            child.channel.send(request)
            answer = child.channel.receive(reply)
            child.cancel_deadline()
        except ChannelClosed:
            ended = child.wait()
            self.end()
            raise ChildEnded(ended) from None
        return answer

    def end(self) -> None:
        """End the child, if there is one; the next request starts another."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.close()

    def finish(self) -> None:
        """After the last answer: wait until the child has ended by itself, as one does that serves one request."""
        child = self._child
        if child is not None:
            child.wait()
        self.end()

    def close(self) -> None:
        """End the child for good. A request in progress raises `ChildEnded`."""
        with self._lock:
            self._closed = True
            if self._child is not None:
                self._child.kill()

    def _running(self) -> ChildProcess:
        if self._child is not None and self._child.is_alive:
            return self._child
        self.end()
        try:
            with self._lock:
                if self._closed:
                    raise ChildEnded(None, "was stopped")
                child = self._child = self._start()
            if self._ready_seconds:
                child.kill_after(self._ready_seconds)
                child.channel.receive(str)
                child.cancel_deadline()
        except (ChannelClosed, OSError):
            self.end()
            raise ChildEnded(None) from None
        return child
