"""Threads of the owner: an error in one of them must end the crawl, not leave it waiting for ever, and an error of the
crawl must end every one of them. And slots that threads get in the order in which they asked."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")


def start(name: str, target: Callable[[], None], failed: Callable[[BaseException], None]) -> threading.Thread:
    """Run `target`; whatever it raises goes to `failed`."""

    def run() -> None:
        try:
            target()
        except BaseException as error:  # noqa: BLE001  handed over, and raised again in the owner's thread
            failed(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


def close_all(steps: Iterable[Callable[[], object]]) -> None:
    """Take every step in its order, whatever those before it raised; then raise the first error.

    Without it a full disk in the first step leaves the threads of the others writing to stores that are being closed.
    """
    first: Exception | None = None
    for step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001  raised below
            first = first or error
    if first is not None:
        raise first


def answers_within(
    seconds: float, questions: Mapping[str, Callable[[], T]]
) -> tuple[dict[str, T], dict[str, Exception]]:
    """Ask all at the same time; returns the answers, and why there is none: an error, or `TimeoutError`. A thread that
    nobody answers stays behind."""
    answers: dict[str, T] = {}
    errors: dict[str, Exception] = {}

    def ask(name: str, question: Callable[[], T]) -> None:
        try:
            answers[name] = question()
        except Exception as error:  # noqa: BLE001  the caller's
            errors[name] = error

    deadline = time.monotonic() + seconds
    threads = [
        threading.Thread(target=ask, args=item, name=f"ask {item[0]}", daemon=True) for item in questions.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    found, failed = dict(answers), dict(errors)
    late = TimeoutError(f"no answer within {seconds:g} s")
    return found, failed | {name: late for name in questions if name not in found and name not in failed}


class FairSlots:
    """A semaphore that serves its waiters in order.

    `threading.Semaphore` wakes the longest waiting thread, but another one that asks before it runs takes the slot.
    With many threads at few slots some of them wait ten times as long as the mean.
    """

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()

    def acquire(self, timeout: float) -> bool:
        """False = no slot was free within `timeout` seconds."""
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            turn = threading.Event()
            self._waiting.append(turn)
        if turn.wait(timeout):
            return True
        with self._lock:
            if turn.is_set():  # given in this moment
                return True
            self._waiting.remove(turn)
            return False

    def release(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1
