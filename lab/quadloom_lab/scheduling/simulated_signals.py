"""What a simulated web says about its own changes, truly or not: the dates and notices a scheduler may believe.

============ =====================================================================================================
dates        Last-Modified of honest servers: the time of the last change
lying-dates  the same, but every second host updates all dates at midnight, changed or not
lastmod      a sitemap that misses 3 of 10 changes, and of whose announcements 3 of 10 are false
push         notices at the moment of a change, 9 of 10 of them; a page can be read because of one
============ =====================================================================================================

Each can be believed as it is, or only if its host has earned trust (`Trust`, as in the planner). Push always counts
by the measured trust: how many changes it announces, and how many announcements are changes.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from quadloom.planning.policy.trust import Trust
from quadloom_lab.scheduling.simulated_web import ChangeTimes, Pages, SimulatedWeb, Vector

Source = Literal["dates", "lying-dates", "lastmod", "push"]
Mask = npt.NDArray[np.bool_]

_LASTMOD_RECALL, _LASTMOD_PRECISION = 0.7, 0.7
_PUSH_RECALL = 0.9


class Signals:
    """One date source of a whole web, and the trust in it, host by host."""

    def __init__(self, source: Source, web: SimulatedWeb, *, check: bool, rng: np.random.Generator) -> None:
        self._web = web
        self._source = source
        self._check = check
        self._stamping = (web.hosts % 2 == 0) if source == "lying-dates" else np.zeros(web.pages, dtype=bool)
        self._announced = _announcements(source, web, rng)
        hosts = int(web.hosts.max()) + 1
        self._trust = [Trust() for _ in range(hosts)]
        self._believed = np.full(hosts, not check)
        self.recall = np.zeros(hosts)  # trust in a host's notices; 0 until they are believed
        self.precision = np.zeros(hosts)

    def ages(self, pages: Pages, last: Vector, now: float, changed: Mask) -> Vector:
        """Age of the last change announced since `last`; NaN = none, or not believed.

        Every visit is evidence for or against its host, as in the planner.
        """
        date = self._announced.last(pages, np.full(len(pages), now))
        date = np.where(self._stamping[pages], np.floor(now), date)
        announced = date > last
        believed = self._believed[self._web.hosts[pages]]
        if self._check:
            self._judge(pages, changed, announced)
        quiet = now - date
        if self._source == "push":
            # A read that a notice caused comes right after a change, so the age of that change says nothing about the
            # rate (it would be overestimated twofold). The time to the first notice does, and enters the likelihood as
            # an age would: λe^(−λ·time).
            quiet = self._announced.next(pages, last) - last
        return np.where(announced & believed, quiet, np.nan)

    def noticed(self, pages: Pages, last: Vector, now: float) -> Mask:
        """Which pages had a notice since they were last read."""
        return np.asarray(self._announced.next(pages, last) <= now)

    def _judge(self, pages: Pages, changed: Mask, announced: Mask) -> None:
        hosts = self._web.hosts[pages]
        told = changed | announced
        for host, was_changed, was_announced in zip(hosts[told], changed[told], announced[told], strict=True):
            self._trust[host].observe(changed=bool(was_changed), announced=bool(was_announced))
        for host in np.unique(hosts[told]):
            trust = self._trust[host]
            self._believed[host] = trust.trusted
            if trust.trusted:
                self.recall[host], self.precision[host] = trust.recall, trust.precision
            else:
                self.recall[host] = self.precision[host] = 0.0


def _announcements(source: Source, web: SimulatedWeb, rng: np.random.Generator) -> ChangeTimes:
    pages, times = web.moments.pages(), web.moments.times()
    if source == "push":
        kept = rng.random(len(times)) < _PUSH_RECALL
        return ChangeTimes(pages[kept], times[kept], web.days)
    if source != "lastmod":
        return web.moments
    kept = rng.random(len(times)) < _LASTMOD_RECALL
    false = _LASTMOD_RECALL * (1.0 - _LASTMOD_PRECISION) / _LASTMOD_PRECISION * web.rates * web.days
    wrong = np.repeat(np.arange(web.pages), rng.poisson(false))
    return ChangeTimes(
        np.concatenate([pages[kept], wrong]),
        np.concatenate([times[kept], rng.uniform(0.0, web.days, len(wrong))]),
        web.days,
    )
