"""Dates of microformats: one value from the pieces of a value-class pattern, and its form in XML Schema."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date as calendar_date
from datetime import timedelta

_DATE = re.compile(r"[0-9]{4}-(?:[0-9]{3}|[0-9]{2}(?:-[0-9]{2})?)\Z")
_ZONE = re.compile(r"(?:[Zz]|[-+][0-9]{1,2}(?::?[0-9]{2})?)\Z")
_TIME = re.compile(
    r"(?P<hour>[0-9]{1,2})(?P<minute>:[0-9]{2})?(?P<second>:[0-9]{2}(?:\.[0-9]+)?)?"
    r"\s*(?P<half>[aApP]\.?[mM]\.?)?\s*(?P<zone>[Zz]|[-+][0-9]{1,2}(?::?[0-9]{2})?)?\Z"
)
_MOMENT = re.compile(r"(?P<date>[0-9]{4}-(?:[0-9]{3}|[0-9]{2}-[0-9]{2}))[Tt ](?P<time>[0-9].*)\Z", re.DOTALL)
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:[Zz]|[-+][0-9]{1,2}(?::?[0-9]{2})?)?\Z")
_DAY = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_STAMP = re.compile(
    rf"(?P<day>{_DAY})[Tt ]+(?P<clock>(?:[01][0-9]|2[0-3]):[0-5][0-9])(?P<second>:[0-5][0-9](?:\.[0-9]+)?)?"
    r"(?:(?P<utc>[Zz])|(?P<hours>[-+](?:0[0-9]|1[0-4])):?(?P<minutes>[0-5][0-9])?)?\Z"
)
_WHOLE = (
    (re.compile(rf"{_DAY}\Z"), "date"),
    (re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])\Z"), "gYearMonth"),
    (re.compile(r"[0-9]{4}\Z"), "gYear"),
    (
        re.compile(
            r"P(?=[0-9T])(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+S)?)?\Z"
        ),
        "duration",
    ),
)


def assemble(pieces: Iterable[str]) -> str | None:
    """`date time zone` from the first piece of each sort; None if none is a date or a time.

    A piece with date, time and zone is the value as it stands. One with date and time may still take a zone. The day of
    a year (`2020-061`) becomes a day of a month: results of the value-class pattern have no other form of a date.
    """
    date = time = zone = whole = ""
    for piece in pieces:
        value = piece.strip()
        moment = _MOMENT.match(value)
        if moment is not None:
            clock = _clock(moment["time"])
            if date or time or clock is None:
                continue  # a second date, or nothing that is a time
            date, (time, own_zone) = moment["date"], clock
            whole = "" if "m" in moment["time"].lower() else value  # am and pm are rewritten
            if own_zone:
                return whole or f"{date} {time}{own_zone}"
        elif not date and _DATE.match(value):
            date = _calendar(value)
        elif not time and (clock := _clock(value)) is not None:
            time, own_zone = clock
            zone = zone or own_zone
        elif not zone and _ZONE.match(value):
            zone = _zone(value)
    if not time:
        return date or None
    return whole if whole and not zone else f"{date} {time}{zone}".lstrip()


def is_clock(value: str) -> bool:
    """Whether an assembled value has no date yet."""
    return _CLOCK.match(value) is not None


def date_of(value: str) -> str:
    """The date part of a value, or nothing."""
    if _DATE.match(value):
        return value
    match = _MOMENT.match(value)
    return match["date"] if match else ""


def typed(value: str) -> tuple[str, str]:
    """The value in XML Schema's form with the local name of its datatype, or as it is with no datatype."""
    value = value.strip()
    for pattern, datatype in _WHOLE:
        if pattern.match(value):
            return value, datatype
    match = _STAMP.match(value)
    if match is None:
        return value, ""
    zone = "Z" if match["utc"] else f"{match['hours']}:{match['minutes'] or '00'}" if match["hours"] else ""
    return f"{match['day']}T{match['clock']}{match['second'] or ':00'}{zone}", "dateTime"


def _calendar(value: str) -> str:
    """A date with month and day for one with the day of the year, others as they are; nothing if the year has no such
    day."""
    year, _, day = value.partition("-")
    if len(day) != 3:
        return value
    try:
        found = calendar_date(int(year), 1, 1) + timedelta(int(day) - 1)
    except (ValueError, OverflowError):
        return ""
    return found.isoformat() if f"{found.year:04}" == year else ""


def _clock(value: str) -> tuple[str, str] | None:
    match = _TIME.match(value)
    if match is None or not (match["minute"] or match["half"]):
        return None
    hour = int(match["hour"])
    half = (match["half"] or "")[:1].lower()
    if half and not 1 <= hour <= 12:
        return None
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour:02}{match['minute'] or ':00'}{match['second'] or ''}", _zone(match["zone"] or "")


def _zone(value: str) -> str:
    """`Z`, or an offset as sign, two digits of hours and two of minutes. One of nothing stays as it is written."""
    if len(value) < 2:
        return value.upper()
    if value[1:] == "00:00":
        return value
    digits = value[1:].replace(":", "")
    return value[0] + (digits.zfill(4) if len(digits) > 2 else f"{digits:0>2}00")
