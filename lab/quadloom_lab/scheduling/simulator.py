"""Compare policies and estimators on webs whose every change is known: `quadloom simulate`; the tests use it too.

Time passes in slots; in each slot the index policy reads the same number of pages (bandwidth × slot). Freshness is not
sampled but integrated: a copy is fresh from the read to the page's next change. Nothing is counted before `warm_up`.

Estimators: `known` (the long-run rates), `bits` (only whether a page changed between two visits), and bits with one of
the sources of `simulated_signals` besides: `dates`, `lying-dates`, `lastmod` as they are, `lying-dates+trust` and
`lastmod+trust` if hosts have earned trust, `push`. The learning ones start from a prior that is independent of the
web's true rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from quadloom.planning.policy.change_rate import Prior
from quadloom.planning.policy.objectives import Policy
from quadloom_lab.charts import Series, line_chart
from quadloom_lab.scheduling.change_rates import ChangeRates
from quadloom_lab.scheduling.optimal_refresh import most_valuable
from quadloom_lab.scheduling.simulated_signals import Signals, Source
from quadloom_lab.scheduling.simulated_web import Process, SimulatedWeb, WebShape, replayed_web, simulated_web

Estimator = Literal[
    "known", "bits", "dates", "lying-dates", "lying-dates+trust", "lastmod", "lastmod+trust", "push"
]  # fmt: skip
SimulatedPolicy = Literal["harmonic", "xyleme", "freshness", "uniform", "by-rate"]
POLICIES: tuple[SimulatedPolicy, ...] = get_args(SimulatedPolicy)
Vector = npt.NDArray[np.float64]

# The signal that a learning estimator has besides bits, and whether a host must earn trust.
_SOURCES: dict[Estimator, tuple[Source, bool]] = {
    "dates": ("dates", False),
    "lying-dates": ("lying-dates", False),
    "lying-dates+trust": ("lying-dates", True),
    "lastmod": ("lastmod", False),
    "lastmod+trust": ("lastmod", True),
    "push": ("push", True),
}
_WORLD = Prior.around(14.0)
_ALPHA = 0.95


class SimulationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How a web is read. `per_page`: reads per page and day; `slot` and `warm_up` in days."""

    per_page: float = 0.1
    slot: float = 0.25
    warm_up: float = 100.0
    min_interval: float = 0.0
    max_interval: float = float("inf")


class SimulationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `freshness`: weighted, over time; `plain`: unweighted; `cost`: Xyleme's with true rates, per unit of
    weight; `slot_spread`: largest deviation of the reads per slot from their mean; `rate_error`: median |ln λ̂/λ|."""

    process: str
    policy: str
    estimator: str
    freshness: float
    plain: float
    cost: float
    reads_per_day: float
    slot_spread: float
    unread: float  # share of pages never read after the warm-up
    rate_error: float
    curve: tuple[tuple[float, float], ...] = ()  # (day, weighted freshness) in tenths of the run


class SimulationReport(msgspec.Struct, frozen=True):
    rows: tuple[SimulationRow, ...]

    def table(self) -> str:
        """A text table, one line per run."""
        head = (
            f"{'process':<10} {'policy':<10} {'rates':<17} {'F(w)':>7} {'F':>7} {'COST':>9} {'reads/d':>9} {'slot±':>6}"
        )
        lines = [f"{head} {'unread':>7} {'|ln λ̂/λ|':>9}"]
        lines += [
            f"{row.process:<10} {row.policy:<10} {row.estimator:<17} {row.freshness:7.4f} {row.plain:7.4f} "
            f"{row.cost:9.4f} {row.reads_per_day:9.1f} {row.slot_spread:6.1%} {row.unread:7.2%} {row.rate_error:9.3f}"
            for row in self.rows
        ]
        return "\n".join(lines) + "\n"

    def save(self, path: Path) -> None:
        """Weighted freshness over time, one line per run. `.svg` always works, `.png` needs the extra `plots`."""
        series = [Series(f"{r.process} {r.policy} {r.estimator}", r.curve) for r in self.rows]
        line_chart(path, series, title="Weighted freshness", x_label="days", y_label="share of weight up to date")


def run(
    processes: Sequence[Process] = ("poisson",),
    policies: Sequence[SimulatedPolicy] = ("uniform", "xyleme", "freshness", "harmonic"),
    estimators: Sequence[Estimator] = ("known", "bits"),
    *,
    shape: WebShape | None = None,
    plan: SimulationPlan | None = None,
    history: Path | None = None,
    seed: int = 1,
) -> SimulationReport:
    """Every combination; with `history` the processes are replaced by its replay."""
    shape, plan = shape or WebShape(), plan or SimulationPlan()
    rows = []
    for process in ("replay",) if history is not None else processes:
        rng = np.random.default_rng(seed)
        web = replayed_web(history, rng) if history is not None else simulated_web(cast("Process", process), shape, rng)
        rows += [
            simulate(web, policy, estimator, plan, process=process, seed=seed)
            for policy in policies
            for estimator in estimators
        ]
    return SimulationReport(tuple(rows))


def simulate(
    web: SimulatedWeb,
    policy: SimulatedPolicy,
    estimator: Estimator,
    plan: SimulationPlan,
    *,
    process: str = "",
    seed: int = 1,
) -> SimulationRow:
    """One web, one policy, one estimator. `seed` decides which changes signals miss and invent."""
    return _Simulation(web, policy, estimator, plan, np.random.default_rng(seed)).run(process)


class _Simulation:
    def __init__(
        self,
        web: SimulatedWeb,
        policy: SimulatedPolicy,
        estimator: Estimator,
        plan: SimulationPlan,
        rng: np.random.Generator,
    ) -> None:
        self.web, self.plan, self.estimator = web, plan, estimator
        self.by_rate = policy == "by-rate"
        self.policy: Policy = "uniform" if policy == "by-rate" else policy
        self.name = policy
        self.rates = web.rates.copy() if estimator == "known" else np.full(web.pages, np.exp(_WORLD.centre))
        self.learned = ChangeRates(web.pages, _WORLD)
        source, check = _SOURCES.get(estimator, (None, False))
        self.signals = None if source is None else Signals(source, web, check=check, rng=rng)
        self.last = web.born.copy()  # discovered, and read, as soon as it exists
        self.reads = np.zeros(web.pages)
        self.fresh = np.zeros(web.pages)
        self.cost = np.zeros(web.pages)
        self.tenths = np.zeros((10, 2))

    def run(self, process: str) -> SimulationRow:
        plan, web = self.plan, self.web
        bandwidth = plan.per_page * web.pages * plan.slot
        carried, counts = 0.0, []
        next_learning = 10.0
        for number in range(1, int(web.days / plan.slot) + 1):
            now = number * plan.slot
            due = bandwidth + carried
            chosen = self._choose(int(due), now)
            carried = min(due - len(chosen), 1.0) if len(chosen) == int(due) else 0.0
            self._account(chosen, now)
            self._learn(chosen, now)
            self.last[chosen] = now
            if now > plan.warm_up:
                counts.append(len(chosen))
                self.reads[chosen] += 1.0
            if now >= next_learning:
                self._learn_priors(now)
                next_learning = now * 1.3
        self._account(np.flatnonzero(web.born < web.days), web.days)
        return self._row(process, np.array(counts, dtype=np.float64))

    def _choose(self, count: int, now: float) -> npt.NDArray[np.intp]:
        elapsed = now - self.last
        alive = np.flatnonzero(elapsed > 0.0)
        rates, noticed = self.rates[alive], None
        if self.signals is not None and self.estimator == "push":
            hosts = self.web.hosts[alive]
            told = self.signals.noticed(alive, self.last[alive], now)
            noticed = np.where(told, self.signals.precision[hosts], 0.0)
            # Silence is evidence too: only unannounced changes are left to estimate.
            rates = np.where(told, rates, rates * (1.0 - self.signals.recall[hosts]))
        index = elapsed[alive] * (rates if self.by_rate else 1.0)
        best = most_valuable(
            count,
            self.web.weights[alive],
            rates,
            index,
            policy=self.policy,
            alpha=_ALPHA,
            noticed=noticed,
            min_interval=self.plan.min_interval,
            max_interval=self.plan.max_interval,
        )
        return np.asarray(alive[best])

    def _account(self, pages: npt.NDArray[np.intp], now: float) -> None:
        """Integrate freshness and cost of `pages` from their last read to now."""
        warm = self.plan.warm_up
        last = self.last[pages]
        begun = np.maximum(last, warm)
        stale_at = np.minimum(self.web.next_change(pages, last), now)
        self.fresh[pages] += np.maximum(stale_at - begun, 0.0)
        waited = np.maximum(now - last, 0.0) ** (_ALPHA + 1.0) - np.maximum(begun - last, 0.0) ** (_ALPHA + 1.0)
        self.cost[pages] += np.where(now > warm, self.web.rates[pages] ** _ALPHA * waited / (_ALPHA + 1.0), 0.0)
        weight = self.web.weights[pages]
        tenth = min(int(now / self.web.days * 10.0), 9)
        self.tenths[tenth] += (weight @ np.maximum(stale_at - last, 0.0), weight @ np.maximum(now - last, 0.0))

    def _learn(self, pages: npt.NDArray[np.intp], now: float) -> None:
        if self.estimator == "known" or not len(pages):
            return
        last = self.last[pages]
        changed = self.web.next_change(pages, last) <= now
        ages = None if self.signals is None else self.signals.ages(pages, last, now, changed)
        self.learned.observe(pages, now - last, changed, ages)
        self._take_over(pages)

    def _learn_priors(self, now: float) -> None:
        """Empirical Bayes per host, as the planner does page by page."""
        if self.estimator == "known":
            return
        for host in range(int(self.web.hosts.max()) + 1):
            self.learned.learn_prior(np.flatnonzero((self.web.hosts == host) & (self.web.born < now)), _WORLD)
        self._take_over(np.flatnonzero(self.web.born < now))

    def _take_over(self, pages: npt.NDArray[np.intp]) -> None:
        mean, log_mean, _ = self.learned.estimates(pages)
        self.rates[pages] = np.exp(log_mean) if self.policy == "freshness" else mean

    def _row(self, process: str, counts: Vector) -> SimulationRow:
        web, plan = self.web, self.plan
        lived = np.maximum(web.days - np.maximum(web.born, plan.warm_up), 0.0)
        mean = counts.mean() if len(counts) else 0.0
        full = counts[counts > 0] if len(counts) else counts
        spread = float(np.abs(full - mean).max() / mean) if len(full) and mean else 0.0
        error = np.abs(np.log(self.rates / web.rates))
        curve = [((n + 0.5) * web.days / 10.0, float(f / s)) for n, (f, s) in enumerate(self.tenths) if s > 0.0]
        return SimulationRow(
            process=process,
            policy=self.name,
            estimator=self.estimator,
            freshness=float(web.weights @ self.fresh / (web.weights @ lived)),
            plain=float(self.fresh.sum() / lived.sum()),
            cost=float(web.weights @ self.cost / (web.weights @ lived)),
            reads_per_day=float(counts.sum() / max(web.days - plan.warm_up, 1e-9)),
            slot_spread=spread,
            unread=float(np.mean(self.reads[lived > 0] == 0)),
            rate_error=float(np.median(error)),
            curve=tuple(curve),
        )
