"""The exact solvers against closed forms, duality bounds and a general-purpose optimiser."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import exp1, gammaincinv

from quadloom.errors import UsageError
from quadloom.planning.policy.objectives import (
    Policy,
    age,
    freshness,
    harmonic_cost,
    objective,
    page_freshness,
    value,
    xyleme_cost,
)
from quadloom_lab.scheduling.optimal_refresh import most_valuable, optimal_rates, polite_rates, solve

POLICIES: list[Policy] = ["harmonic", "xyleme", "freshness"]


def reference_web(count: int = 10_000) -> tuple[np.ndarray, np.ndarray]:
    """Rates log-normal around one change in 20 days, weights Pareto(1.2): the web of the reference table."""
    rng = np.random.default_rng(7)
    rates = np.exp(rng.normal(np.log(1 / 20), 1.8, count))
    weights = rng.pareto(1.2, count) + 1.0
    return weights / weights.sum(), rates


@pytest.mark.parametrize("alpha", [0.5, 0.95, 1.0, 2.0])
def test_xyleme_is_the_closed_form_and_its_cost_the_known_minimum(alpha: float) -> None:
    weights, rates = reference_web()
    bandwidth = 500.0
    reads = optimal_rates(weights, rates, bandwidth, policy="xyleme", alpha=alpha)
    share = (weights * rates**alpha) ** (1 / (alpha + 1))
    np.testing.assert_allclose(reads, bandwidth * share / share.sum(), rtol=1e-9)
    minimum = share.sum() ** (alpha + 1) / ((alpha + 1) * bandwidth**alpha)
    assert xyleme_cost(weights, rates, reads, alpha) == pytest.approx(minimum, rel=1e-9)


@pytest.mark.parametrize("policy", ["harmonic", "freshness"])
@pytest.mark.parametrize("per_page", [0.01, 0.1, 1.0])
def test_ten_thousand_pages_are_optimal_by_weak_duality_in_under_a_second(policy: Policy, per_page: float) -> None:
    weights, rates = reference_web()
    bandwidth = per_page * len(weights)
    began = time.process_time()
    plan = solve(weights, rates, bandwidth, policy=policy)
    assert time.process_time() - began < 1.0
    assert plan.reads.sum() == pytest.approx(bandwidth, rel=1e-12)
    reached = objective(policy, weights, rates, plan.reads) / weights.sum()
    # For every price the relaxed problem bounds the optimum from below; its pages are minimised by brute force here,
    # with formulas written independently, so an error in the solver cannot hide in its own functions.
    periods = np.geomspace(1e-3, 1e4, 1400)  # M
    fresh = (1 - np.exp(-periods)) / periods
    cost = 1 - fresh if policy == "freshness" else np.euler_gamma + np.log(periods) + exp1(periods) - 1 + fresh
    least = np.empty(len(weights))
    for part in np.array_split(np.arange(len(weights)), 20):
        relaxed = weights[part, None] * cost + plan.price * rates[part, None] / periods
        least[part] = relaxed.min(axis=1)
        if policy == "freshness":
            least[part] = np.minimum(least[part], weights[part])  # never reading
    bound = least.sum() - plan.price * bandwidth
    assert reached >= bound * (1 - 1e-4)
    assert (reached - bound) / reached < 1e-3


@pytest.mark.parametrize("policy", POLICIES)
def test_a_general_optimiser_finds_nothing_better(policy: Policy) -> None:
    weights, rates = reference_web(60)
    bandwidth = 6.0
    ours = optimal_rates(weights, rates, bandwidth, policy=policy)

    def cost(log_reads: np.ndarray) -> float:
        reads = np.exp(log_reads)
        return objective(policy, weights, rates, bandwidth * reads / reads.sum())

    start = np.log(rates + 0.01)
    found = minimize(cost, start, method="L-BFGS-B", options={"maxiter": 4000, "maxfun": 400_000, "ftol": 1e-13})
    best = objective(policy, weights, rates, ours)
    assert best <= found.fun * (1 + 1e-9)
    assert found.fun <= best * 1.001


# (reads per page and day, policy) -> weighted freshness, Xyleme cost, harmonic penalty, age in days
REFERENCE = {
    (0.01, "xyleme"): (0.3578, 3.1535, 1.2321, 35.421),
    (0.01, "freshness"): (0.5461, np.inf, np.inf, np.inf),
    (0.01, "harmonic"): (0.4735, 5.5649, 1.0825, 22.728),
    (0.05, "xyleme"): (0.6722, 0.6836, 0.4536, 2.949),
    (0.05, "freshness"): (0.7409, np.inf, np.inf, np.inf),
    (0.05, "harmonic"): (0.7103, 0.8632, 0.4262, 2.207),
    (0.2, "xyleme"): (0.8699, 0.1832, 0.1493, 0.246),
    (0.2, "freshness"): (0.8810, np.inf, np.inf, np.inf),
    (0.2, "harmonic"): (0.8750, 0.1918, 0.1469, 0.219),
    (1.0, "xyleme"): (0.9675, 0.0397, 0.0337, 0.011),
    (1.0, "freshness"): (0.9678, np.inf, np.inf, np.inf),
    (1.0, "harmonic"): (0.9676, 0.0398, 0.0337, 0.011),
}


@pytest.mark.parametrize(("per_page", "policy"), list(REFERENCE))
def test_reference_table(per_page: float, policy: Policy) -> None:
    weights, rates = reference_web()
    reads = optimal_rates(weights, rates, per_page * len(weights), policy=policy)
    got = (
        freshness(weights, rates, reads),
        xyleme_cost(weights, rates, reads),
        harmonic_cost(weights, rates, reads),
        age(weights, rates, reads),
    )
    np.testing.assert_allclose(got, REFERENCE[per_page, policy], rtol=1e-3, atol=6e-4)


@pytest.mark.parametrize("per_page", [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
def test_policies_are_ordered_as_in_the_reference_table(per_page: float) -> None:
    weights, rates = reference_web()
    bandwidth = per_page * len(weights)
    reads: dict[str, np.ndarray] = {
        policy: optimal_rates(weights, rates, bandwidth, policy=policy) for policy in POLICIES
    }
    reads["uniform"] = np.full(len(weights), per_page)
    reads["by rate"] = bandwidth * rates / rates.sum()
    fresh = {name: freshness(weights, rates, f) for name, f in reads.items()}
    assert fresh["freshness"] > fresh["harmonic"] > fresh["xyleme"] > fresh["uniform"] > fresh["by rate"]
    xyleme = {name: xyleme_cost(weights, rates, f) for name, f in reads.items()}
    assert xyleme["xyleme"] < xyleme["harmonic"] < xyleme["uniform"] < xyleme["freshness"]
    harmonic = {name: harmonic_cost(weights, rates, f) for name, f in reads.items()}
    assert harmonic["harmonic"] == min(harmonic.values())
    assert (reads["harmonic"] > 0).all() and (reads["freshness"] == 0).any()


@pytest.mark.parametrize("policy", POLICIES)
def test_bounds_hold_and_the_rest_shares_one_price(policy: Policy) -> None:
    weights, rates = reference_web(2000)
    ceiling, floor = 4.0, 1 / 90
    plan = solve(weights, rates, 600.0, policy=policy, max_rate=ceiling, min_rate=floor)
    assert plan.reads.sum() == pytest.approx(600.0, rel=1e-9)
    assert plan.reads.max() <= ceiling and plan.reads.min() >= floor
    free = (plan.reads > floor * 1.0001) & (plan.reads < ceiling * 0.9999)
    assert (plan.reads >= ceiling * 0.9999).any() and (plan.reads <= floor * 1.0001).any() and free.any()
    worth = value(policy, weights, rates, 1 / plan.reads)
    np.testing.assert_allclose(worth[free], plan.price, rtol=1e-6)
    assert (worth[plan.reads >= ceiling * 0.9999] >= plan.price * 0.999).all()
    assert (worth[plan.reads <= floor * 1.0001] <= plan.price * 1.001).all()


def test_water_filling_by_hand_agrees_for_xyleme() -> None:
    weights, rates = reference_web(3000)
    bandwidth, ceiling, alpha = 900.0, 2.0, 0.95
    share = (weights * rates**alpha) ** (1 / (alpha + 1))
    capped = np.zeros(len(weights), dtype=bool)
    while True:
        left = bandwidth - ceiling * capped.sum()
        reads = np.where(capped, ceiling, left * share / share[~capped].sum())
        if not (reads > ceiling * (1 + 1e-12)).any():
            break
        capped |= reads > ceiling
    assert capped.any()
    np.testing.assert_allclose(
        optimal_rates(weights, rates, bandwidth, policy="xyleme", max_rate=ceiling), reads, rtol=1e-9
    )


def test_politeness_binds_a_host_and_frees_its_bandwidth_for_others() -> None:
    weights, rates = reference_web(3000)
    hosts = np.arange(3000) % 30
    hosts[np.argsort(weights)[-50:]] = 0  # all the heavy pages on one host
    caps = np.full(30, 40.0)
    caps[0] = 12.0
    plan = polite_rates(weights, rates, 600.0, hosts, caps)
    load = np.bincount(hosts, weights=plan.reads, minlength=30)
    assert plan.reads.sum() == pytest.approx(600.0, rel=1e-9)
    assert (load <= caps * (1 + 1e-9)).all() and load[0] == pytest.approx(12.0)
    assert plan.host_prices[0] > plan.price
    worth = value("harmonic", weights, rates, 1 / plan.reads)
    for h in range(30):
        np.testing.assert_allclose(worth[hosts == h], plan.host_prices[h], rtol=1e-6)


def test_hosts_that_cannot_use_the_bandwidth_leave_it() -> None:
    plan = polite_rates([1.0, 1.0], [1.0, 1.0], 10.0, [0, 1], [1.0, 2.0])
    np.testing.assert_allclose(plan.reads, [1.0, 2.0])


def test_degenerate_inputs() -> None:
    assert optimal_rates([], [], 5.0).shape == (0,)
    np.testing.assert_array_equal(optimal_rates([1, 1], [1, 1], 0.0), [0, 0])
    np.testing.assert_allclose(optimal_rates([1, 0, 1], [1, 1, 0], 3.0), [3, 0, 0])
    np.testing.assert_allclose(optimal_rates([1, 0], [1, 1], 3.0, min_rate=1.0), [2, 1])
    np.testing.assert_allclose(optimal_rates([1, 1], [1, 1], 9.0, max_rate=2.0), [2, 2])
    np.testing.assert_allclose(optimal_rates([1, 1], [1, 1], 1.0, min_rate=2.0), [0.5, 0.5])
    np.testing.assert_allclose(optimal_rates([1, 5], [1, 2], 4.0, policy="uniform"), [2, 2])
    for policy in POLICIES:
        extreme = optimal_rates([1e-12, 1e12], [1e-9, 1e3], 2.0, policy=policy)
        assert np.isfinite(extreme).all() and extreme.sum() == pytest.approx(2.0)
    for policy in POLICIES:
        np.testing.assert_array_equal(optimal_rates([0, 0], [1, 2], 3.0, policy=policy), [0, 0])
        np.testing.assert_array_equal(optimal_rates([1, 2], [0, 0], 3.0, policy=policy), [0, 0])
        np.testing.assert_allclose(optimal_rates([0.3], [7.0], 2.5, policy=policy), [2.5])
        np.testing.assert_array_equal(optimal_rates([1, 1], [1, 1], 3.0, policy=policy, max_rate=0.0), [0, 0])
        few = optimal_rates([1, 3, 2], [1, 1, 4], 3.0, policy=policy, max_rate=[0.5, np.inf, 1.0])
        assert few.sum() == pytest.approx(3.0) and few[0] <= 0.5 and few[2] <= 1.0
        short = optimal_rates([1, 3, 0], [1, 1, 4], 99.0, policy=policy, max_rate=[0.5, 2.0, 7.0])
        np.testing.assert_allclose(short, [0.5, 2.0, 0.0])  # less than the bandwidth: nothing else is worth a read
        single = optimal_rates(np.array([1, 3], np.float32), [1, 2], 3, policy=policy)
        np.testing.assert_allclose(single, optimal_rates((1.0, 3.0), np.array([1, 2]), 3.0, policy=policy))
        assert single.dtype == np.float64


def test_input_without_a_meaning_is_a_value_error() -> None:
    for bad in ([-1.0], [np.nan], [np.inf], [[1.0]], []):
        with pytest.raises(ValueError):
            optimal_rates(bad, [1.0], 1.0)
        with pytest.raises(ValueError):
            optimal_rates([1.0], bad, 1.0)
    for options in (
        {"bandwidth": np.nan},
        {"bandwidth": np.inf},
        {"bandwidth": -1.0},
        {"alpha": 0.0},
        {"alpha": np.inf},
        {"alpha": np.nan},
        {"policy": "fastest"},
        {"max_rate": -1.0},
        {"max_rate": np.nan},
        {"max_rate": [1.0, 2.0]},
    ):
        with pytest.raises(ValueError) as caught:
            optimal_rates(**{"weights": [1.0], "rates": [1.0], "bandwidth": 1.0, **options})  # type: ignore[arg-type]
        assert isinstance(caught.value, UsageError)
    with pytest.raises(ValueError):
        polite_rates([1.0], [1.0], 1.0, [1], [1.0])
    with pytest.raises(ValueError):
        polite_rates([1.0], [1.0], 1.0, [0], [np.nan])


def test_a_jump_of_freshness_takes_only_what_is_left() -> None:
    """Page B pays 0.9 per read however rarely it is read, and A less than that beyond 0.257 reads: B gets the rest.
    At any price that buys B at all it would take 25,000 reads."""
    reads = optimal_rates([1.0, 0.9e6], [1.0, 1e6], 2.0, policy="freshness")
    np.testing.assert_allclose(reads, [1 / gammaincinv(2.0, 0.9), 2.0 - 1 / gammaincinv(2.0, 0.9)], rtol=1e-6)


@pytest.mark.parametrize("policy", ["harmonic", "freshness"])
@pytest.mark.parametrize("per_page", [1e-4, 0.1, 10.0])
def test_twelve_orders_of_magnitude(policy: Policy, per_page: float) -> None:
    """Against plain bisection, page by page, with formulas written independently."""
    rng = np.random.default_rng(5)
    rates = 10.0 ** rng.uniform(-8, 4, 300)
    weights = 10.0 ** rng.uniform(-6, 6, 300)
    bandwidth = per_page * 300
    reads = optimal_rates(weights, rates, bandwidth, policy=policy)
    assert reads.sum() == pytest.approx(bandwidth, rel=1e-12) and (reads >= 0).all()

    def gain(m: np.ndarray) -> np.ndarray:
        exact = m + np.expm1(-m) if policy == "harmonic" else -np.expm1(-m) - m * np.exp(-m)
        first, second = (0.5, -1 / 6) if policy == "harmonic" else (0.5, -1 / 3)
        return np.where(m < 1e-3, m * m * (first + second * m), exact)

    def bought(price: float) -> np.ndarray:
        low, high = np.full(300, 1e-20), np.full(300, 1e20)
        for _ in range(200):
            middle = np.sqrt(low * high)
            enough = weights / rates * gain(middle) > price
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(high > 1e19, 0.0, rates / low)

    low, high = 1e-40, 1e40
    for _ in range(300):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if bought(middle).sum() > bandwidth else (low, middle)
    best = bought(low)
    if policy == "freshness":
        jump = best - bought(high)
        best = best - jump * (best.sum() - bandwidth) / max(jump.sum(), 1e-300)
        worth = [weights @ page_freshness(rates, f) for f in (reads, best)]
        assert worth[0] >= worth[1] * (1 - 1e-6)
    else:
        np.testing.assert_allclose(reads, best, rtol=1e-5)


def test_costs_of_pages_without_weight_are_nothing() -> None:
    weights, rates, reads = np.array([1.0, 0.0]), np.array([1.0, 2.0]), np.array([1.0, 0.0])
    for policy in POLICIES:
        assert objective(policy, weights, rates, reads) == objective(policy, weights[:1], rates[:1], reads[:1])


@pytest.mark.parametrize("policy", POLICIES)
def test_the_unit_of_time_does_not_matter(policy: Policy) -> None:
    weights, rates = reference_web(500)
    per_day = optimal_rates(weights, rates, 50.0, policy=policy)
    per_second = optimal_rates(weights, rates / 86_400, 50.0 / 86_400, policy=policy)
    np.testing.assert_allclose(per_second * 86_400, per_day, rtol=1e-7)


@pytest.mark.parametrize("policy", POLICIES)
def test_index_policy_settles_at_the_optimal_periods(policy: Policy) -> None:
    weights, rates = reference_web(400)
    per_slot, slot = 4, 0.1
    last = np.zeros(400)
    reads = np.zeros(400)
    for step in range(1, 12_001):
        now = step * slot
        chosen = most_valuable(per_slot, weights, rates, now - last, policy=policy)
        assert len(chosen) == per_slot
        if step > 4000:
            reads[chosen] += 1
        last[chosen] = now
    reached = objective(policy, weights, rates, reads / (8000 * slot)) if policy != "freshness" else None
    optimal = optimal_rates(weights, rates, per_slot / slot, policy=policy)
    if reached is not None:
        assert reached <= objective(policy, weights, rates, optimal) * 1.02
    else:
        ours = float(weights @ page_freshness(rates, reads / (8000 * slot)))
        assert ours >= freshness(weights, rates, optimal) * 0.995


def test_requests_come_first_then_overdue_pages_and_the_cycle_time_holds() -> None:
    weights, rates = np.ones(6), np.ones(6)
    elapsed = np.array([5.0, 1.0, 40.0, 0.1, 3.0, 0.2])
    asked = np.array([False, False, False, True, False, False])
    order = most_valuable(6, weights, rates, elapsed, min_interval=0.5, max_interval=30.0, requested=asked)
    assert order.tolist() == [3, 2, 0, 4, 1]
    assert most_valuable(0, weights, rates, elapsed).tolist() == []
