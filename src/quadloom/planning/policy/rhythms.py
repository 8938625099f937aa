"""What owners say about the rhythm of their pages, and how far it can be believed, site by site.

Sitemaps have a `changefreq` for every page, and many of them have the same for all. So what is stated counts as far as
visits confirm it. The prior of a page's ln λ is a line over the stated one, x: centre + honesty · (x − mean of x). The
site's honesty is the slope of that line, fitted to what visits have shown about pages with a statement. It is 1 if
pages that are stated to change ten times as often do so (also if "daily" means weekly throughout: only differences
count), and 0 if the statements say nothing, or are all the same; then the prior is the site's own.

As with the prior of a site, this is expectation–maximisation with sums in which the term of a settled page is replaced.
Estimates of pages with few visits lean on the prior, so the slope starts at 0 and approaches the truth visit by visit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from quadloom.planning.policy.change_rate import Estimate, Prior, SitePrior

_IMAGINED = 4.0  # pages with a variance of 1 in x and no slope: one page or two prove nothing
_LEAST_HONESTY = 0.1

Sums = tuple[float, float, float, float, float, float]


class StatedEstimate(NamedTuple):
    """The learned rate of a page, and the stated seconds between two changes; 0 = nothing is stated."""

    estimate: Estimate
    rhythm: float


class _Line(NamedTuple):
    """Prior of ln λ at x."""

    slope: float
    x: float
    y: float
    spread: float


class StatedRhythms:
    """Sums over all pages with a stated rhythm, by site: n, Σx, Σy, Σx², Σxy, Σ(y² + variance)."""

    def __init__(self, sums: Mapping[str, Sums] | None = None) -> None:
        self._sites: dict[str, Sums] = dict(sums or {})
        self._lines: dict[str, _Line] = {}

    def replace(self, site: str, old: StatedEstimate | None, new: StatedEstimate | None) -> None:
        """Replace the contribution of a page; None = the page is inserted or removed."""
        before, after = _term(old), _term(new)
        if before is not None and site not in self._sites:
            before = None  # another worker counted it
        if before is None and after is None:
            return
        total = self._sites.get(site, (0.0,) * 6)
        for term, sign in ((before, -1.0), (after, 1.0)):
            if term is not None:
                total = _sum(total, term, sign)
        self._lines.pop(site, None)
        if total[0] < 0.5:
            self._sites.pop(site, None)
        else:
            self._sites[site] = total

    def prior(self, site: str, rhythm: float, own: Prior) -> Prior:
        """The prior of a page with this stated rhythm; `own`: that of its site."""
        line = self._line(site, own) if rhythm > 0.0 else None
        if line is None or line.slope < _LEAST_HONESTY:
            return own
        centre = line.y + line.slope * (-math.log(rhythm) - line.x)
        return Prior(round(centre, 2), round(line.spread, 2))

    def honesty(self, site: str, own: Prior) -> float:
        """How much of the stated differences between its pages is true: from 0 to 1."""
        line = self._line(site, own)
        return 0.0 if line is None or line.slope < _LEAST_HONESTY else min(line.slope, 1.0)

    def dump(self) -> dict[str, Sums]:
        return dict(self._sites)

    def _line(self, site: str, own: Prior) -> _Line | None:
        if site not in self._sites:
            return None
        found = self._lines.get(site)
        if found is None:
            found = self._lines[site] = _fitted(self._sites[site], own)
        return found


def _fitted(sums: Sums, own: Prior) -> _Line:
    n, x, y, xx, xy, yy = sums
    k = _IMAGINED
    mean_x, mean_y = x / n, y / n
    centred_xx = max(xx - n * mean_x**2, 0.0)
    centred_xy = xy - n * mean_x * mean_y
    slope = min(max(centred_xy / (centred_xx + k), 0.0), 1.2)
    rest = yy - n * mean_y**2 - 2.0 * slope * centred_xy + slope**2 * centred_xx
    spread = math.sqrt(max(rest + k * own.spread**2, 0.0) / (n + k))
    spread = min(max(spread, SitePrior.narrowest), SitePrior.widest)
    return _Line(slope, mean_x, (k * own.centre + y) / (k + n), spread)


def _term(stated: StatedEstimate | None) -> Sums | None:
    if stated is None or stated.rhythm <= 0.0:
        return None
    x, y = -math.log(stated.rhythm), stated.estimate.log_mean
    return 1.0, x, y, x * x, x * y, y * y + stated.estimate.log_variance


def _sum(one: Sums, other: Sums, sign: float) -> Sums:
    n, x, y, xx, xy, yy = (a + sign * b for a, b in zip(one, other, strict=True))
    return n, x, y, xx, xy, yy
