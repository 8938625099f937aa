"""How often an owner says that a page changes: `changefreq` of a sitemap or publication, `revisit-after` of a page."""

from __future__ import annotations

import re

_DAY = 86_400.0
# The words of sitemaps.org. "always" and "never" are not rhythms; these stand for what they mean to a scheduler.
CHANGE_FREQUENCIES: dict[str, float] = {
    "always": 900.0,
    "hourly": 3600.0,
    "daily": _DAY,
    "weekly": 7.0 * _DAY,
    "monthly": 30.4 * _DAY,
    "yearly": 365.25 * _DAY,
    "never": 3652.5 * _DAY,
}
_UNITS = {"minute": 60.0, "hour": 3600.0, "day": _DAY, "week": 7.0 * _DAY, "month": 30.4 * _DAY, "year": 365.25 * _DAY}
_NUMBER_AND_UNIT = re.compile(r"(\d{1,4}) ?(minute|hour|day|week|month|year)s?", re.ASCII)


def stated_rhythm(text: str) -> float:
    """Seconds between two changes, from a word of sitemaps.org or a number with a unit ("7 days"); 0 = neither."""
    word = text.strip().lower()[:40]
    if word in CHANGE_FREQUENCIES:
        return CHANGE_FREQUENCIES[word]
    found = _NUMBER_AND_UNIT.fullmatch(word)
    return int(found[1]) * _UNITS[found[2]] if found else 0.0
