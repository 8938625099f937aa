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

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


class Opic:
    """Pages are dense ids, as in the link matrix. `window` is in the same unit as the times passed in."""

    def __init__(self, window: float, damping: float = 0.85) -> None:
        self.window = window
        self.damping = damping
        self.pages = 0
        self._cash = _room(1024)
        self._history = _room(1024)
        self._read_at = _room(1024)  # since `_origin`
        self._seen = _room(1024)  # value of `_dividend` when the page last collected
        self._origin: float | None = None
        self._dividend = 0.0
        self._virtual = 0.0
        self._remembered = 0.0  # sum of all histories; all cash together is 1

    def start(self, importance: npt.NDArray[np.floating], now: float) -> None:
        """Start from a fixpoint, whose values sum to 1, with histories as after a full window."""
        now = self._since_origin(now)
        self._reserve(len(importance), now)
        self.pages = len(importance)
        self._history[: self.pages] = importance * self.window
        self._remembered = float(self._history[: self.pages].sum(dtype=np.float64))
        self._cash[: self.pages] = importance * (1.0 - self._virtual)
        self._seen[: self.pages] = self._dividend
        self._read_at[: self.pages] = now

    def read(self, page: int, links: npt.ArrayLike, now: float, elsewhere: int = 0) -> None:
        """Record that a page was read and links to these pages (each once; itself may be among them). `elsewhere`:
        the number of its links to pages without an id, whose part goes to the virtual page."""
        targets: Ids = np.asarray(links, dtype=np.int64)
        now = self._since_origin(now)
        self._reserve(max(page, int(targets.max(initial=0))) + 1, now)
        self._collect(page)
        cash = float(self._cash[page])
        self._cash[page] = 0.0
        self._remember(page, cash, now)
        passed = 0.0
        if len(targets):
            each = self.damping * cash / (len(targets) + elsewhere)
            passed = each * len(targets)
            np.add.at(self._cash, targets, each)
        self._virtual += cash - passed
        if self._virtual > 0.02:  # as if the virtual page were read often
            self._dividend += self._virtual / self.pages
            self._virtual = 0.0

    def importance(self, page: int) -> float:
        """The estimate for one page; all pages together have 1."""
        if not 0 <= page < self.pages:
            return 0.0
        held = self._history[page] + self._cash[page] + self._dividend - self._seen[page]
        return float(held / (self._remembered + 1.0 - self._virtual))

    def estimates(self) -> Vector:
        part = slice(0, self.pages)
        held = (self._history[part] + self._cash[part] + self._dividend - self._seen[part]).astype(np.float64)
        return np.asarray(held / held.sum()) if self.pages else np.empty(0)

    def _remember(self, page: int, cash: float, now: float) -> None:
        pause = now - float(self._read_at[page])
        before = float(self._history[page])
        if pause < self.window:
            self._history[page] = before * (self.window - pause) / self.window + cash
        else:
            self._history[page] = cash * self.window / pause
        self._remembered += float(self._history[page]) - before
        self._read_at[page] = now

    def _collect(self, page: int) -> None:
        self._cash[page] += self._dividend - self._seen[page]
        self._seen[page] = self._dividend

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
