"""Dates of feeds and sitemaps: RFC 822 and ISO 8601 as they are written on the web, to one form.

`xsd:dateTime` in UTC, so that dates of different feeds compare as text. What cannot be read without guessing stays
text.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_tz
from functools import lru_cache
from typing import NamedTuple

_EPOCH = datetime(1970, 1, 1)
_MAX_LENGTH = 64  # longer texts are no dates
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_RFC822 = re.compile(
    r"(?:[A-Za-z]{3,9}\.?,?\s+)?(\d{1,2})[\s-]+([A-Za-z]{3})[A-Za-z]*\.?[\s-]+(\d{4})\s+(\d{1,2}):(\d{2})(?::(\d{2}))?"
    r"(?:\s*(GMT|UTC|UT|Z|[+-]\d{2}:?\d{2}))?\Z"
)
_ISO = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[Tt\s]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s*([Zz]|[+-]\d{2}:?\d{2})?)?)?)?\Z"
)


class ParsedDate(NamedTuple):
    """`text` is an xsd:dateTime in UTC; `unix` the same as a number; `exact` is False where the zone was missing."""

    text: str
    unix: float
    exact: bool = True


@lru_cache(maxsize=1024)
def moment(text: str) -> ParsedDate | None:
    """The moment a date means, or None where it cannot be told. A date without a zone is taken as UTC."""
    text = text.strip()
    if not text or len(text) > _MAX_LENGTH:
        return None
    found = _ISO.match(text)
    if found:
        year, month, day, hour, minute, second, zone = found.groups()
        return _moment(int(year), int(month or 1), int(day or 1), hour, minute, second, zone)
    found = _RFC822.match(text)
    if found:
        day, name, year, hour, minute, second, zone = found.groups()
        number = _MONTHS.get(name.lower())
        return _moment(int(year), number, int(day), hour, minute, second, zone) if number else None
    return _lenient(text)


def _moment(
    year: int, month: int, day: int, hour: str | None, minute: str | None, second: str | None, zone: str | None
) -> ParsedDate | None:
    try:
        at = datetime(year, month, day, int(hour or 0) % 24, int(minute or 0), min(int(second or 0), 59))
        if zone and zone[0] in "+-":
            offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
            at = at - offset if zone[0] == "+" else at + offset
        if int(hour or 0) == 24:  # ISO 8601's end of day
            at += timedelta(days=1)
    except (ValueError, OverflowError):
        return None
    return ParsedDate(f"{at.isoformat()}Z", (at - _EPOCH).total_seconds(), zone is not None)


def _lenient(text: str) -> ParsedDate | None:
    """Everything else that mail programs read: named zones of North America, two-digit years, asctime."""
    parsed = parsedate_tz(text)
    if parsed is None:
        return None
    try:
        at = datetime(*parsed[:6], tzinfo=UTC) - timedelta(seconds=parsed[9] or 0)
    except (ValueError, OverflowError):
        return None
    return ParsedDate(at.strftime("%Y-%m-%dT%H:%M:%SZ"), at.timestamp(), parsed[9] is not None) if at.year > 1 else None
