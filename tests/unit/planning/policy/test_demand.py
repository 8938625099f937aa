"""The running sums against sums over all pages."""

from __future__ import annotations

import time

import numpy as np
import pytest

from quadloom.planning.policy.demand import Demand, place
from quadloom.planning.policy.objectives import Policy
from quadloom_lab.scheduling.optimal_refresh import solve

DAY = 86_400.0


def pages(count: int, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rates = np.exp(rng.normal(np.log(1 / 20), 1.8, count)) / DAY
    weights = rng.pareto(1.2, count) + 1.0
    return weights / weights.mean(), rates


def filled(weights: np.ndarray, rates: np.ndarray) -> Demand:
    demand = Demand()
    for w, r in zip(weights, rates, strict=True):
        demand.replace((None, place(float(w), float(r))))
    return demand


@pytest.mark.parametrize("policy", ["harmonic", "xyleme", "freshness", "uniform"])
@pytest.mark.parametrize("per_page", [0.02, 0.2, 2.0])
def test_cells_find_the_price_of_the_exact_solver(policy: Policy, per_page: float) -> None:
    weights, rates = pages(5000)
    bandwidth = per_page * 5000 / DAY
    bounds = {"min_interval": 3600.0, "max_interval": 90 * DAY}
    price = filled(weights, rates).price(bandwidth, policy, **bounds).price
    exact = solve(weights, rates, bandwidth, policy=policy, max_rate=1 / 3600, min_rate=1 / (90 * DAY))
    assert price == pytest.approx(exact.price, rel=0.03)


def test_s_follows_replacements() -> None:
    weights, rates = pages(2000)
    demand = filled(weights, rates)
    demand.s(0.95)
    rng = np.random.default_rng(1)
    for i in rng.integers(0, 2000, 5000):
        before = place(float(weights[i]), float(rates[i]))
        weights[i] *= rng.uniform(0.8, 1.25)
        rates[i] *= rng.uniform(0.5, 2.0)
        demand.replace((before, place(float(weights[i]), float(rates[i]))))
    # The first S came from cells (1 % coarse); what equation (6) added since is exact.
    assert demand.s(0.95) == pytest.approx(float(np.sum((weights * rates**0.95) ** (1 / 1.95))), rel=0.01)
    assert demand.pages == 2000


def test_too_much_and_too_little_bandwidth() -> None:
    demand = filled(*pages(1000))
    rich = demand.price(5000.0, "harmonic", min_interval=1.0, max_interval=90 * DAY)
    assert rich.price == 0.0
    poor = demand.price(1000 / (200 * DAY), "harmonic", min_interval=1.0, max_interval=90 * DAY)
    assert poor.slowest == pytest.approx(200 * DAY)
    assert Demand().price(1.0, "harmonic", min_interval=1.0, max_interval=DAY).price == 0.0


def test_emptied_cells_leave_nothing_and_dumps_restore() -> None:
    weights, rates = pages(300)
    demand = filled(weights, rates)
    copy = Demand(demand.dump())
    assert copy.pages == 300
    assert copy.price(0.01, "harmonic", min_interval=1.0, max_interval=900 * DAY).price == pytest.approx(
        demand.price(0.01, "harmonic", min_interval=1.0, max_interval=900 * DAY).price
    )
    for w, r in zip(weights, rates, strict=True):
        demand.replace((place(float(w), float(r)), None))
    assert demand.pages == 0 and demand.dump() == []


def test_a_page_that_another_worker_counted_counts_as_one_that_came() -> None:
    mine, all_mine = Demand(), Demand()
    mine.replace((place(1.0, 1e-5), place(2.0, 1e-6)))
    mine.replace((place(9.0, 1e-9), None))
    all_mine.replace((None, place(2.0, 1e-6)))
    assert (mine.pages, mine.dump(), mine.s()) == (1, all_mine.dump(), all_mine.s())


def test_a_new_price_takes_milliseconds() -> None:
    demand = filled(*pages(20_000))
    began = time.process_time()
    for _ in range(5):
        demand.price(0.05, "harmonic", min_interval=3600.0, max_interval=900 * DAY)
    assert (time.process_time() - began) / 5 < 0.02
