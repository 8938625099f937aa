"""The scheduler's quality as tables, quoted in the documentation: `quadloom bench scheduling`.

* Closed forms: policies compared under several bandwidths, on 10,000 pages with log-normal rates (median one change
  in 20 days) and Pareto weights.
* Learned rates: weighted freshness of the harmonic policy after 20 visits per page, compared with known rates.
* A real history: weighted freshness with learned rates, compared with reading all pages evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from quadloom.planning.policy.objectives import Vector, freshness, harmonic_cost, xyleme_cost
from quadloom_lab.scheduling.optimal_refresh import optimal_rates
from quadloom_lab.scheduling.simulated_web import WebShape
from quadloom_lab.scheduling.simulator import Estimator, SimulatedPolicy, SimulationPlan, run

BANDWIDTHS = (0.01, 0.05, 0.1, 0.2, 1.0)
SEEDS = (1, 2, 3)  # weights are random, and a few heavy pages decide a single run


class ClosedForm(msgspec.Struct, frozen=True):
    """One policy under one bandwidth (reads per page and day). `starved`: share of pages that are never read."""

    per_page: float
    policy: str
    freshness: float
    cost: float
    harmonic: float
    starved: float


class LearnedFreshness(msgspec.Struct, frozen=True):
    """Weighted freshness, mean over `SEEDS`; `kept`: its ratio to the same policy with known rates."""

    policy: str
    estimator: str
    freshness: float
    kept: float


def closed_forms(bandwidths: Sequence[float] = BANDWIDTHS, pages: int = 10_000) -> list[ClosedForm]:
    """All policies on the web of the reference table (seed 7)."""
    rng = np.random.default_rng(7)
    rates = np.exp(rng.normal(np.log(1 / 20), 1.8, pages))
    weights = rng.pareto(1.2, pages) + 1.0
    weights /= weights.sum()
    rows = []
    for per_page in bandwidths:
        total = per_page * pages
        reads: dict[str, Vector] = {"by rate": total * rates / rates.sum(), "uniform": np.full(pages, per_page)}
        reads["xyleme"] = optimal_rates(weights, rates, total, policy="xyleme")
        reads["harmonic"] = optimal_rates(weights, rates, total, policy="harmonic")
        reads["freshness"] = optimal_rates(weights, rates, total, policy="freshness")
        rows += [
            ClosedForm(
                per_page,
                policy,
                freshness(weights, rates, f),
                xyleme_cost(weights, rates, f),
                harmonic_cost(weights, rates, f),
                float(np.mean(f == 0.0)),
            )
            for policy, f in reads.items()
        ]
    return rows


def learned_rates(pages: int = 1000) -> list[LearnedFreshness]:
    """Poisson webs at 0.1 reads per page and day, counted after 200 days: 20 visits per page."""
    plan = SimulationPlan(per_page=0.1, slot=0.5, warm_up=200.0)
    estimators: tuple[Estimator, ...] = ("known", "bits", "dates", "lying-dates", "lying-dates+trust", "push")
    return _means(("harmonic",), estimators, plan, WebShape(pages=pages))


def real_history(history: Path) -> list[LearnedFreshness]:
    """Replay of `history` at one read per page in 410 days, counted after the first year."""
    plan = SimulationPlan(per_page=1 / 410, slot=6.0, warm_up=365.0)
    return _means(("uniform", "xyleme", "harmonic", "freshness"), ("known", "bits"), plan, WebShape(), history)


def _means(
    policies: Sequence[SimulatedPolicy],
    estimators: Sequence[Estimator],
    plan: SimulationPlan,
    shape: WebShape,
    history: Path | None = None,
) -> list[LearnedFreshness]:
    found: dict[tuple[str, str], list[float]] = {}
    for seed in SEEDS:
        report = run(("poisson",), policies, estimators, shape=shape, plan=plan, history=history, seed=seed)
        for row in report.rows:
            found.setdefault((row.policy, row.estimator), []).append(row.freshness)
    mean = {key: float(np.mean(values)) for key, values in found.items()}
    return [LearnedFreshness(*key, value, value / mean[key[0], "known"]) for key, value in mean.items()]
