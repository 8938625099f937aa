"""Whether the dates of a host can be trusted: Last-Modified headers and sitemap lastmods, compared with visits.

Many servers stamp every response with the current time, and many sitemaps have the date of their build. A date source
is trusted if it announced most of the changes that visits saw (recall), and if most of what it announced had changed
(precision). Both are Beta posteriors whose lower tenth must reach the floor, so about six consistent changes establish
trust and a few contradictions end it. Old evidence fades, so a host can regain trust.
"""

from __future__ import annotations

import struct
from calendar import timegm
from email.utils import parsedate
from functools import lru_cache

import scipy  # its parts load on first use: half a second that most commands need not wait

_STATE = struct.Struct("<fff")
_STAMP_SECONDS = 5.0  # younger than this at the time of the response: generated with it


class Trust:
    """Evidence about one date source of one host."""

    __slots__ = ("confirmed", "false", "missed")
    floor = 0.7
    keep = 0.995

    def __init__(self, confirmed: float = 0.0, missed: float = 0.0, false: float = 0.0) -> None:
        self.confirmed = confirmed  # announced and changed
        self.missed = missed  # changed, not announced
        self.false = false  # announced, not changed

    def observe(self, *, changed: bool, announced: bool) -> None:
        """Add a visit: did the content change, and did the source announce it?"""
        if not changed and not announced:
            return  # no evidence
        self.confirmed *= self.keep
        self.missed *= self.keep
        self.false *= self.keep
        if changed and announced:
            self.confirmed += 1.0
        elif changed:
            self.missed += 1.0
        else:
            self.false += 1.0

    @property
    def recall(self) -> float:
        """A change is announced with at least this probability (lower tenth of the posterior)."""
        return float(scipy.special.betaincinv(1.0 + self.confirmed, 1.0 + self.missed, 0.1))

    @property
    def precision(self) -> float:
        """An announcement is a change with at least this probability."""
        return float(scipy.special.betaincinv(1.0 + self.confirmed, 1.0 + self.false, 0.1))

    @property
    def trusted(self) -> bool:
        # Fewer than five confirmations cannot reach the floor (Beta(6, 1): 0.68), so skip the special functions.
        return self.confirmed >= 5.0 and self.recall >= self.floor and self.precision >= self.floor

    def encode(self) -> bytes:
        return _STATE.pack(self.confirmed, self.missed, self.false)

    @classmethod
    def decode(cls, data: bytes) -> Trust:
        return cls(*_STATE.unpack(data)) if data else cls()


def announced_age(modified_at: float, fetched_at: float, previous_at: float) -> float | None:
    """Age of the change that a date announces between two visits; None = it announces no change.

    A date in the future or within seconds of the response is a stamp, not a date.
    """
    age = fetched_at - modified_at
    if modified_at <= 0.0 or age < _STAMP_SECONDS or modified_at <= previous_at:
        return None
    return age


@lru_cache(maxsize=4096)
def http_date(text: str) -> float:
    """Unix time of a Last-Modified header, 0 = unreadable. Cached, because files of a host often share one."""
    parts = parsedate(text)
    if parts is None:
        return 0.0
    try:
        return float(timegm(parts))
    except (ValueError, OverflowError):
        return 0.0
