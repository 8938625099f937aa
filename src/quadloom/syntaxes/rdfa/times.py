"""The datatype of a date or time by its spelling (HTML+RDFa 1.1, section 3.1)."""

from __future__ import annotations

import re

from quadloom.syntaxes.terms import XSD

_ZONE = r"(?:Z|[+-]\d\d:\d\d)?"
_CLOCK = r"\d\d:\d\d:\d\d(?:\.\d+)?"
_DAY = r"-?\d{4,}-\d\d-\d\d"
_SPELLINGS = tuple(
    (f"{XSD}{name}", re.compile(pattern, re.ASCII))
    for name, pattern in (
        ("dateTime", rf"{_DAY}T{_CLOCK}{_ZONE}"),
        ("date", rf"{_DAY}{_ZONE}"),
        ("time", rf"{_CLOCK}{_ZONE}"),
        ("gYearMonth", rf"-?\d{{4,}}-\d\d{_ZONE}"),
        ("gYear", rf"-?\d{{4,}}{_ZONE}"),
        (
            "duration",
            r"-?P(?=[\dT])(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?",
        ),
    )
)
# The longest spelling anybody writes; longer text is no date, and no pattern has to look at it.
_LONGEST = 64


def time_datatype(text: str) -> str:
    """The XML Schema datatype whose spelling `text` has, or "". Blanks around it are part of the spelling."""
    if len(text) <= _LONGEST:
        for datatype, spelling in _SPELLINGS:
            if spelling.fullmatch(text):
                return datatype
    return ""
