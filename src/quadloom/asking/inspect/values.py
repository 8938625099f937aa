"""Values that their own vocabulary would not accept: a second look that `inspect` takes and no crawl pays for."""

from __future__ import annotations

import re
from datetime import date

from quadloom.model.document import Transformed
from quadloom.model.finding import Finding

_DATE = re.compile(
    r'<https?://schema\.org/(date[A-Z]\w*|\w+Date|validFrom|validThrough)> "([^"\\]*+(?:\\.[^"\\]*+)*+)"'
)
# ISO 8601 as schema.org means it: a date, perhaps only its year or month, perhaps with a time and an offset.
_ISO = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?)?)?")
_MOST = 20


def odd_values(transformed: Transformed, body: bytes) -> list[Finding]:
    """Dates of schema.org that no program can read, each once, with the line of the body that has them."""
    lines = transformed.nquads.decode("utf-8", "replace").split("\n")
    found: dict[tuple[str, str], Finding] = {}
    start = 0
    for syntax, count in transformed.syntaxes:
        for line in lines[start : start + count]:
            match = _DATE.search(line)
            if match is None or _is_date(match.group(2)) or len(found) == _MOST:
                continue
            name, value = match.groups()
            found.setdefault((name, value), _odd_date(name, value, body, syntax))
        start += count
    return list(found.values())


def _is_date(text: str) -> bool:
    if not _ISO.fullmatch(text):
        return False
    day, _, clock = text.partition("T")
    try:
        date.fromisoformat(day + "-01-01"[len(day) - 4 :] if len(day) < 10 else day)
    except ValueError:
        return False  # a thirteenth month, a 30th of February
    hour, minute, second = (int(clock[at : at + 2] or 0) if clock[at : at + 2].isdigit() else 0 for at in (0, 3, 6))
    return hour < 24 and minute < 60 and second <= 60


def _odd_date(name: str, value: str, body: bytes, syntax: str) -> Finding:
    at = body.find(value.encode("utf-8", "replace"))
    line = body.count(b"\n", 0, at) + 1 if at >= 0 else 0
    return Finding(
        "odd-date", f"{name} {value[:60]!r} is no date that ISO 8601 knows; kept as text", "warning", "transform", line,
        advice="write it as 2026-05-12 or 2026-05-12T19:30:00+02:00", syntax=syntax,
    )  # fmt: skip
