"""What "fresh" means, in numbers: for each refresh policy its cost, the value of a read, and the read rate at a price.

A page has a weight w and changes λ times per time unit (a Poisson process). Reading it every τ gives M = λτ expected
changes per period. Each policy is the minimum of Σ cost under Σ f = G, so at the optimum every page that is read at
all has the same marginal gain per read, the *price* μ. Four functions per policy follow from that one fact:

==========  ==================================  =====================================  ============================
policy      cost of a page (times w)            value of a read after time t           what it is for
==========  ==================================  =====================================  ============================
harmonic    Ein(M) − 1 + (1 − e^−M)/M           (w/λ)(λt − 1 + e^−λt)                  never starves a page (default)
xyleme      M^α / (α + 1)                       w λ^α t^(α+1)                          the paper's (1)–(5), closed form
freshness   1 − (1 − e^−M)/M                    (w/λ)(1 − (1 + λt) e^−λt)              Cho and Garcia-Molina 2003
uniform     (none)                              t                                      the baseline
==========  ==================================  =====================================  ============================

Reading the pages of the largest value, or each page when its value reaches μ, gives exactly the optimal periods, so the
running scheduler needs no solver. The tests compare it with an exact one, `quadloom_lab.scheduling.optimal_refresh`.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy  # its parts load on first use: half a second that most commands need not wait

Policy = Literal["harmonic", "xyleme", "freshness", "uniform"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
Vector = npt.NDArray[np.float64]

EULER = 0.5772156649015329
_SMALL = 1e-2  # series are used below: the closed forms lose digits that the price needs


def rate_at_price(policy: Policy, weights: Vector, rates: Vector, price: float, alpha: float = 0.95) -> Vector:
    """Reads per time unit that are worth `price` each. Weights and rates must be positive."""
    if policy == "uniform":
        return np.full(len(weights), 1.0 / price)
    if policy == "xyleme":
        return np.asarray((weights * rates**alpha / price) ** (1.0 / (alpha + 1.0)))
    y = price * rates / weights
    if policy == "harmonic":
        return np.asarray(rates / _inverse_harmonic(y))
    worth = y < 1.0  # a page with w/λ ≤ μ is never worth a read: freshness starves it
    result = np.zeros(len(weights))
    result[worth] = rates[worth] / scipy.special.gammaincinv(2.0, y[worth])
    return result


def value(policy: Policy, weights: Vector, rates: Vector, elapsed: Vector, alpha: float = 0.95) -> Vector:
    """Gain of reading each page now, `elapsed` after its last read: the index by which the policy orders pages."""
    if policy == "uniform":
        return np.asarray(elapsed, dtype=np.float64)
    if policy == "xyleme":
        return np.asarray(weights * rates**alpha * elapsed ** (alpha + 1.0))
    changes = rates * elapsed
    if policy == "harmonic":
        return np.asarray(weights / rates * _harmonic_gain(changes))
    return np.asarray(weights / rates * scipy.special.gammainc(2.0, changes))  # P(2, M) = 1 − (1 + M)e^−M


def page_freshness(rates: Vector, reads: Vector) -> Vector:
    """Share of time a copy is up to date under regular reads, (1 − e^−M)/M; 0 if a page is never read."""
    m = _changes(rates, reads)
    with np.errstate(divide="ignore", invalid="ignore"):
        fresh = np.where(m > 0, -np.expm1(-m) / m, 1.0)
    return np.where(np.isinf(m), 0.0, fresh)


def freshness(weights: Vector, rates: Vector, reads: Vector) -> float:
    """Weighted freshness Σ w F / Σ w."""
    return float(weights @ page_freshness(rates, reads) / weights.sum())


def harmonic_cost(weights: Vector, rates: Vector, reads: Vector) -> float:
    """Σ w · E[H_missed] averaged over time (LambdaCrawl's penalty); infinite if a changing page is never read."""
    m = _changes(rates, reads)
    small = m < _SMALL
    large = np.where(small, 1.0, m)
    with np.errstate(invalid="ignore"):
        cost = EULER + np.log(large) + scipy.special.exp1(large) - 1.0 - np.expm1(-large) / large
    little = np.where(small, m, 0.0)
    series = little / 2.0 - little**2 / 12.0 + little**3 / 72.0
    return _weighted(weights, np.where(small, series, np.where(np.isinf(m), np.inf, cost)))


def xyleme_cost(weights: Vector, rates: Vector, reads: Vector, alpha: float = 0.95) -> float:
    """COST of the paper, Σ w (λ/f)^α / (α + 1)."""
    return _weighted(weights, _changes(rates, reads) ** alpha) / (alpha + 1.0)


def age(weights: Vector, rates: Vector, reads: Vector) -> float:
    """Weighted mean time since the copy became stale, Σ w τ(1/2 − 1/M + (1 − e^−M)/M²)."""
    m = _changes(rates, reads)
    if np.any(np.isinf(m) & (weights > 0)):
        return float("inf")
    small = m < _SMALL
    large = np.where(small, 1.0, m)
    part = np.where(small, m / 6.0 - m**2 / 24.0, 0.5 - 1.0 / large - np.expm1(-large) / large**2)
    return float(np.sum(weights * part * np.where(m > 0, m / np.where(rates > 0, rates, 1.0), 0.0)))


def objective(policy: Policy, weights: Vector, rates: Vector, reads: Vector, alpha: float = 0.95) -> float:
    """What `policy` minimises; for freshness the weighted staleness Σ w (1 − F)."""
    if policy == "harmonic":
        return harmonic_cost(weights, rates, reads)
    if policy == "xyleme":
        return xyleme_cost(weights, rates, reads, alpha)
    return float(np.sum(weights * (1.0 - page_freshness(rates, reads))))


def _weighted(weights: Vector, costs: Vector) -> float:
    """Σ w · cost; a page of weight 0 adds 0, even if its cost is infinite."""
    return float(np.sum(np.where(weights > 0, weights * np.where(weights > 0, costs, 0.0), 0.0)))


def _changes(rates: Vector, reads: Vector) -> Vector:
    """M = λ/f; 0 for a page that never changes, infinite for one that changes and is never read."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rates > 0, rates / reads, 0.0)


def _harmonic_gain(m: Vector) -> Vector:
    """M − 1 + e^−M without cancellation."""
    series = m * m * (0.5 - m * (1 / 6 - m * (1 / 24 - m / 120)))
    return np.where(m < _SMALL, series, m + np.expm1(-m))


def _inverse_harmonic(y: Vector) -> Vector:
    """Solve M − 1 + e^−M = y by Newton. The function is convex and the start is right of the root, so every step stays
    there and the error squares: from the two asymptotes, five steps reach the last digit."""
    root = np.sqrt(2.0 * y)
    with np.errstate(over="ignore"):  # the other asymptote is smaller long before that
        m = np.minimum(root + y / 3.0 + root**3 / 18.0, y + 1.0)
    for _ in range(5):
        slope = -np.expm1(-m)
        step = np.divide(_harmonic_gain(m) - y, slope, out=np.zeros_like(m), where=slope > 0)
        m = np.maximum(m - step, root)  # M ≥ √(2y) always, since M²/2 is an upper bound of the gain
    return m


def ideal_period(policy: Policy, weight: float, rate: float, price: float, alpha: float) -> float:
    """The period of one page at a price: the scalar form of 1 / `rate_at_price`, without the overhead of arrays."""
    if policy == "uniform":
        return price
    if weight <= 0.0 or rate <= 0.0 or math.isinf(price):
        return math.inf
    if policy == "xyleme":
        return float((price / (weight * rate**alpha)) ** (1.0 / (alpha + 1.0)))
    y = price * rate / weight
    if policy == "freshness":
        return float(scipy.special.gammaincinv(2.0, y)) / rate if y < 1.0 else math.inf
    if y < 1e-8:
        return (math.sqrt(2.0 * y) + y / 3.0) / rate
    m = min(math.sqrt(2.0 * y) + y, y + 1.0)
    for _ in range(6):
        step = (m + math.expm1(-m) - y) / -math.expm1(-m)
        m -= step
        if abs(step) < 1e-9 * m:
            break
    return m / rate
