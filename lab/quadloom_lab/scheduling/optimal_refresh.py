"""How often to read each page again: the exact optimum under a bandwidth, and the equivalent online policy.

`optimal_rates` solves min Σ cost(f) under Σ f = G, with bounds on every f and, in `polite_rates`, on the sum of every
host. The Lagrange condition reduces that to a search for one number, the price μ of a read: rates fall as μ grows, so
the root of Σ f(μ) = G is bracketed and found by Brent's method in log μ (about a dozen evaluations, each vectorised).
Freshness has jumps there: when μ passes w/λ, the rate of a page goes from zero to one read in some forty changes. Any
rate in between is as good as any other use of the bandwidth, so the last pages get what the two sides of the root
leave. Bounds cost nothing extra: clipping f(μ) *is* the Karush–Kuhn–Tucker solution, the same that water-filling by
hand (cap, recompute G and S over the rest, repeat) finds. A host whose pages want more than politeness allows gets a
price of its own (Kolobov et al., SIGIR 2019).

`most_valuable` is the index policy: the k pages whose read is worth most now. With k constant per slot the bandwidth is
constant too, and in equilibrium each page is read exactly when its value reaches μ.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import numpy.typing as npt
import scipy  # its parts load on first use: half a second that most commands need not wait

from quadloom.errors import InputError
from quadloom.planning.policy.objectives import POLICIES, Policy, Vector, rate_at_price, value

Bound = float | npt.ArrayLike | None


class RefreshPlan(msgspec.Struct, frozen=True):
    """`reads`: visits per time unit, page by page. `price`: gain of the last read bought; 0 = bandwidth left over."""

    reads: Vector
    price: float


class PolitePlan(msgspec.Struct, frozen=True):
    """As `RefreshPlan`, with the price of every host, which is above `price` if politeness limits the host."""

    reads: Vector
    price: float
    host_prices: Vector


def optimal_rates(
    weights: npt.ArrayLike,
    rates: npt.ArrayLike,
    bandwidth: float,
    *,
    policy: Policy = "harmonic",
    alpha: float = 0.95,
    max_rate: Bound = None,
    min_rate: Bound = None,
) -> Vector:
    """Reads per time unit for each page, in the time unit of `rates` and `bandwidth`.

    `weights`: importance, any scale. `rates`: changes per time unit. The result sums to `bandwidth`, unless `max_rate`
    (1 / shortest interval) leaves some of it unused. `min_rate` (1 / longest interval) is granted first, also to pages
    of weight or rate zero, which get no more than that. If `min_rate` needs more than `bandwidth`, it is scaled down
    evenly.
    """
    return solve(weights, rates, bandwidth, policy=policy, alpha=alpha, max_rate=max_rate, min_rate=min_rate).reads


def solve(
    weights: npt.ArrayLike,
    rates: npt.ArrayLike,
    bandwidth: float,
    *,
    policy: Policy = "harmonic",
    alpha: float = 0.95,
    max_rate: Bound = None,
    min_rate: Bound = None,
) -> RefreshPlan:
    """`optimal_rates` together with the price of a read."""
    w, lam = _checked(weights, rates, bandwidth, policy, alpha)
    ceiling = _bound(max_rate, np.inf, len(w))
    floor = np.minimum(_bound(min_rate, 0.0, len(w)), ceiling)
    if floor.sum() >= bandwidth:
        total = floor.sum()
        return RefreshPlan(floor * (bandwidth / total) if total > 0 else floor, float("inf"))
    active = (lam > 0) & (w > 0) if policy != "uniform" else np.ones(len(w), dtype=bool)
    if not active.any():
        return RefreshPlan(floor.copy(), 0.0)
    reads = floor.copy()
    spare = bandwidth - floor[~active].sum()
    reads[active], price = _fill(policy, w[active], lam[active], spare, alpha, floor[active], ceiling[active])
    return RefreshPlan(reads, price)


def polite_rates(
    weights: npt.ArrayLike,
    rates: npt.ArrayLike,
    bandwidth: float,
    hosts: npt.ArrayLike,
    host_caps: npt.ArrayLike,
    *,
    policy: Policy = "harmonic",
    alpha: float = 0.95,
    max_rate: Bound = None,
    min_rate: Bound = None,
) -> PolitePlan:
    """The optimum if the pages of host h together get at most `host_caps[h]` reads per time unit.

    `hosts[i]` is the number of the host of page i. Once a cap limits a host, it stays limited: the bandwidth that it
    cannot use lowers the price for all others and never raises it, so each round only adds hosts and the loop ends.
    """
    w, lam = _checked(weights, rates, bandwidth, policy, alpha)
    host = np.asarray(hosts, dtype=np.int64)
    caps = np.asarray(host_caps, dtype=np.float64)
    if host.shape != w.shape or (len(host) and not 0 <= host.min() <= host.max() < len(caps)):
        raise InputError(f"hosts must name one of {len(caps)} caps for each of {len(w)} pages")
    if not (caps >= 0.0).all():
        raise InputError("caps of hosts must be numbers, not negative")
    ceiling, floor = _bound(max_rate, np.inf, len(w)), _bound(min_rate, 0.0, len(w))

    def plan(pages: npt.NDArray[np.bool_], share: float) -> RefreshPlan:
        limits = {"max_rate": ceiling[pages], "min_rate": floor[pages]}
        return solve(w[pages], lam[pages], share, policy=policy, alpha=alpha, **limits)

    reads = np.zeros(len(w))
    prices = np.zeros(len(caps))
    bound = np.zeros(len(caps), dtype=bool)
    price, spare = 0.0, bandwidth
    while True:
        free = ~bound[host]
        if free.any():
            part = plan(free, max(spare, 0.0))
            reads[free], price = part.reads, part.price
            prices[~bound] = price
        demand = np.bincount(host, weights=reads, minlength=len(caps))
        over = ~bound & (demand > caps * (1.0 + 1e-9))
        if not over.any():
            return PolitePlan(reads, price, prices)
        for h in np.flatnonzero(over):
            of_host = host == h
            own = plan(of_host, caps[h])
            reads[of_host], prices[h] = own.reads, own.price
            bound[h] = True
        spare = bandwidth - float(caps[bound].sum())


def most_valuable(
    count: int,
    weights: Vector,
    rates: Vector,
    elapsed: Vector,
    *,
    policy: Policy = "harmonic",
    alpha: float = 0.95,
    min_interval: float = 0.0,
    max_interval: float = float("inf"),
    requested: npt.NDArray[np.bool_] | None = None,
    noticed: Vector | None = None,
) -> npt.NDArray[np.intp]:
    """Indices of up to `count` pages to read now, best first.

    `noticed`: probability that a page has changed, by a notice (0 = no notice). Reading it then gains w per time unit
    until its next change, w/λ in all: the most that a read of a stale copy can gain (Kolobov et al., NeurIPS 2019).

    Order: explicit requests, pages unread for `max_interval`, then by value. A page read less than `min_interval` ago
    is not read again unless requested (the paper's refresh cycle does not limit explicit requests).
    """
    asked = np.zeros(len(weights), dtype=bool) if requested is None else requested
    late = (elapsed >= max_interval) & ~asked
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = value(policy, weights, rates, elapsed, alpha)
        if noticed is not None and policy != "uniform":
            worth = np.fmax(worth, noticed * weights / rates)
    idle = (elapsed < min_interval) | asked | late
    worthless = (rates <= 0) | (weights <= 0) if policy != "uniform" else np.zeros(len(weights), dtype=bool)
    worth = np.where(idle, -np.inf, np.where(worthless, 0.0, worth))
    chosen = [_largest(np.where(asked, elapsed, -np.inf), count)]
    chosen.append(_largest(np.where(late, elapsed, -np.inf), count - len(chosen[0])))
    chosen.append(_largest(worth, count - len(chosen[0]) - len(chosen[1])))
    return np.concatenate(chosen)


def _largest(scores: Vector, count: int) -> npt.NDArray[np.intp]:
    """Indices of the `count` largest scores above minus infinity, largest first."""
    count = min(count, int(np.count_nonzero(scores > -np.inf)))
    if count <= 0:
        return np.empty(0, dtype=np.intp)
    best = np.argpartition(-scores, count - 1)[:count]
    return best[np.argsort(-scores[best], kind="stable")]


def _fill(
    policy: Policy, w: Vector, lam: Vector, bandwidth: float, alpha: float, floor: Vector, ceiling: Vector
) -> tuple[Vector, float]:
    if ceiling.sum() <= bandwidth:
        return ceiling.copy(), 0.0
    if policy == "xyleme" and not floor.any() and np.isinf(ceiling).all():
        share = (w * lam**alpha) ** (1.0 / (alpha + 1.0))
        total = share.sum()
        return bandwidth / total * share, float((total / bandwidth) ** (alpha + 1.0))

    def reads_at(log_price: float) -> Vector:
        return np.clip(rate_at_price(policy, w, lam, float(np.exp(log_price)), alpha), floor, ceiling)

    def excess(log_price: float) -> float:
        return float(reads_at(log_price).sum()) - bandwidth

    low, high = _bracket(excess, _first_guess(policy, w, lam, bandwidth, alpha))
    more, fewer = reads_at(low), reads_at(high)
    spare, gap = bandwidth - fewer.sum(), more.sum() - fewer.sum()
    # The two differ by a rounding error or by the jumps of some pages; in both cases the sum becomes exact.
    reads = fewer + min(max(spare / gap, 0.0), 1.0) * (more - fewer) if gap > 0.0 else fewer
    return reads, float(np.exp(low))


def _first_guess(policy: Policy, w: Vector, lam: Vector, bandwidth: float, alpha: float) -> float:
    """log μ in the limit of small M, in which harmonic and freshness both become f = √(wλ / 2μ)."""
    if policy == "uniform":
        return float(np.log(len(w) / bandwidth))
    if policy == "xyleme":
        return float((alpha + 1.0) * np.log(np.sum((w * lam**alpha) ** (1.0 / (alpha + 1.0))) / bandwidth))
    return float(2.0 * np.log(np.sum(np.sqrt(w * lam / 2.0)) / bandwidth))


def _bracket(excess: Callable[[float], float], guess: float) -> tuple[float, float]:
    """Two prices (in log μ) a rounding error apart; at the first, reads exceed the bandwidth, at the second not."""
    low, high = _step_out(excess, guess, -1.0), _step_out(excess, guess, 1.0)
    if low < high:
        low = high = float(scipy.optimize.brentq(excess, low, high, xtol=1e-13, rtol=1e-14, maxiter=200))
    least = 1e-14 * max(1.0, abs(low))
    return _step_out(excess, low, -least), _step_out(excess, high, least)


def _step_out(excess: Callable[[float], float], start: float, step: float) -> float:
    """Go from `start` in doubling steps to the first price beyond the root of `excess`."""
    price = start
    while excess(price) * step > 0.0 and abs(step) < 2000.0:
        price, step = price + step, step * 2.0
    return price


def _checked(
    weights: npt.ArrayLike, rates: npt.ArrayLike, bandwidth: float, policy: Policy, alpha: float
) -> tuple[Vector, Vector]:
    w, lam = np.asarray(weights, dtype=np.float64), np.asarray(rates, dtype=np.float64)
    if w.ndim != 1 or w.shape != lam.shape:
        raise InputError(f"weights {w.shape} and rates {lam.shape} must be vectors of one length")
    if not (np.isfinite(w).all() and np.isfinite(lam).all() and (w >= 0).all() and (lam >= 0).all()):
        raise InputError("weights and rates must be finite and not negative")
    if not (np.isfinite(bandwidth) and bandwidth >= 0.0):
        raise InputError(f"bandwidth must be finite and not negative, not {bandwidth}")
    if policy not in POLICIES:
        raise InputError(f"unknown policy {policy!r}", hint="one of " + ", ".join(POLICIES))
    if not 0.0 < alpha < np.inf:
        raise InputError(f"alpha must be positive, not {alpha}", hint="the paper uses 0.95")
    return w, lam


def _bound(bound: Bound, default: float, count: int) -> Vector:
    if bound is None:
        return np.full(count, default)
    given = np.asarray(bound, dtype=np.float64)
    if given.shape not in ((), (1,), (count,)):
        raise InputError(f"a bound of {given.shape} does not fit {count} pages", hint="one number, or one per page")
    if not (given >= 0.0).all():
        raise InputError("bounds of rates must be numbers, not negative")
    return np.array(np.broadcast_to(given, (count,)))
