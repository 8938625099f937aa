"""Values compared as what they are, in SPARQL: numbers with units, prices, dates with and without time, durations.

Pages write most of these as text, so each comparison has two parts: whether a value can be read as that kind, and how
it compares. Values that cannot be read are in neither answer; tables count and show them.

* A number may have a currency or a unit (`1,299.00 €`, `350 kcal`). `1,299` is a thousand, `12,5` is twelve and a half.
  A limit with a unit compares only values of that unit.
* A date compares as far as the limit is given: `from 2026-06` takes the whole month. A year or month alone counts as
  its first day. A limit with a time compares moments; a time without a zone is taken as UTC.
* A duration is ISO 8601 without years and months, whose lengths differ; a limit may also be written as `30 min`.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec
import pyoxigraph as ox

from quadloom.asking.things.paths import PropertyPath
from quadloom.errors import UsageError

Reading = Literal["number", "date", "duration"]
READINGS: tuple[Reading, ...] = ("number", "date", "duration")
SIGNS = {"above": ">", "below": "<", "from": ">=", "before": "<"}

_AMOUNT = "([0-9]{1,3}([ ,.'][0-9]{3})+([.,][0-9]+)?|[0-9]+([.,][0-9]+)?([eE][+-]?[0-9]+)?|[.,][0-9]+)"
_PATTERNS: dict[Reading, str] = {
    "number": f"^ *([A-Z]{{3}} ?|[$€£¥₹] ?)?[+-]?{_AMOUNT} ?([%°€$£¥₹]|[A-Za-zµ²³/]{{1,8}})? *$",
    "date": "^ *[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01])([T ][0-2][0-9]:[0-5][0-9].*)?)?)? *$",
    "duration": "^ *P([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+([.][0-9]+)?S)?)? *$",
}
_READ = {reading: re.compile(pattern) for reading, pattern in _PATTERNS.items()}
_LIMIT = re.compile(r"([A-Z]{3}|[$€£¥₹])? ?([+-]?[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?) ?([^0-9\s.,]{1,8})?")
_SPAN = re.compile(r"(?:(\d+) ?d(?:ays?)?)? ?(?:(\d+) ?h(?:ours?)?)? ?(?:(\d+) ?min(?:utes?)?)? ?(?:(\d+) ?s(?:ec)?)?")
_EXAMPLES = {"number": "4.5, 60 EUR or 2 kg", "date": "2026-06, 2026-06-01 or 2026-06-01T19:30Z", "duration": "PT30M"}
PRICES = ("price", "lowPrice", "highPrice", "minPrice", "maxPrice")


class Comparison(msgspec.Struct, frozen=True):
    """`readable` and `test` are SPARQL expressions over a variable. `currency`: only values beside this one count."""

    reading: Reading
    readable: str
    test: str
    currency: str = ""


def reading_of(text: str) -> Reading | None:
    """What a value can be read as; None = as text only. A year alone is a number."""
    for reading in ("duration", "number", "date"):
        if _READ[reading].fullmatch(text) and (reading != "duration" or any(map(str.isdigit, text))):
            return reading
    return None


def comparison(variable: str, path: PropertyPath, operator: str, limit: str, kind: str) -> Comparison:
    """Of the values in a variable with a limit as people write it; `kind`: of the column. Raises `UsageError`."""
    sign = SIGNS[operator]
    if operator in ("from", "before") or kind == "date":
        return _dates(variable, sign, limit)
    if limit.startswith("P") or kind == "duration":
        return _durations(variable, sign, limit)
    return _dates(variable, sign, limit) if re.match(r"\d{4}-\d\d", limit) else _numbers(variable, path, sign, limit)


def readable(variable: str, reading: Reading) -> str:
    return f"REGEX(STR({variable}), {_literal(_PATTERNS[reading])})"


def as_number(variable: str) -> str:
    """An expression for the number in a text, an error if there is none."""
    bare = f'REPLACE(REPLACE(STR({variable}), "^[^0-9+.-]+", ""), "[^0-9]+$", "")'
    return (
        f'xsd:double(IF(REGEX({bare}, "^[+-]?[1-9][0-9]{{0,2}}(,[0-9]{{3}})+([.][0-9]+)?$"), REPLACE({bare}, ",", ""), '
        f'IF(REGEX({bare}, "^[+-]?[0-9]{{1,3}}([.][0-9]{{3}})+,[0-9]+$"), '
        f'REPLACE(REPLACE({bare}, "[.]", ""), ",", "."), REPLACE(REPLACE({bare}, "[ \']", ""), ",", "."))))'
    )


def _numbers(variable: str, path: PropertyPath, sign: str, limit: str) -> Comparison:
    match = _LIMIT.fullmatch(limit.strip())
    if match is None:
        raise _refused(limit, "number")
    before, number, after = match.groups()
    unit = before or after or ""
    is_price = path[-1].rpartition("/")[2] in PRICES
    can_read = readable(variable, "number")
    if unit and not is_price:
        can_read += f" && STRENDS(LCASE(STR({variable})), {_literal(unit.lower())})"
    value = number.replace(",", "") if re.fullmatch(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", number) else number
    try:
        least = float(value.replace(",", "."))
    except ValueError:
        raise _refused(limit, "number") from None
    return Comparison(
        "number", can_read, f"{as_number(variable)} {sign} {least!r}", _CURRENCIES.get(unit, unit) if is_price else ""
    )


_CURRENCIES = {"€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY", "₹": "INR"}


def _dates(variable: str, sign: str, limit: str) -> Comparison:
    given = limit.strip().replace(" ", "T")
    if not _READ["date"].fullmatch(given):
        raise _refused(limit, "date")
    can_read = readable(variable, "date")
    if len(given) <= len("2026-06-01"):
        return Comparison("date", can_read, f"SUBSTR(STR({variable}), 1, {len(given)}) {sign} {_literal(given)}")
    moment, given = f'CONCAT(STR({variable}), "Z")', given + "Z"
    for pattern, replacement in _TO_MOMENT:
        moment = f'REPLACE({moment}, "{pattern}", "{replacement}")'
        given = re.sub(pattern, replacement.replace("$", "\\"), given)
    return Comparison("date", can_read, f'xsd:dateTime({moment}) {sign} "{given}"^^xsd:dateTime')


# A date of any precision and a Z → a moment with seconds and zone, as xsd:dateTime reads it. No letter or digit follows
# a reference to a group, since some engines would take it as a part of the group's name.
_TO_MOMENT = (
    ("ZZ$", "Z"), ("^([0-9]{4})Z$", "$1-01Z"), ("^(.{7})Z$", "$1-01Z"), ("^(.{10})Z$", "$1 00:00Z"), (" ", "T"),
    ("([+-][0-9]{2}):?([0-9]{2})Z$", "$1:$2"), ("^(.{16})(Z|[+-])", "$1:00$2"),
)  # fmt: skip


def _durations(variable: str, sign: str, limit: str) -> Comparison:
    given = limit.strip()
    span = _SPAN.fullmatch(given.lower())
    if span is not None and any(span.groups()):
        days, hours, minutes, seconds = (int(part or 0) for part in span.groups())
        given = f"P{days}DT{hours}H{minutes}M{seconds}S"
    if not _READ["duration"].fullmatch(given):
        raise _refused(limit, "duration")
    test = f'xsd:dayTimeDuration(STR({variable})) {sign} "{given}"^^xsd:dayTimeDuration'
    return Comparison("duration", readable(variable, "duration"), test)


def _refused(limit: str, reading: Reading) -> UsageError:
    return UsageError(f"{limit[:50]!r} is not a {reading}", hint=f"write {_EXAMPLES[reading]}")


def _literal(text: str) -> str:
    return str(ox.Literal(text))
