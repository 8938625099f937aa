"""Which pictures fit a result of a query: chosen by what its columns hold, not by who asked.

| picture | columns |
|---|---|
| map | a latitude and a longitude, or a point in WKT |
| timeline | a date, and anything to name it |
| line | a date or a number, and a number |
| bars | a name, and a number |
| graph | two columns of things |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from markupsafe import Markup

from quadloom.asking.entity import Value
from quadloom.web.view import charts
from quadloom.web.view.charts import Mark
from quadloom.web.view.pictures import NetworkEdge, Node, network
from quadloom.web.view.terms import entity_link, is_web

View = Literal["table", "bars", "line", "map", "timeline", "graph"]
Cells = Sequence[Sequence[Value | None]]
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d+)?|\.\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"([12]\d{3})(?:-(\d\d))?(?:-(\d\d))?(?:[T ](\d\d):(\d\d).*)?")
_POINT = re.compile(r"\s*(?:<[^>]*>\s*)?POINT\s*\(\s*(-?[\d.]+)\s+(-?[\d.]+)", re.IGNORECASE)
_MIN_SHARE = 0.6  # share of a column's values that must be of a kind
_MAX_EDGES = 60


class ResultColumns:
    """What each column of a result holds."""

    def __init__(self, variables: Sequence[str], rows: Cells) -> None:
        self._rows = rows
        self.variables = variables
        places = range(len(variables))
        self.numbers = [place for place in places if self._share(place, _is_number)]
        self.dates = [place for place in places if place not in self.numbers and self._share(place, _is_date)]
        self.things = [place for place in places if self._share(place, lambda value: value.kind == "iri")]
        self.points = [place for place in places if self._share(place, lambda value: bool(_POINT.match(value.text)))]
        self.latitude = self._named(("lat", "latitude"))
        self.longitude = self._named(("long", "lon", "lng", "longitude"))

    def _share(self, place: int, test: object) -> bool:
        values = [row[place] for row in self._rows if row[place] is not None]
        assert callable(test)
        return bool(values) and sum(bool(test(value)) for value in values) >= _MIN_SHARE * len(values)

    def _named(self, names: Sequence[str]) -> int | None:
        found = [place for place in self.numbers if self.variables[place].lower() in names]
        return found[0] if found else None

    @property
    def label(self) -> int | None:
        """The column that names a row: a text if there is one, else a thing."""
        used = {*self.numbers, *self.dates, *self.points}
        free = [place for place in range(len(self.variables)) if place not in used]
        texts = [place for place in free if place not in self.things]
        return (texts or free or [None])[0]  # type: ignore[list-item]

    def views(self) -> list[View]:
        """The pictures that make sense, the best first; a table always does."""
        found: list[View] = []
        if self.points or (self.latitude is not None and self.longitude is not None):
            found.append("map")
        if self.numbers and self.dates:
            found.append("line")
        if self.dates:
            found.append("timeline")
        if self.numbers and self.label is not None and self.latitude is None:
            found.append("bars")
        if len(self.things) >= 2:
            found.append("graph")
        return [*found, "table"]


def draw(view: View, variables: Sequence[str], rows: Cells, names: Mapping[str, str]) -> Markup:
    """The picture; empty if there is nothing to draw."""
    columns = ResultColumns(variables, rows)
    if view == "table" or view not in columns.views():
        return Markup()
    title = f"{view} of {', '.join(variables)}"
    label = columns.label

    def named(row: Sequence[Value | None]) -> str:
        value = row[label] if label is not None else None
        return "" if value is None else names.get(value.text) or value.text

    def href(row: Sequence[Value | None]) -> str:
        thing = next((row[place] for place in columns.things if row[place] is not None), None)
        return entity_link(thing.text) if thing is not None and thing.kind == "iri" else ""

    if view == "map":
        return charts.world([mark for row in rows if (mark := _place(columns, row, named(row), href(row)))], title)
    if view == "graph":
        return Markup(_graph(columns, rows, names, title))
    if view == "bars":
        number = columns.numbers[-1]
        marks = [Mark(named(row), value, href=href(row)) for row in rows if (value := _float(row[number])) is not None]
        return charts.bars(marks, title)
    date = columns.dates[0]
    if view == "timeline":
        found = [Mark(named(row), at, href=href(row)) for row in rows if (at := _time(row[date])) is not None]
        return charts.timeline(found, title)
    points = [
        Mark("", at, y)
        for row in rows
        if (at := _time(row[date])) is not None and (y := _float(row[columns.numbers[0]])) is not None
    ]
    return charts.line([(variables[columns.numbers[0]], sorted(points, key=lambda mark: mark.x))], title, dates=True)


def _place(columns: ResultColumns, row: Sequence[Value | None], label: str, href: str) -> Mark | None:
    if columns.points:
        value = row[columns.points[0]]
        match = _POINT.match(value.text) if value is not None else None
        return Mark(label, float(match.group(1)), float(match.group(2)), href) if match else None
    assert columns.longitude is not None and columns.latitude is not None
    x, y = _float(row[columns.longitude]), _float(row[columns.latitude])
    return Mark(label, x, y, href) if x is not None and y is not None else None


def _graph(columns: ResultColumns, rows: Cells, names: Mapping[str, str], title: str) -> str:
    first, second = columns.things[:2]
    edges = []
    for row in rows:
        one, other = row[first], row[second]
        if one is not None and other is not None and one.kind == other.kind == "iri":
            edges.append(NetworkEdge(_node(one.text, names), _node(other.text, names)))
    return network(edges[:_MAX_EDGES], title=title)


def _node(iri: str, names: Mapping[str, str]) -> Node:
    return Node(names.get(iri) or iri, entity_link(iri), iri if is_web(iri) else "")


def _is_number(value: Value) -> bool:
    return value.kind == "literal" and bool(_NUMBER.fullmatch(value.text.strip())) and not _is_year(value.text)


def _is_year(text: str) -> bool:
    return len(text) == 4 and text.isdigit() and 1500 <= int(text) <= 2100


def _is_date(value: Value) -> bool:
    return value.kind == "literal" and "-" in value.text and bool(_DATE.fullmatch(value.text.strip()))


def _float(value: Value | None) -> float | None:
    if value is None or not _NUMBER.fullmatch(value.text.strip()):
        return None
    return float(value.text.strip().replace(",", "."))


def time_of(text: str) -> float | None:
    """Unix time of a date or a time in ISO 8601; None = it is none."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute = (int(part) if part else 0 for part in match.groups())
    try:
        return datetime(year, month or 1, day or 1, hour, minute, tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _time(value: Value | None) -> float | None:
    return None if value is None else time_of(value.text)
