"""The estimator against exact posteriors, conjugate formulas and simulated visits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import gamma, norm

from quadloom.planning.policy.change_rate import ChangeRate, Estimate, Prior, SitePrior
from quadloom_lab.scheduling.change_rates import ChangeRates

DAY = 86_400.0


def exact_mean(prior: Prior, visits: list[tuple[float, bool]]) -> float:
    """Posterior mean by adaptive quadrature of the textbook likelihood, nothing binned, with half an imagined visit."""
    changed_gaps = [math.log(gap) for gap, changed in visits if changed]
    imagined = 0.5 * math.exp(np.mean(changed_gaps)) if changed_gaps else 0.0

    def log_density(x: float) -> float:
        total = norm.logpdf(x, prior.centre, prior.spread) - imagined * math.exp(x)
        for gap, changed in visits:
            m = math.exp(x) * gap
            total += math.log(-math.expm1(-m)) if changed else -m
        return float(total)

    span = np.linspace(prior.centre - 9 * prior.spread, prior.centre + 9 * prior.spread, 2001)
    peak = max(span, key=log_density)
    top = log_density(peak)
    below = quad(lambda x: math.exp(log_density(x) - top), peak - 8, peak + 8, limit=300)[0]
    above = quad(lambda x: math.exp(log_density(x) - top + x), peak - 8, peak + 8, limit=300)[0]
    return above / below


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.floats(0.05, 60.0), st.booleans()), min_size=1, max_size=30),
    st.floats(-4.0, 1.0),
    st.floats(0.5, 2.0),
)
def test_bits_give_the_exact_posterior_mean(visits: list[tuple[float, bool]], centre: float, spread: float) -> None:
    prior = Prior(centre, spread)
    rate = ChangeRate(prior, forgetting=1.0)
    for gap, changed in visits:
        rate.observe(gap, changed)
    assert rate.mean == pytest.approx(exact_mean(prior, visits), rel=0.015)


def test_dated_changes_are_conjugate() -> None:
    """With ages the likelihood is a Gamma's; a nearly flat prior leaves its mean and quantiles."""
    rate = ChangeRate(Prior(math.log(0.2), 40.0), forgetting=1.0)
    rng = np.random.default_rng(3)
    changes, quiet = 0, 0.0
    for _ in range(400):
        gap = float(rng.uniform(1, 12))
        age = float(rng.exponential(5))
        rate.observe(gap, age < gap, age if age < gap else None)
        changes += age < gap
        quiet += min(age, gap)
    assert rate.mean == pytest.approx(changes / quiet, rel=1e-3)
    low, high = rate.interval(0.8)
    assert low == pytest.approx(gamma.ppf(0.1, changes, scale=1 / quiet), rel=2e-3)
    assert high == pytest.approx(gamma.ppf(0.9, changes, scale=1 / quiet), rel=2e-3)


def test_first_visit_learns_from_a_trusted_date() -> None:
    young, old = ChangeRate(Prior.around(14 * DAY)), ChangeRate(Prior.around(14 * DAY))
    young.observe(math.inf, True, 3600.0)
    old.observe(math.inf, True, 900 * DAY)
    assert young.mean > ChangeRate(Prior.around(14 * DAY)).mean > 5 * old.mean
    untouched = ChangeRate(Prior.around(14 * DAY))
    untouched.observe(math.inf, True)
    assert untouched.visits == 0


def test_an_age_that_contradicts_the_change_is_only_a_bit() -> None:
    bit, wrong = ChangeRate(), ChangeRate()
    bit.observe(5.0, True)
    wrong.observe(5.0, True, 9.0)
    assert wrong.mean == bit.mean


@pytest.mark.parametrize("changed", [True, False])
def test_one_sided_evidence_stays_finite_and_positive(changed: bool) -> None:
    rate = ChangeRate()
    for _ in range(50):
        rate.observe(DAY, changed)
    low, high = rate.interval(0.9)
    assert 0.0 < low < rate.mean < high * 2 < math.inf
    assert (rate.mean > 1 / DAY) is changed


