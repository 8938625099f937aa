"""Starts a dead child process again: one that cannot work must neither use up the machine nor hide why."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from quadloom.errors import ChildFailed
from quadloom.process.channel import ChannelClosed
from quadloom.process.retry import backoff

Child = TypeVar("Child")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds before the next start; each pause is twice as long as the last
_STARTS = 6  # in a row that may fail before the child was ready
_DEATHS = 40  # in a row of children that were ready and did nothing


class Restarts:
    """Replaces children of one kind, and counts their deaths since one of them last did something.

    A child that has worked is replaced at once. One that ended before it was ready, or before it did anything, is
    replaced after a pause. After `_STARTS` failed starts in a row, `start_again` raises `ChildFailed`: the machine
    lacks memory, processes or files, or the installation is damaged, and one more start changes nothing. After `close`
    no child is started. Any thread may call any method. `wait` waits for an event, at most so many seconds.
    """

    def __init__(self, name: str, wait: Callable[[threading.Event, float], bool] = threading.Event.wait) -> None:
        self._name = name
        self._wait = wait
        self._failed_starts = 0
        self._idle_deaths = 0
        self._closed = threading.Event()
        self._starting = threading.Lock()

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    def close(self) -> None:
        """Ends a pause. A start that is in progress is completed first."""
        self._closed.set()
        with self._starting:
            pass

    def ready(self) -> None:
        """A child has started and read its settings."""
        self._failed_starts = 0

    def worked(self) -> None:
        """A child has done something that it was started for."""
        self._failed_starts = self._idle_deaths = 0

    def start_again(self, start: Callable[[], Child], *, was_ready: bool, cause: str) -> Child | None:
        """What `start` returns, tried again while it raises `OSError` or `ChannelClosed`; None = closed.

        `was_ready` and `cause` are of the child that died; `cause` is a predicate, such as "ended with exit code 1".
        """
        while not self._wait(self._closed, self._pause(was_ready=was_ready, cause=cause)):
            with self._starting:
                if self._closed.is_set():
                    return None
                try:
                    return start()
                except (ChannelClosed, OSError) as error:
                    was_ready, cause = False, f"did not start: {error}"
        return None

    def _pause(self, *, was_ready: bool, cause: str) -> float:
        """Seconds to wait before the next start."""
        self._idle_deaths += 1
        self._failed_starts += not was_ready
        if self._failed_starts >= _STARTS:
            raise ChildFailed(
                f"the {self._name} process could not be started {self._failed_starts} times in a row; the last one"
                f" {cause}",
                hint="its own message is above. Common causes are too little memory, a limit of processes or open"
                " files, and a damaged installation: see `quadloom check`. The same command resumes",
            )
        if self._idle_deaths >= _DEATHS:
            raise ChildFailed(
                f"the {self._name} process died {self._idle_deaths} times in a row without doing anything; the last"
                f" one {cause}",
                hint="something ends it from outside, such as a limit of memory; see `quadloom check`. The same"
                " command resumes",
            )
        if self._idle_deaths < 2 and was_ready:
            return 0.0
        return backoff(self._idle_deaths, _FIRST_PAUSE, _LONGEST_PAUSE)
