"""How often a page changes, learned from visits at irregular gaps.

Changes are a Poisson process of unknown rate λ. A visit after a gap τ says one of three things:

* unchanged: likelihood e^−λτ;
* changed, nothing more known: 1 − e^−λτ (how often it changed in between stays unknown);
* changed, the last change being `age` old (a Last-Modified or push that deserves trust): λ e^(−λ·age).

The posterior lives on a grid in ln λ with a log-normal prior, so that estimates are finite from the first visit on (the
maximum-likelihood rate is infinite if all visits saw a change, and 0 if none did) and come with credible intervals.

What is kept of a page is not the grid but its sufficient statistics: quiet time Σ τ, the number of dated changes, and
the undated changes counted by ln τ in bins of a quarter e-fold (two neighbouring bins share a count, so the likelihood
is off by less than 0.002 per visit). That takes about 30 bytes, and a better prior, learned later from the page's
site, applies to old visits too. Forgetting multiplies all statistics by 0.98 per visit: a page that changes its habits
is followed within some fifty visits.

"Changed" means that the graph or the main text changed, never a byte in a banner; the index phase decides it.
Any time unit will do, as long as gaps, ages and rates agree; the scheduler uses seconds.
"""

from __future__ import annotations

import math
import struct

import msgspec
import numpy as np
import numpy.typing as npt

STEP = 0.25
LOG_RATES = np.arange(-25.0, 7.0 + STEP / 2, STEP)  # per second: from one change in 2,000 years to a thousand a second
RATES = np.exp(LOG_RATES)
LOG_GAPS = -LOG_RATES[::-1]
BINS = len(LOG_GAPS)
_CHANGED = np.log(-np.expm1(-np.exp(LOG_GAPS[:, None] + LOG_RATES[None, :])))  # ln(1 − e^−λτ), bin × grid
_TERMS = np.stack([LOG_RATES, RATES, LOG_RATES**2])
_MOMENTS = np.stack([np.ones(BINS), RATES, LOG_RATES, LOG_RATES**2], axis=1)
_LOG_MOMENTS = np.ascontiguousarray(_MOMENTS[:, [0, 2, 3]])
_NARROW = (0.75 * STEP) ** 2  # variance of ln λ below which sums over the grid lose the third digit
_FORGOTTEN = 1e-2  # a bin that weighs less than this is dropped
_HEAD = struct.Struct("<ffHHB")

Vector = npt.NDArray[np.float64]


class Prior(msgspec.Struct, frozen=True):
    """ln λ is normal with this centre and spread (in e-folds) before a page was ever visited twice."""

    centre: float
    spread: float

    @classmethod
    def around(cls, interval: float, spread: float = 2.0) -> Prior:
        """One change per `interval`, give or take a factor of e^spread."""
        return cls(-math.log(interval), spread)


class Estimate(msgspec.Struct, frozen=True):
    """Posterior mean of λ, and mean and variance of ln λ, which is what the prior of a site is learned from."""

    rate: float
    log_mean: float
    log_variance: float


