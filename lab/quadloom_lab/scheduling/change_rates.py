"""The estimator of `quadloom.planning.policy.change_rate` for all pages of a simulated web at once.

A simulation reads thousands of pages per slot; one matrix product estimates all of them. A test compares the two page
by page.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quadloom.planning.policy.change_rate import (
    BINS,
    FIRST_GAP,
    GAP_STEP,
    IMAGINED,
    LOG_CHANGED,
    LOG_GAPS,
    LOG_RATES,
    LONGEST_GAP,
    MOMENTS,
    RATES,
    Prior,
    SitePrior,
    Vector,
)

_CHANGED_SINGLE = LOG_CHANGED.astype(np.float32)


class EstimateVectors(NamedTuple):
    """Posterior mean of λ, and mean and variance of ln λ, page by page; see `Estimate`."""

    rate: Vector
    log_mean: Vector
    log_variance: Vector


class ChangeRates:
    """Change rates of `count` pages, all with the same prior until `learn_prior`. 300 bytes per page."""

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
        """Add one visit of each of `pages` (distinct). `ages`: NaN if no trusted source gives one."""
        keep = self.forgetting
        self.visits[pages] += 1
        self._quiet[pages] *= keep
        self._exact[pages] *= keep
        self._bins[pages] *= keep
        known = np.full(len(pages), np.nan) if ages is None else ages
        gaps = np.minimum(gaps, LONGEST_GAP)
        dated = changed & (known >= 0.0) & (known < gaps)
        self._exact[pages] += dated
        self._quiet[pages] += np.where(dated, np.where(dated, known, 0.0), np.where(changed, 0.0, gaps))
        undated = changed & ~dated
        place = np.clip((np.log(gaps[undated]) - FIRST_GAP) / GAP_STEP, 0.0, BINS - 1.001)
        low = place.astype(np.int64)
        part = place - low
        self._bins[pages[undated], low] += 1.0 - part
        self._bins[pages[undated], low + 1] += part

    def estimates(self, pages: npt.NDArray[np.intp]) -> EstimateVectors:
        """The estimates of `pages`."""
        counts = self._bins[pages]
        used = np.flatnonzero(counts.any(axis=0))
        within = slice(used[0], used[-1] + 1) if len(used) else slice(0, 0)  # gaps cluster in a fifth of all bins
        log = counts[:, within] @ _CHANGED_SINGLE[within]
        total = counts.sum(axis=1)
        typical = np.exp((counts @ LOG_GAPS) / np.maximum(total, 1e-9))
        quiet = self._quiet[pages] + np.where(total > 0.0, IMAGINED * typical, 0.0)
        log = log + self._exact[pages, None] * LOG_RATES - quiet[:, None] * RATES
        log -= 0.5 * ((LOG_RATES - self.centre[pages, None]) / self.spread[pages, None]) ** 2
        log -= log.max(axis=1, keepdims=True)
        moments = np.exp(log) @ MOMENTS
        log_mean = moments[:, 2] / moments[:, 0]
        log_variance = np.maximum(moments[:, 3] / moments[:, 0] - log_mean**2, 0.0)
        return EstimateVectors(moments[:, 1] / moments[:, 0], log_mean, log_variance)

    def learn_prior(self, pages: npt.NDArray[np.intp], world: Prior) -> Prior:
        """Empirical Bayes: fit the prior of `pages` (one site) to their visits, and use it from now on."""
        site = SitePrior(world)
        _, log_mean, log_variance = self.estimates(pages)
        site.pages = float(len(pages))
        site.total = float(log_mean.sum())
        site.squares = float((log_variance + log_mean**2).sum())
        prior = site.prior()
        self.centre[pages], self.spread[pages] = prior.centre, prior.spread
        return prior
