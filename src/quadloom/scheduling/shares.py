"""How a constant bandwidth is divided: first reads of suspects (σ_X), of other pages (σ_H), and refresh (the rest).

Explicit requests come first and count against the slot like everything else, so the number of reads per slot is
constant. A class with nothing waiting gives its share to the others within the same slot (in the first cycle there is
nothing to refresh, so all is discovery). It does not save its share, otherwise a class that was idle for a week would
starve the others afterwards. Rounding is carried over: over many slots each class gets its share to within one read.
"""

from __future__ import annotations

import msgspec

from quadloom.errors import SettingsError


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
    """Divides one slot after another. Bandwidth and shares may change between any two slots."""

    def __init__(self, bandwidth: float, suspects: float = 0.2, pages: float = 0.4) -> None:
        self.bandwidth = bandwidth
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
        return 1.0 - self.suspects - self.pages

    def refresh_bandwidth(self, waiting: ReadCounts) -> float:
        """Reads per second that refresh gets at least: its share, and its part of the shares with nothing waiting.

        If a class needs less than its share, `slot` may leave more for refresh. The price of a read is computed from
        this lower bound.
        """
        idle = (0.0 if waiting.suspects else self.suspects) + (0.0 if waiting.pages else self.pages)
        taking = self.refresh + (self.suspects if waiting.suspects else 0.0) + (self.pages if waiting.pages else 0.0)
        return self.bandwidth * (self.refresh + (idle * self.refresh / taking if taking > 0.0 else idle))

    def slot(self, seconds: float, waiting: ReadCounts) -> ReadCounts:
        """Reads of the next slot: exactly bandwidth × seconds (up to the rounding carried over) if enough URLs wait."""
        due = self.bandwidth * seconds + self._fraction
        count = int(due)
        self._fraction = due - count
        requests = min(count, waiting.requests)
        return self._divide(count - requests, requests, waiting)

    def _divide(self, count: int, requests: int, waiting: ReadCounts) -> ReadCounts:
        shares = {"suspects": self.suspects, "pages": self.pages, "refresh": self.refresh}
        left = {"suspects": waiting.suspects, "pages": waiting.pages, "refresh": waiting.refresh}
        given = dict.fromkeys(shares, 0)
        for name, share in shares.items():
            self._credit[name] += share * count
        while count > 0 and any(left.values()):
            open_classes = [name for name in shares if left[name]]
            total = sum(shares[name] for name in open_classes)
            round_count = count
            for name in open_classes:
                part = shares[name] / total if total > 0.0 else 1.0 / len(open_classes)
                take = min(int(part * round_count), left[name], count)
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
