"""Importance while the crawl runs: adaptive OPIC (Abiteboul, Preda, Cobena, WWW 2003).

Every page holds cash. Reading a page distributes its cash over its links and adds the amount to the history of the
page. The share of a page in all history converges to its importance, whatever the order of reading. No matrix is
needed, so this is the estimate between two full fixpoints, and for pages that were not in the last one.

A virtual page that all pages link to and that links to all pages makes the walk ergodic: it takes 1 − c of every
distribution, and all cash of a dangling page. It gives the same amount to every page, so this is not distributed page
by page but stored as one running sum (`_dividend`), from which a page collects when it is used: O(links) per read.

Histories cover a window of time: H ← H·(T − Δ)/T + cash, or cash·T/Δ after a longer pause, so the estimate follows a
web that changes.

Values are in single precision, sixteen bytes a page: they are estimates, and all known URLs have them. Times count from
the first one, since an hour of unix time needs more digits than single precision has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


class PageRead(NamedTuple):
    """`links`: ids of the pages that it links to, each once; itself may be among them. `elsewhere`: the number of its
    links to pages without an id, whose part goes to the virtual page."""

    page: int
    links: npt.ArrayLike
    elsewhere: int = 0


class Opic:
    """Pages are dense ids, as in the link matrix. `window` is in the same unit as the times passed in. `virtual`: cash
    of the virtual page; all cash together is 1."""

    def __init__(self, window: float, damping: float = 0.85) -> None:
        self.window = window
        self.damping = damping
        self.pages = 0
        self.virtual = 0.0
        self._cash = _room(1024)
        self._history = _room(1024)
        self._read_at = _room(1024)  # since `_origin`
        self._seen = _room(1024)  # value of `_dividend` when the page last collected
        self._origin: float | None = None
        self._dividend = 0.0
        self._remembered = 0.0  # sum of all histories

    def start(self, importance: npt.NDArray[np.floating], now: float) -> None:
        """Start from a fixpoint, whose values sum to 1, with histories as after a full window."""
        now = self._since_origin(now)
        self._reserve(len(importance), now)
        self.pages = len(importance)
        self._history[: self.pages] = importance * self.window
        self._remembered = float(self._history[: self.pages].sum(dtype=np.float64))
        self._cash[: self.pages] = importance * (1.0 - self.virtual)
        self._seen[: self.pages] = self._dividend
        self._read_at[: self.pages] = now

    def read(self, reads: Sequence[PageRead], now: float) -> None:
        """Record that pages were read, in this order."""
        now = self._since_origin(now)
        for page, links, elsewhere in reads:
            targets: Ids = np.asarray(links, dtype=np.int64)
            highest = max(page, int(targets.max(initial=0)))
            if highest >= self.pages:
                self._reserve(highest + 1, now)
            cash = float(self._cash[page] + (self._dividend - self._seen[page]))
            self._cash[page], self._seen[page] = 0.0, self._dividend
            before, pause = float(self._history[page]), now - float(self._read_at[page])
            if pause < self.window:
                self._history[page] = before * (self.window - pause) / self.window + cash
            else:
                self._history[page] = cash * self.window / pause
            self._remembered += float(self._history[page]) - before
            self._read_at[page] = now
            passed = 0.0
            if len(targets):
                each = self.damping * cash / (len(targets) + elsewhere)
                passed = each * len(targets)
                np.add.at(self._cash, targets, each)
            self.virtual += cash - passed
            if self.virtual > 0.02:  # as if the virtual page were read often
                self._dividend += self.virtual / self.pages
                self.virtual = 0.0

    def cash(self, pages: Ids | None = None) -> npt.NDArray[np.float32]:
        """What each of these pages has received since it was last read; None = all pages."""
        part = slice(0, self.pages) if pages is None else pages
        return np.asarray(self._cash[part] + (self._dividend - self._seen[part]))

    def importance(self, pages: Ids) -> Vector:
        """The estimates for these pages; all pages together have 1."""
        known = (pages >= 0) & (pages < self.pages)
        part = np.where(known, pages, 0)
        held = (self._history[part] + self.cash(part)) / (self._remembered + 1.0 - self.virtual)
        return np.where(known, held, 0.0)

    def estimates(self) -> Vector:
        """The estimates for all pages; they sum to 1."""
        held = (self._history[: self.pages] + self.cash()).astype(np.float64)
        return np.asarray(held / held.sum()) if self.pages else np.empty(0)

    def _since_origin(self, now: float) -> float:
        if self._origin is None:
            self._origin = now
        return now - self._origin

    def _reserve(self, pages: int, now: float) -> None:
        """Make room. New pages start without cash, except the very first, which share all cash, 1."""
        if pages > len(self._cash):
            room = max(pages, 2 * len(self._cash)) - len(self._cash)
            self._cash, self._history, self._read_at, self._seen = (
                np.concatenate([a, _room(room)]) for a in (self._cash, self._history, self._read_at, self._seen)
            )
        if pages > self.pages:
            self._seen[self.pages : pages] = self._dividend
            self._read_at[self.pages : pages] = now
            if self.pages == 0:
                self._cash[:pages] = 1.0 / pages
            self.pages = pages


def _room(pages: int) -> npt.NDArray[np.float32]:
    return np.zeros(pages, dtype=np.float32)
