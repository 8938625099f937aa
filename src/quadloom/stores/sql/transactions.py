"""Transactions that may be nested: inner blocks join the outer one, and an exception in any of them undoes all.

So a store's method is a transaction when it is called alone, and part of its caller's otherwise; frontier, catalog
and outbox of one database become one commit that way. Each database implements the commit itself.
`quadloom.process.retry` repeats one that a server undid: a restart, a deadlock, a session that it ended.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Transactions(ABC):
    """One thread at a time; others wait."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._broken = False
        self._checks: list[Callable[[], None]] = []
        self._undo: list[Callable[[], None]] = []

    def on_begin(self, check: Callable[[], None]) -> None:
        """Call `check` at the start of every transaction: it may lock rows, or refuse by raising."""
        self._checks.append(check)

    def on_rollback(self, undo: Callable[[], None]) -> None:
        """Call `undo` after a rollback: a store with rows in memory must forget what was not written."""
        self._undo.append(undo)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. Inner blocks join the outer one; an exception in any of them undoes all."""
        with self._lock:
            if self._depth == 0:
                self._broken = False
                self._begin()
            self._depth += 1
            try:
                if self._depth == 1:
                    for check in self._checks:
                        check()
                yield
            except BaseException:
                self._broken = True
                raise
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._finish()

    @abstractmethod
    def _begin(self) -> None:
        """Begin a transaction. If this raises, none has begun."""

    @abstractmethod
    def _finish(self) -> None:
        """Commit, or roll back if it is `_broken`. A commit that fails is rolled back, and raises."""

    def _run_undo(self) -> None:
        for undo in self._undo:
            undo()
