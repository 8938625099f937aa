"""The one way to try something again: which pauses lie between the tries, and the loop that waits for them.

`retry(send, islice(doubling(0.2), 5), Undelivered)` tries six times. Pauses are an iterable of seconds; when it ends,
the next failure is final.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count, takewhile
from typing import TypeVar

from quadloom.errors import ServerFull, StoreUnavailable

T = TypeVar("T")
_ROOM_PAUSE = 2.0  # seconds until a full disk may have room again
_TRANSACTION_PAUSES = (0.1, 1.0, 2.0, 5.0, 5.0)  # waiting for a server that cannot be reached is extra


def backoff(failures: int, first: float, longest: float = math.inf) -> float:
    """The pause after so many failures in a row, 1 or more: `first`, and twice as long each time up to `longest`."""
    return min(first * 2.0 ** min(failures - 1, 60), longest)


def doubling(first: float, longest: float = math.inf) -> Iterator[float]:
    """`backoff` after each failure, without an end."""
    return (backoff(failures, first, longest) for failures in count(1))


def jittered(pauses: Iterable[float], chance: Callable[[], float] = random.random) -> Iterator[float]:
    """Between half and one and a half of each pause, so that clients which failed together do not return together."""
    return (pause * (0.5 + chance()) for pause in pauses)


def within(
    seconds: float,
    pauses: Iterable[float],
    *,
    clock: Callable[[], float] = time.monotonic,
    unless: Callable[[], bool] = lambda: False,
) -> Iterator[float]:
    """The pauses that end within so many seconds from now; all of them while `unless` returns True."""
    deadline = clock() + seconds
    return takewhile(lambda pause: clock() + pause <= deadline or unless(), pauses)


def retry(
    action: Callable[[], T],
    pauses: Iterable[float],
    failure: type[Exception] | tuple[type[Exception], ...],
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> T:
    """Run `action`, and again after each of the pauses while it raises `failure`. A pause is taken from `pauses` after
    the failure that it follows."""
    rest: Iterator[float] | None = None
    while True:
        try:
            return action()
        except failure:
            rest = iter(pauses) if rest is None else rest
            pause = next(rest, None)
            if pause is None:
                raise
        sleep(pause)


def retry_when_unavailable(action: Callable[[], T]) -> T:
    """Run a transaction, and up to five times again after `StoreUnavailable`; as often as it takes if the server's disk
    is full and the process waits for it. It must be safe to repeat: either a failed run wrote nothing, or writing it
    twice is harmless."""

    def run() -> T:
        while True:
            try:
                return action()
            except ServerFull as full:
                if not full.waits():
                    raise
            time.sleep(_ROOM_PAUSE)

    return retry(run, _TRANSACTION_PAUSES, StoreUnavailable)
