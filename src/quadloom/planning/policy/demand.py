"""How many reads all pages together want, updated page by page: the paper's running S, for every policy.

For the xyleme policy a single sum S is enough, f_i = (G/S)(w_i λ_i^α)^(1/(α+1)), and equation (6) replaces the term of
a page when its λ or its w changes. The other policies and all bounds need the price μ at which Σ f = G, and that
depends on how pages are distributed over (λ, w). So pages are counted in cells of half an e-fold in both, with their
mean position in the cell: a few hundred cells represent any number of pages, replacing a page is O(1), and a new price
takes about a millisecond. Sums drift by rounding, so an empty cell is dropped with its residue, and S is recomputed
from the cells every 65,536 changes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec
import numpy as np
import scipy  # its parts load on first use: half a second that most commands need not wait

from quadloom.planning.policy.objectives import Policy, freshness, rate_at_price, xyleme_cost
from quadloom.planning.policy.page_row import ExpectedFreshness as ExpectedFreshness

_CELL = 0.5
_LEAST, _MOST = 1e-12, 1e12  # weights and rates are clipped to this range
_PRICE_EVERY = 256  # settlements between two prices, fewer while the number of pages grows


class Price(msgspec.Struct, frozen=True):
    """`price` of a read; 0 = there is more bandwidth than the shortest interval allows to use.
    `slowest`: the longest interval between reads of a page; longer than the setting only if the bandwidth is not enough
    for that."""

    price: float
    slowest: float


class Place(NamedTuple):
    """The position of a page in a `Demand`."""

    cell: tuple[int, int]
    log_rate: float
    log_weight: float


def place(weight: float, rate: float) -> Place:
    """The position of a page with this weight and change rate."""
    log_rate = math.log(rate if _LEAST < rate < _MOST else min(max(rate, _LEAST), _MOST))
    log_weight = math.log(weight if _LEAST < weight < _MOST else min(max(weight, _LEAST), _MOST))
    return Place((math.floor(log_rate / _CELL), math.floor(log_weight / _CELL)), log_rate, log_weight)


class Demand:
    """Counts of pages by change rate and weight."""

    def __init__(self, cells: list[tuple[int, int, float, float, float]] | None = None) -> None:
        self._cells: dict[tuple[int, int], list[float]] = {(i, j): list(sums) for i, j, *sums in cells or []}
        self.pages = round(sum(cell[0] for cell in self._cells.values()))
        self._sums: dict[float, float] = {}
        self._changes = 0

    def replace(self, *moves: tuple[Place | None, Place | None]) -> None:
        """For each (old, new) move a page, insert it (`old` is None) or remove it (`new` is None).

        If `old` was counted by another worker, whose site this worker took over, the page is inserted.
        """
        cells = self._cells
        for old, new in moves:
            if old is not None and old.cell not in cells:
                old = None
            if old is not None:
                cell = cells[old.cell]
                cell[0] -= 1.0
                cell[1] -= old.log_rate
                cell[2] -= old.log_weight
                if cell[0] < 0.5:
                    del cells[old.cell]
                self.pages -= 1
            if new is not None:
                found = cells.get(new.cell)
                if found is None:
                    cells[new.cell] = [1.0, new.log_rate, new.log_weight]
                else:
                    found[0] += 1.0
                    found[1] += new.log_rate
                    found[2] += new.log_weight
                self.pages += 1
            for alpha in self._sums:
                self._sums[alpha] += _term(new, alpha) - _term(old, alpha)
        self._changes += len(moves)

    def s(self, alpha: float = 0.95) -> float:
        """S of equation (5); computed at the first call, then updated by equation (6)."""
        if alpha not in self._sums or self._changes > 65_536:
            counts, weights, rates = self._arrays()
            self._sums = {alpha: float(counts @ (weights * rates**alpha) ** (1.0 / (alpha + 1.0)))}
            self._changes = 0
        return self._sums[alpha]

    def price(
        self,
        bandwidth: float,
        policy: Policy,
        *,
        alpha: float = 0.95,
        min_interval: float,
        max_interval: float,
        guess: float = 0.0,
    ) -> Price:
        """The price at which all pages together get `bandwidth` reads per time unit. `guess`: the last price."""
        if bandwidth <= 0.0:
            return Price(math.inf, math.inf)
        if self.pages / max_interval >= bandwidth:
            return Price(math.inf, self.pages / bandwidth)
        if self.pages == 0 or (min_interval > 0.0 and self.pages / min_interval <= bandwidth):
            return Price(0.0, max_interval)
        counts, weights, rates = self._arrays()
        ceiling = 1.0 / min_interval if min_interval > 0.0 else np.inf

        def excess(log_price: float) -> float:
            reads = rate_at_price(policy, weights, rates, math.exp(log_price), alpha)
            return float(counts @ np.clip(reads, 1.0 / max_interval, ceiling)) - bandwidth

        if 0.0 < guess < math.inf:
            low = high = math.log(guess)
        else:
            low = high = 2.0 * math.log(max(float(counts @ np.sqrt(weights * rates / 2.0)), 1e-300) / bandwidth)
        step = 0.02  # prices change little between two calls
        while excess(low) < 0.0 and low > -600.0:
            low, step = low - step, step * 4.0
        step = 0.02
        while excess(high) > 0.0 and high < 600.0:
            high, step = high + step, step * 4.0
        log_price = float(scipy.optimize.brentq(excess, low, high, xtol=1e-3)) if low < high else low
        return Price(math.exp(log_price), max_interval)

    def expected(self, price: Price, policy: Policy, *, alpha: float, min_interval: float) -> ExpectedFreshness | None:
        """What reading every page at `price` leads to; None = there are no pages."""
        if not self.pages:
            return None
        counts, weights, rates = self._arrays()
        shortest, slowest = max(min_interval, 1e-9), max(price.slowest, min_interval, 1e-9)
        reads = np.full(len(rates), 1.0 / (shortest if price.price == 0.0 else slowest))
        if 0.0 < price.price < math.inf:
            wanted = rate_at_price(policy, weights, rates, price.price, alpha)
            reads = np.clip(wanted, 1.0 / slowest, 1.0 / shortest)
        weights = counts * weights
        return ExpectedFreshness(
            self.pages,
            round(freshness(weights, rates, reads), 4),
            round(xyleme_cost(weights, rates, reads, alpha) / float(weights.sum()), 6),
            round(float(counts @ reads), 6),
        )

    def dump(self) -> list[tuple[int, int, float, float, float]]:
        return [(i, j, cell[0], cell[1], cell[2]) for (i, j), cell in self._cells.items()]

    def _arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Counts, weights and rates of the cells, at the geometric mean of their pages."""
        if not self._cells:
            return np.zeros(0), np.zeros(0), np.zeros(0)
        table = np.array(list(self._cells.values()))
        return table[:, 0], np.exp(table[:, 2] / table[:, 0]), np.exp(table[:, 1] / table[:, 0])


class Market:
    """Pages that compete for one bandwidth, and the resulting price."""

    __slots__ = ("delay", "demand", "pages", "price", "priced_pages", "since")

    def __init__(self, pages: int = 0, demand: Demand | None = None) -> None:
        self.pages = pages
        self.demand = demand  # None: too few pages for the bandwidth to matter
        self.price = Price(0.0, 0.0)
        self.priced_pages = -1.0
        self.since = 0
        self.delay = 0.0  # of the host, as measured at its last visit

    def stale(self) -> bool:
        return (
            self.since >= max(_PRICE_EVERY, self.pages // 8)
            or not 0.9 * self.pages <= self.priced_pages <= 1.1 * self.pages
        )


def _term(where: Place | None, alpha: float) -> float:
    """The term of a page in S, (w λ^α)^(1/(α+1))."""
    return 0.0 if where is None else math.exp((where.log_weight + alpha * where.log_rate) / (alpha + 1.0))
