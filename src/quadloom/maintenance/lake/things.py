"""Things of one type as a table: a row for each thing on each page, a column for each property, with its source URL.

Values get the type that all of them fit: whole number, number, date, time (UTC), truth value, else text. A property
that some thing has twice is a column of lists. Properties of a blank node, such as the price of an offer, are columns
of the thing, `offers/price`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

from quadloom.errors import NothingFound
from quadloom.maintenance.lake.query import LakeTables
from quadloom.maintenance.lake.tables import arrow

_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_BLANK = "urn:quadloom:blank:"
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}\Z", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\Z", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z", re.ASCII)
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}", re.ASCII)
_TRUTH = {"true": True, "false": False}
_FIXED = ("url", "subject")  # of every table

Key = tuple[str, str]


def things_of(tables: LakeTables, types: Sequence[str]) -> Any:
    """An Arrow table of the things that have one of these types (IRIs). Raises `NothingFound` if there is none. All of
    its values are in memory."""
    names = ", ".join("'" + one.replace("'", "''") + "'" for one in types)
    things = f"(SELECT DISTINCT page, subject FROM quads WHERE predicate = '{_TYPE}' AND object IN ({names}))"
    answer = tables.ask(f"""
        WITH things AS {things}, own AS (
          SELECT t.page, t.subject, q.predicate, q.object FROM things t JOIN quads q USING (page, subject)
          WHERE q.predicate <> '{_TYPE}')
        SELECT p.url, o.subject, o.predicate, '' AS below, o.object FROM own o JOIN pages p USING (page)
        WHERE o.object NOT LIKE '{_BLANK}%'
        UNION ALL
        SELECT p.url, o.subject, o.predicate, q.predicate, q.object FROM own o JOIN pages p USING (page)
        JOIN quads q ON q.page = o.page AND q.subject = o.object
        WHERE o.object LIKE '{_BLANK}%' AND q.predicate <> '{_TYPE}' AND q.object NOT LIKE '{_BLANK}%'
        UNION ALL
        SELECT p.url, t.subject, '', '', '' FROM things t JOIN pages p USING (page)""")
    values: dict[str, dict[Key, list[str]]] = defaultdict(lambda: defaultdict(list))
    keys: set[Key] = set()
    for url, subject, predicate, below, value in answer.rows:
        key = (str(url), str(subject))
        keys.add(key)
        if predicate:
            values[_path(str(predicate), str(below))][key].append(str(value))
    if not keys:
        raise NothingFound(
            f"there is no thing of type {types[0]}", hint="the classes in use: `quadloom lake statistics`"
        )
    ordered = sorted(keys)
    columns: dict[str, Any] = {"url": [url for url, _ in ordered], "subject": [subject for _, subject in ordered]}
    for name in sorted(values):
        columns[name if name not in _FIXED else f"{name}_"] = _column(
            [sorted(values[name].get(key, ())) for key in ordered]
        )
    return arrow().table(columns)


def _path(predicate: str, below: str) -> str:
    return f"{_name(predicate)}/{_name(below)}" if below else _name(predicate)


def _name(iri: str) -> str:
    """The last part of the IRI: http://schema.org/name and https://schema.org/name are one column."""
    return re.split(r"[/#:]", iri.rstrip("/#"))[-1] or iri


def _column(found: Sequence[Sequence[str]]) -> Any:
    """An Arrow array with one value, or a list of them, for each thing."""
    pyarrow = arrow()
    every = [value for values in found for value in values]
    parse, kind = _kind_of(every)
    try:
        parsed = [[parse(value) for value in values] for values in found]
    except ValueError:  # such as the 31st of February
        parsed, kind = [list(values) for values in found], "string"
    if any(len(values) > 1 for values in found):
        return pyarrow.array([values or None for values in parsed], pyarrow.list_(_ARROW[kind](pyarrow)))
    return pyarrow.array([values[0] if values else None for values in parsed], _ARROW[kind](pyarrow))


def _kind_of(values: Sequence[str]) -> tuple[Callable[[str], object], str]:
    for kind, fits, parse in _KINDS:
        if all(fits(value) for value in values):
            return parse, kind
    return str, "string"


def _utc(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at


_KINDS: tuple[tuple[str, Callable[[str], object], Callable[[str], object]], ...] = (
    ("whole", _WHOLE.match, int),
    ("number", _NUMBER.match, float),
    ("date", _DATE.match, date.fromisoformat),
    ("time", _TIME.match, _utc),
    ("truth", _TRUTH.__contains__, _TRUTH.__getitem__),
)
_ARROW: dict[str, Callable[[Any], Any]] = {
    "whole": lambda pyarrow: pyarrow.int64(),
    "number": lambda pyarrow: pyarrow.float64(),
    "date": lambda pyarrow: pyarrow.date32(),
    "time": lambda pyarrow: pyarrow.timestamp("us"),
    "truth": lambda pyarrow: pyarrow.bool_(),
    "string": lambda pyarrow: pyarrow.string(),
}
