"""Webs whose every change is known, on which estimators and policies are compared.

A `SimulatedWeb` is a list of change times per page over a number of days, made by one of the processes below or taken
from a real history. `rates` are the long-run rates that an all-knowing scheduler would use.

========== ==================================================================================================
poisson    memoryless, as the theory assumes
bursty     gamma gaps of shape 0.3: changes come in clusters
regular    gamma gaps of shape 4: more even than Poisson
periodic   a fixed period per page, at a random phase
switching  Poisson, but halfway through every tenth page becomes ten times as busy and another tenth ten times as quiet
hostwide   Poisson, and now and then a whole host changes at once (a new template)
weekly     Poisson on working days, nothing at weekends
========== ==================================================================================================
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from quadloom.errors import UsageError

Process = Literal["poisson", "bursty", "regular", "periodic", "switching", "hostwide", "weekly"]
PROCESSES: tuple[Process, ...] = get_args(Process)
Vector = npt.NDArray[np.float64]
Pages = npt.NDArray[np.intp]

DAY = 86_400.0
_PAGES_PER_HOST = 100


class ChangeTimes:
    """Points in time of many pages. Page and time form one sorted key, so that "the first after t" is a binary search
    for all pages at once."""

    def __init__(self, pages: npt.NDArray[np.int64], times: Vector, days: float) -> None:
        self._span = 2.0 * days + 2.0
        self._keys = np.sort(pages * self._span + times)

    def __len__(self) -> int:
        return len(self._keys)

    def pages(self) -> npt.NDArray[np.int64]:
        return np.floor(self._keys / self._span).astype(np.int64)

    def times(self) -> Vector:
        return self._keys - self.pages() * self._span

    def next(self, pages: Pages, after: Vector) -> Vector:
        """The first one later than `after`; infinite if there is none."""
        place = np.searchsorted(self._keys, pages * self._span + after, side="right")
        return self._time_of(place, pages, np.inf)

    def last(self, pages: Pages, until: Vector) -> Vector:
        """The last one up to `until`; minus infinite if there is none."""
        place = np.searchsorted(self._keys, pages * self._span + until, side="right") - 1
        return self._time_of(place, pages, -np.inf)

    def _time_of(self, place: npt.NDArray[np.intp], pages: Pages, missing: float) -> Vector:
        if not len(self._keys):
            return np.full(len(pages), missing)
        key = self._keys[np.clip(place, 0, len(self._keys) - 1)]
        own = (place >= 0) & (place < len(self._keys)) & (np.floor(key / self._span) == pages)
        return np.where(own, key - pages * self._span, missing)


class SimulatedWeb:
    """Pages with weights, hosts and change times; all times in days from the start.

    `born`: when a page came into existence; before that it cannot be read and does not count.
    """

    def __init__(
        self,
        pages: npt.NDArray[np.int64],
        times: Vector,
        weights: Vector,
        rates: Vector,
        days: float,
        born: Vector | None = None,
    ) -> None:
        self.days = days
        self.weights = weights
        self.rates = rates
        self.hosts = np.arange(len(weights)) // _PAGES_PER_HOST
        self.born = np.zeros(len(weights)) if born is None else born
        self.moments = ChangeTimes(pages, times, days)

    @property
    def pages(self) -> int:
        return len(self.weights)

    def next_change(self, pages: Pages, after: Vector) -> Vector:
        """Time of the first change later than `after`; infinite if there is none."""
        return self.moments.next(pages, after)

    def last_change(self, pages: Pages, until: Vector) -> Vector:
        """Time of the last change up to `until`; minus infinite if there is none."""
        return self.moments.last(pages, until)

    def changes(self) -> int:
        return len(self.moments)


class WebShape(msgspec.Struct, frozen=True, kw_only=True):
    """Rates are log-normal around one change per `interval` days, weights Pareto: both as heavy-tailed as the web's."""

    pages: int = 2000
    days: float = 400.0
    interval: float = 20.0
    spread: float = 1.8
    tail: float = 1.2


def simulated_web(process: Process, shape: WebShape, rng: np.random.Generator) -> SimulatedWeb:
    """A web of `shape` whose pages change by `process`."""
    if process not in PROCESSES:
        raise UsageError(f"unknown change process {process!r}", hint="one of " + ", ".join(PROCESSES))
    rates = np.exp(rng.normal(-np.log(shape.interval), shape.spread, shape.pages))
    weights = rng.pareto(shape.tail, shape.pages) + 1.0
    pages, times = _PROCESSES[process](rates, shape.days, rng)
    return SimulatedWeb(pages, times, weights / weights.sum(), rates, shape.days)