class ChangeRate:
    """One page's rate of change.

    Without a `prior` the rate is assumed to lie around one change per mean gap, give or take e^2: enough to stay
    finite, independent of the unit of time. The planner always gives its site's prior.
    """

    __slots__ = ("_bins", "_exact", "_gaps", "_posterior", "_quiet", "changes", "forgetting", "prior", "visits")

    def __init__(self, prior: Prior | None = None, *, forgetting: float = 0.98) -> None:
        self.prior = prior
        self.forgetting = forgetting
        self.visits = 0
        self.changes = 0
        self._quiet = 0.0
        self._exact = 0.0
        self._bins: dict[int, float] = {}
        self._gaps = 0.0  # decayed sum of gaps, for the unit-free prior
        self._posterior: tuple[Vector, Vector] | None = None

    def observe(self, gap: float, changed: bool, age: float | None = None) -> None:
        """A visit `gap` after the one before. `age`: time since the last change, where a trusted source tells it.

        A first visit has no gap but may have an age: `observe(math.inf, True, age)`. An age beyond the gap contradicts
        the change that was seen and is not used.
        """
        dated = changed and age is not None and 0.0 <= age < gap
        if not gap > 0.0 or (math.isinf(gap) and not dated):
            return
        self._forget()
        self.visits += 1
        self.changes += changed
        if dated and age is not None:
            self._exact += 1.0
            self._quiet += age
        elif changed:
            low, part = _place(gap)
            self._bins[low] = self._bins.get(low, 0.0) + 1.0 - part
            if part:
                self._bins[low + 1] = self._bins.get(low + 1, 0.0) + part
        else:
            self._quiet += gap
        self._gaps += age if dated and age is not None and math.isinf(gap) else gap
        self._posterior = None

    @property
    def mean(self) -> float:
        """Posterior mean of λ."""
        return self.estimate().rate

    @property
    def median(self) -> float:
        low, _ = self.interval(0.0)
        return low

    def interval(self, p: float = 0.8) -> tuple[float, float]:
        """Bounds of λ with (1 − p)/2 of the posterior beyond each."""
        grid, weight = self._distribution()
        cumulative = np.cumsum((weight[1:] + weight[:-1]) / 2.0)
        cumulative = np.concatenate([[0.0], cumulative]) / cumulative[-1]
        low, high = np.exp(np.interp([(1.0 - p) / 2.0, (1.0 + p) / 2.0], cumulative, grid))
        return float(low), float(high)

    def estimate(self) -> Estimate:
        grid, weight = self._distribution()
        moments = weight @ _MOMENTS if grid is LOG_RATES else weight @ _moments(grid)
        log_mean = float(moments[2] / moments[0])
        return Estimate(
            float(moments[1] / moments[0]), log_mean, max(float(moments[3] / moments[0]) - log_mean**2, 0.0)
        )

    def encode(self) -> bytes:
        """About 30 bytes; `decode` gives the same estimate to three digits of each count."""
        bins = sorted(self._bins.items())
        flat = [part for index, count in bins for part in (index, count)]
        head = _HEAD.pack(self._quiet, self._exact, min(self.visits, 65535), min(self.changes, 65535), len(bins))
        return head + struct.pack("<" + "Be" * len(bins), *flat)

    @classmethod
    def decode(cls, data: bytes, prior: Prior, *, forgetting: float = 0.98) -> ChangeRate:
        """What `encode` made; empty bytes are a page never visited twice."""
        rate = cls(prior, forgetting=forgetting)
        if data:
            rate._quiet, rate._exact, rate.visits, rate.changes, count = _HEAD.unpack_from(data)
            flat = struct.unpack_from("<" + "Be" * count, data, _HEAD.size)
            rate._bins = dict(zip(flat[::2], flat[1::2], strict=True))
        return rate

    def _forget(self) -> None:
        keep = self.forgetting
        self._quiet *= keep
        self._exact *= keep
        self._gaps *= keep
        self._bins = {index: count * keep for index, count in self._bins.items() if count > _FORGOTTEN}

    def _effective_prior(self) -> Prior:
        if self.prior is not None:
            return self.prior
        if not self.visits:
            return Prior(0.0, 2.0)
        weight = (1.0 - self.forgetting**self.visits) / (1.0 - self.forgetting) if self.forgetting < 1 else self.visits
        return Prior.around(max(self._gaps / weight, 1e-9))

    def _distribution(self) -> tuple[Vector, Vector]:
        """Grid of ln λ and unnormalised posterior weights on it."""
        if self._posterior is None:
            prior = self._effective_prior()
            precision = 1.0 / prior.spread**2
            terms = np.array((self._exact + precision * prior.centre, -self._quiet, -0.5 * precision))
            log = terms @ _TERMS
            if self._bins:
                log += np.array(list(self._bins.values())) @ _CHANGED.take(list(self._bins), axis=0)
            weight = np.exp(log - log.max())
            total, mean, square = (weight @ _LOG_MOMENTS).tolist()
            if square / total - (mean / total) ** 2 < _NARROW:
                held = np.flatnonzero(weight > 1e-6)
                self._posterior = self._refined(prior, int(held[0]), int(held[-1]))
            else:
                self._posterior = (LOG_RATES, weight)
        return self._posterior

    def _refined(self, prior: Prior, first: int, last: int) -> tuple[Vector, Vector]:
        grid = np.linspace(LOG_RATES[max(first - 1, 0)], LOG_RATES[min(last + 1, BINS - 1)], 65)
        log = self._exact * grid - self._quiet * np.exp(grid) - 0.5 * ((grid - prior.centre) / prior.spread) ** 2
        for index, count in self._bins.items():
            log += count * np.log(-np.expm1(-np.exp(grid + LOG_GAPS[index])))
        return grid, np.exp(log - log.max())