@pytest.mark.parametrize("unit", [1.0, DAY])
def test_default_prior_knows_no_unit(unit: float) -> None:
    rng = np.random.default_rng(5)
    ratios = []
    for _ in range(200):
        rate = ChangeRate()
        for gap in rng.exponential(5.0, 20):
            rate.observe(gap * unit, bool(rng.random() < -math.expm1(-0.3 * gap)))
        ratios.append(rate.mean * unit / 0.3)
    assert np.exp(np.median(np.log(ratios))) == pytest.approx(1.0, abs=0.12)
    assert np.median(np.abs(np.log(ratios))) < 0.25


def test_credible_intervals_cover_what_they_promise() -> None:
    rng = np.random.default_rng(11)
    prior = Prior(math.log(0.1), 1.0)
    hit = 0
    for _ in range(600):
        true = math.exp(rng.normal(prior.centre, prior.spread))
        rate = ChangeRate(prior, forgetting=1.0)
        for gap in rng.uniform(1, 20, 12):
            rate.observe(gap, bool(rng.random() < -math.expm1(-true * gap)))
        low, high = rate.interval(0.8)
        hit += low <= true <= high
    assert hit / 600 == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("dated", [False, True])
@pytest.mark.parametrize("visits", [20, 80])
def test_intervals_stay_calibrated_although_old_visits_fade(visits: int, dated: bool) -> None:
    """Without any prior, with forgetting, for rates from one change in twenty days to one a day."""
    rng = np.random.default_rng(visits)
    hit, runs = 0, 450
    for run in range(runs):
        true = (0.05, 0.2, 1.0)[run % 3]
        rate = ChangeRate()
        for gap, age in zip(rng.uniform(1, 10, visits), rng.exponential(1 / true, visits), strict=True):
            rate.observe(float(gap), bool(age < gap), float(age) if dated and age < gap else None)
        low, high = rate.interval(0.9)
        hit += low <= true <= high
    assert 0.85 <= hit / runs <= 0.95


def test_intervals_nest_and_hold_the_median() -> None:
    rate = ChangeRate()
    for gap, changed in [(1.0, True), (5.0, False), (2.0, True), (9.0, False)]:
        rate.observe(gap, changed)
    bounds = [rate.interval(p) for p in (0.0, 0.1, 0.5, 0.8, 0.9, 0.99, 1.0)]
    lows, highs = zip(*bounds, strict=True)
    assert list(lows) == sorted(lows, reverse=True) and list(highs) == sorted(highs)
    assert lows[0] == highs[0] and lows[-1] > 0.0 and highs[-1] < math.inf
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError):
            rate.interval(wrong)


def test_gaps_that_say_nothing_and_gaps_beyond_all_measure() -> None:
    rate = ChangeRate()
    for gap in (0.0, -3.0, math.nan, math.inf):
        rate.observe(gap, True)
        rate.observe(gap, False)
    assert rate.visits == 0
    for gap in (1e30, 1e-12, 1e300):
        rate.observe(gap, False)
        rate.observe(gap, True)
        low, high = rate.interval(0.9)
        assert 0.0 < low <= rate.mean <= high < math.inf
    just_now = ChangeRate()
    just_now.observe(5.0, True, 0.0)
    assert just_now.mean < math.inf
    for odd in (-1.0, math.nan):
        bit, other = ChangeRate(), ChangeRate()
        bit.observe(5.0, True)
        other.observe(5.0, True, odd)
        assert other.mean == bit.mean


def test_dates_sharpen_the_estimate() -> None:
    rng = np.random.default_rng(2)
    errors: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(200):
        gaps = rng.exponential(1.0, 20)
        ages = rng.exponential(1 / 3.0, 20)
        for dated in (True, False):
            rate = ChangeRate()
            for gap, age in zip(gaps, ages, strict=True):
                rate.observe(gap, age < gap, age if dated and age < gap else None)
            errors[dated].append(abs(math.log(rate.mean / 3.0)))
    assert np.median(errors[True]) < 0.8 * np.median(errors[False])


def test_forgetting_follows_a_page_that_wakes_up() -> None:
    steady, forgetful = ChangeRate(forgetting=1.0), ChangeRate()
    for rate in (steady, forgetful):
        for _ in range(200):
            rate.observe(10.0, False)
        for _ in range(40):
            rate.observe(10.0, True)
    assert forgetful.mean > 2 * steady.mean


