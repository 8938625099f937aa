"""How a constant bandwidth is divided: first reads of suspects (σ_X), of other pages (σ_H), and refresh (the rest).

Explicit requests come first and count against the slot like everything else, so the number of reads per slot is
constant. A class with nothing waiting gives its share to the others within the same slot (in the first cycle there is
nothing to refresh, so all is discovery). It does not save its share, otherwise a class that was idle for a week would
starve the others afterwards. Rounding is carried over: over many slots each class gets its share to within one read.

A share of 0 switches a class off: it gets nothing, not even what the others leave. Otherwise "no first reads" could not
be said: a young crawl has little that is due again, each page that it reads for the first time makes the periods of all
pages longer, and first reads would go on taking half of the bandwidth for hours.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from quadloom.errors import SettingsError


class ClassUse(NamedTuple):
    """What a class of first reads does with its share: `reads` a second, and `hunger`, the share of the time in which
    it has used all that it was given, so that it would take more."""

    reads: float = 0.0
    hunger: float = 0.0


UNUSED = ClassUse()


class ReadCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of reads, or of URLs that wait for one, by class."""

    requests: int = 0
    suspects: int = 0
    pages: int = 0
    refresh: int = 0
    idle: int = 0  # reads for which nothing waited

    @property
    def total(self) -> int:
        return self.requests + self.suspects + self.pages + self.refresh


class BandwidthShares:
    """Divides one slot after another. Bandwidth and shares may change between any two slots. `only_refresh`: the
    bandwidth is that of refreshes, and first reads are not counted; a share of 0 switches a class off all the same."""

    def __init__(self, bandwidth: float, suspects: float = 0.2, pages: float = 0.4) -> None:
        self.bandwidth = bandwidth
        self.only_refresh = False
        self._credit = {"suspects": 0.0, "pages": 0.0, "refresh": 0.0}
        self._fraction = 0.0
        self.set(suspects, pages)

    def set(self, suspects: float, pages: float) -> None:
        """New σ_X and σ_H, from the next slot on."""
        if not (suspects >= 0.0 and pages >= 0.0 and suspects + pages <= 1.0):  # also refuses NaN
            raise SettingsError(
                f"shares of {suspects:g} for suspects and {pages:g} for other pages leave {1 - suspects - pages:g}",
                hint="freshness.suspect_share and freshness.discovery_share must add up to 1 at most",
            )
        self.suspects, self.pages = suspects, pages

    @property
    def refresh(self) -> float:
        return max(round(1.0 - self.suspects - self.pages, 9), 0.0)  # 1 − 0.7 − 0.3 is not quite 0

    def refresh_bandwidth(self, suspects: ClassUse = UNUSED, pages: ClassUse = UNUSED, requests: float = 0.0) -> float:
        """Reads per second that `slot` gives to refresh if enough is due: what the classes that need less than their
        shares leave is divided between refresh and the hungry ones. Never less than its share.

        The price of a read is computed from this. What refresh gets at the moment would be wrong: in a young crawl
        little is due, first reads take the rest, and a price for the little that is left would keep it so.
        `requests`: first reads that were asked for, a second.
        """
        if not self.refresh:
            return 0.0
        if self.only_refresh:
            return self.bandwidth
        classes = ((self.suspects, suspects), (self.pages, pages))
        left = self.bandwidth - requests - sum((1.0 - use.hunger) * use.reads for _, use in classes)
        taking = self.refresh + sum(use.hunger * share for share, use in classes)
        return max(left * self.refresh / taking, self.bandwidth * self.refresh)

    def slot(self, seconds: float, waiting: ReadCounts) -> ReadCounts:
        """Reads of the next slot: exactly bandwidth × seconds (up to the rounding carried over) if enough URLs wait in
        classes that have a share."""
        due = self.bandwidth * seconds + self._fraction
        count = int(due)
        self._fraction = due - count
        requests = min(count, waiting.requests)
        return self._divide(count - requests, requests, waiting)

    def _divide(self, count: int, requests: int, waiting: ReadCounts) -> ReadCounts:
        shares = {"suspects": self.suspects, "pages": self.pages, "refresh": self.refresh}
        left = {"suspects": waiting.suspects, "pages": waiting.pages, "refresh": waiting.refresh}
        left = {name: number if shares[name] else 0 for name, number in left.items()}
        given = dict.fromkeys(shares, 0)
        for name, share in shares.items():
            self._credit[name] += share * count
        while count > 0 and any(left.values()):
            open_classes = [name for name in shares if left[name]]
            total = sum(shares[name] for name in open_classes)
            round_count = count
            for name in open_classes:
                take = min(int(shares[name] / total * round_count), left[name], count)
                given[name] += take
                left[name] -= take
                count -= take
            if count == round_count or count < len(open_classes):  # too few to divide: the largest credit wins
                neediest = max((n for n in shares if left[n]), key=lambda n: self._credit[n] - given[n], default="")
                if neediest and count:
                    given[neediest] += 1
                    left[neediest] -= 1
                    count -= 1
        for name in shares:
            self._credit[name] = min(max(self._credit[name] - given[name], -1.0), 1.0)
        return ReadCounts(requests=requests, idle=count, **given)