class ChangeRates:
    """The same estimator for many pages at once: half a kilobyte a page, one matrix product for all estimates."""

    def __init__(self, count: int, prior: Prior, *, forgetting: float = 0.98) -> None:
        self.forgetting = forgetting
        self.centre = np.full(count, prior.centre)
        self.spread = np.full(count, prior.spread)
        self.visits = np.zeros(count, dtype=np.int64)
        self._quiet = np.zeros(count)
        self._exact = np.zeros(count)
        self._bins = np.zeros((count, BINS), dtype=np.float32)

    def observe(
        self,
        pages: npt.NDArray[np.intp],
        gaps: Vector,
        changed: npt.NDArray[np.bool_],
        ages: Vector | None = None,
    ) -> None:
        """One visit of each of `pages` (distinct). `ages`: NaN where nothing trusted is known."""
        keep = self.forgetting
        self.visits[pages] += 1
        self._quiet[pages] *= keep
        self._exact[pages] *= keep
        self._bins[pages] *= keep
        known = np.full(len(pages), np.nan) if ages is None else ages
        dated = changed & (known >= 0.0) & (known < gaps)
        self._exact[pages] += dated
        self._quiet[pages] += np.where(dated, np.where(dated, known, 0.0), np.where(changed, 0.0, gaps))
        undated = changed & ~dated
        place = np.clip((np.log(gaps[undated]) - LOG_GAPS[0]) / STEP, 0.0, BINS - 1.0)
        low = np.minimum(place.astype(np.int64), BINS - 2)
        part = place - low
        self._bins[pages[undated], low] += 1.0 - part
        self._bins[pages[undated], low + 1] += part

    def estimates(self, pages: npt.NDArray[np.intp]) -> tuple[Vector, Vector, Vector]:
        """Posterior mean of λ, mean of ln λ, variance of ln λ, for each of `pages`."""
        log = self._bins[pages] @ _CHANGED.astype(np.float32)
        log = log + self._exact[pages, None] * LOG_RATES - self._quiet[pages, None] * RATES
        log -= 0.5 * ((LOG_RATES - self.centre[pages, None]) / self.spread[pages, None]) ** 2
        log -= log.max(axis=1, keepdims=True)
        moments = np.exp(log) @ _MOMENTS
        log_mean = moments[:, 2] / moments[:, 0]
        return moments[:, 1] / moments[:, 0], log_mean, np.maximum(moments[:, 3] / moments[:, 0] - log_mean**2, 0.0)

    def learn_prior(self, pages: npt.NDArray[np.intp], world: Prior) -> Prior:
        """Empirical Bayes: fit the prior of `pages` (one site) to what their visits say, and use it from now on."""
        site = SitePrior(world)
        _, log_mean, log_variance = self.estimates(pages)
        site.pages = float(len(pages))
        site.total = float(log_mean.sum())
        site.squares = float((log_variance + log_mean**2).sum())
        prior = site.prior()
        self.centre[pages], self.spread[pages] = prior.centre, prior.spread
        return prior


class SitePrior:
    """The prior that a site's pages give each other, kept as three sums so that one settled page costs O(1).

    Expectation–maximisation: each page contributes its posterior of ln λ, and four imagined pages of the whole web
    keep a young site sensible. Like S in the paper, a contribution is replaced, never added twice.
    """

    __slots__ = ("pages", "squares", "total", "world")
    imagined = 4.0
    narrowest, widest = 0.4, 2.5

    def __init__(self, world: Prior, pages: float = 0.0, total: float = 0.0, squares: float = 0.0) -> None:
        self.world = world
        self.pages, self.total, self.squares = pages, total, squares

    def replace(self, old: Estimate | None, new: Estimate | None) -> None:
        for estimate, sign in ((old, -1.0), (new, 1.0)):
            if estimate is not None:
                self.pages += sign
                self.total += sign * estimate.log_mean
                self.squares += sign * (estimate.log_variance + estimate.log_mean**2)

    def prior(self) -> Prior:
        k, n = self.imagined, max(self.pages, 0.0)
        centre = (k * self.world.centre + self.total) / (k + n)
        own = self.squares - 2.0 * centre * self.total + n * centre**2
        imagined = k * (self.world.spread**2 + (self.world.centre - centre) ** 2)
        spread = math.sqrt(max(own + imagined, 0.0) / (k + n))
        return Prior(round(centre, 2), round(min(max(spread, self.narrowest), self.widest), 2))


def _place(gap: float) -> tuple[int, float]:
    """Lower bin of a gap and the share of the count that goes to the next one."""
    place = (math.log(gap) - float(LOG_GAPS[0])) / STEP
    if place <= 0.0:
        return 0, 0.0
    if place >= BINS - 1:
        return BINS - 1, 0.0
    return int(place), place - int(place)


def _moments(grid: Vector) -> Vector:
    return np.stack([np.ones_like(grid), np.exp(grid), grid, grid**2], axis=1)