def test_state_is_small_and_survives_the_journey() -> None:
    rng = np.random.default_rng(9)
    prior = Prior.around(14 * DAY)
    rate = ChangeRate(prior)
    for _ in range(500):
        rate.observe(float(rng.exponential(5 * DAY)), bool(rng.random() < 0.5))
    data = rate.encode()
    assert len(data) < 120
    again = ChangeRate.decode(data, prior)
    assert again.mean == pytest.approx(rate.mean, rel=2e-3)
    assert (again.visits, again.changes) == (rate.visits, rate.changes)
    assert again.encode() == data
    assert ChangeRate.decode(b"", prior).mean == ChangeRate(prior).mean


def test_many_at_once_is_one_by_one() -> None:
    rng = np.random.default_rng(4)
    prior = Prior(math.log(0.05), 1.5)
    many = ChangeRates(30, prior)
    single = [ChangeRate(prior) for _ in range(30)]
    for step in range(15):
        pages = np.flatnonzero(rng.random(30) < 0.7)
        gaps = rng.exponential(20.0, len(pages))
        changed = rng.random(len(pages)) < 0.4
        ages = np.where(changed & (step % 2 == 0), gaps * rng.random(len(pages)), np.nan)
        many.observe(pages, gaps, changed, ages)
        for page, gap, change, age in zip(pages, gaps, changed, ages, strict=True):
            single[page].observe(float(gap), bool(change), None if math.isnan(age) else float(age))
    means, logs, variances = many.estimates(np.arange(30))
    one = [rate.estimate() for rate in single]
    np.testing.assert_allclose(means, [e.rate for e in one], rtol=5e-3)
    np.testing.assert_allclose(logs, [e.log_mean for e in one], atol=5e-3)
    np.testing.assert_allclose(variances, [e.log_variance for e in one], rtol=3e-2)


def test_a_site_teaches_its_pages() -> None:
    rng = np.random.default_rng(8)
    world = Prior.around(14.0)
    site = SitePrior(world)
    true = np.exp(rng.normal(math.log(1 / 200), 0.6, 300))
    old: list[Estimate | None] = [None] * 300
    rates = [ChangeRate(world) for _ in true]
    for _ in range(20):
        for page, lam in enumerate(true):
            rates[page].prior = site.prior()
            rates[page].observe(30.0, bool(rng.random() < -math.expm1(-lam * 30)))
            new = rates[page].estimate()
            site.replace(old[page], new)
            old[page] = new
    learned = site.prior()
    assert learned.centre == pytest.approx(math.log(1 / 200), abs=0.25)
    assert 0.4 <= learned.spread < 1.1
    assert site.pages == 300
    for page in range(300):
        site.replace(old[page], None)
    assert site.prior().centre == pytest.approx(world.centre, abs=0.02)


def test_learned_priors_beat_the_world_prior_for_new_pages() -> None:
    rng = np.random.default_rng(6)
    world = Prior.around(14.0)
    true = np.exp(rng.normal(math.log(1 / 300), 0.7, 400))
    taught, alone = ChangeRates(400, world), ChangeRates(400, world)
    pages = np.arange(400)
    for _ in range(5):
        changed = rng.random(400) < -np.expm1(-true * 20.0)
        for rates in (taught, alone):
            rates.observe(pages, np.full(400, 20.0), changed)
        taught.learn_prior(pages, world)
    error = [np.abs(r.estimates(pages)[1] - np.log(true)).mean() for r in (taught, alone)]
    assert error[0] < 0.8 * error[1]


@pytest.mark.parametrize("centre", [14 * 24.0, 12.0, 0.5])
@pytest.mark.parametrize("visits", [4, 12, 60])
def test_a_page_that_changed_at_every_visit_is_not_overestimated(centre: float, visits: int) -> None:
    """Visits every 12 h that all saw a change: any rate above 1/12 h explains them. The estimate stays near that of Cho
    and Garcia-Molina, ln(2n + 1) per gap, however wide the prior is; without the bound it was up to 40 times that."""
    rate = ChangeRate(Prior.around(centre, 2.5))
    for _ in range(visits):
        rate.observe(12.0, True)
    bound = math.log(2 * visits + 1) / 12.0
    assert rate.mean < 1.5 * bound
    if centre <= 12.0:
        assert rate.mean > 1.0 / 12.0
    many = ChangeRates(1, Prior.around(centre, 2.5))
    for _ in range(visits):
        many.observe(np.array([0]), np.array([12.0]), np.array([True]))
    assert many.estimates(np.array([0])).rate[0] == pytest.approx(rate.mean, rel=0.02)