def replayed_web(history: Path, rng: np.random.Generator, *, tail: float = 1.2) -> SimulatedWeb:
    """A real history from a CSV file (gzipped or not): page, changed_at in unix seconds. `born` is the first change."""
    opener: Callable[..., object] = gzip.open if history.suffix == ".gz" else open
    with opener(history, "rt", encoding="utf-8", newline="") as file:  # type: ignore[attr-defined]  # both are text files
        rows = list(csv.DictReader(file))
    if not rows or not {"page", "changed_at"} <= rows[0].keys():
        raise UsageError(f"{history} is no change history", hint="a CSV file with the columns page and changed_at")
    _, pages = np.unique([row["page"] for row in rows], return_inverse=True)
    at = np.array([float(row["changed_at"]) for row in rows])
    times = (at - at.min()) / DAY
    days = float(times.max()) + 1e-6
    count = int(pages.max()) + 1
    born = np.full(count, np.inf)
    np.minimum.at(born, pages, times)
    later = times > born[pages]
    changes = np.bincount(pages[later], minlength=count)
    # What an oracle would call the long-run rate; half a change keeps pages that never changed again above zero.
    rates = (changes + 0.5) / np.maximum(days - born, 30.0)
    weights = rng.pareto(tail, count) + 1.0
    return SimulatedWeb(pages[later].astype(np.int64), times[later], weights / weights.sum(), rates, days, born)


Events = tuple[npt.NDArray[np.int64], Vector]


def _poisson(rates: Vector, days: float, rng: np.random.Generator) -> Events:
    counts = rng.poisson(rates * days)
    pages = np.repeat(np.arange(len(rates)), counts)
    return pages, rng.uniform(0.0, days, len(pages))


def _renewal(shape: float) -> Callable[[Vector, float, np.random.Generator], Events]:
    """Gamma gaps of mean 1/λ, starting long before the first day, so that the start is not special."""

    def events(rates: Vector, days: float, rng: np.random.Generator) -> Events:
        pages, times = [], []
        for page, rate in enumerate(rates):
            lead = 5.0 / (rate * min(shape, 1.0))
            expected = rate * (days + lead)
            gaps = rng.gamma(shape, 1.0 / (rate * shape), int(expected + 6.0 * np.sqrt(expected / shape) + 20))
            moments = np.cumsum(gaps) - lead
            moments = moments[(moments >= 0.0) & (moments < days)]
            pages.append(np.full(len(moments), page))
            times.append(moments)
        return np.concatenate(pages), np.concatenate(times)

    return events


def _periodic(rates: Vector, days: float, rng: np.random.Generator) -> Events:
    phase = rng.random(len(rates))
    counts = np.floor(rates * days + phase).astype(np.int64)
    pages = np.repeat(np.arange(len(rates)), counts)
    order = np.arange(len(pages)) - np.repeat(np.cumsum(counts) - counts, counts)
    return pages, (order + 1.0 - phase[pages]) / rates[pages]


def _switching(rates: Vector, days: float, rng: np.random.Generator) -> Events:
    kind = rng.integers(0, 10, len(rates))
    second = np.where(kind == 0, rates * 10.0, np.where(kind == 1, rates / 10.0, rates))
    first_pages, first_times = _poisson(rates, days / 2.0, rng)
    second_pages, second_times = _poisson(second, days / 2.0, rng)
    rates[:] = (rates + second) / 2.0  # the long-run rate, which is all that an oracle of rates knows
    return np.concatenate([first_pages, second_pages]), np.concatenate([first_times, second_times + days / 2.0])


def _hostwide(rates: Vector, days: float, rng: np.random.Generator) -> Events:
    pages, times = _poisson(rates, days, rng)
    hosts = np.arange(len(rates)) // _PAGES_PER_HOST
    mass_hosts, mass_times = _poisson(np.full(hosts.max() + 1, 1.0 / 60.0), days, rng)
    hit = [np.flatnonzero(hosts == host) for host in mass_hosts]
    rates += 1.0 / 60.0
    return (
        np.concatenate([pages, *hit]),
        np.concatenate([times, *(np.full(len(p), t) for p, t in zip(hit, mass_times, strict=True))]),
    )


def _weekly(rates: Vector, days: float, rng: np.random.Generator) -> Events:
    pages, times = _poisson(rates * 7.0 / 5.0, days, rng)
    working = np.floor(times) % 7.0 < 5.0
    return pages[working], times[working]


_PROCESSES: dict[Process, Callable[[Vector, float, np.random.Generator], Events]] = {
    "poisson": _poisson,
    "bursty": _renewal(0.3),
    "regular": _renewal(4.0),
    "periodic": _periodic,
    "switching": _switching,
    "hostwide": _hostwide,
    "weekly": _weekly,
}
