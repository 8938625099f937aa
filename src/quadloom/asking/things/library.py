"""`warehouse.things("schema:Event")`: things of a type for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from quadloom.asking.sparql.frames import Cell, FrameMethods, typed
from quadloom.asking.things.formats import as_csv, cells, headings
from quadloom.asking.things.paths import parse_path
from quadloom.asking.things.selection import ThingSelection, parse_condition
from quadloom.asking.things.table import TableRequest, ThingTable, ThingTables

_MOST_SHOWN = 20  # rows in a notebook


class Things(FrameMethods):
    """Rows of a table of things: iterate for dictionaries, or take all as `pandas()`, `polars()`, `arrow()` or `csv()`.

    One row is one thing, also if several pages describe it; `sources` are those pages. Several values of a cell are
    joined by ` | `; `table` has them one by one, each with its own sources.
    """

    def __init__(self, table: ThingTable, hints: Sequence[str] = ()) -> None:
        self.table = table
        self.hints = tuple(hints)
        """What is odd about the request: properties that no page states."""

    @property
    def total(self) -> int:
        """Things that match, also beyond the limit."""
        return self.table.total

    @property
    def sparql(self) -> str:
        """The same selection as a query."""
        return self.table.sparql

    def __len__(self) -> int:
        return len(self.table.rows)

    def __repr__(self) -> str:
        names = ", ".join(headings(self.table)[1:-1])
        return f"<Things of type {self.table.name}: {len(self)} of {self.total}; columns {names}>"

    def _repr_html_(self) -> str:
        """For notebooks: the first rows as a table, everything from pages escaped."""
        heads = "".join(f"<th>{escape(name)}</th>" for name in headings(self.table)[1:-1])
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in cells(row)[1:-1])}</tr>"
            for row in self.table.rows[:_MOST_SHOWN]
        )
        return f"<table><caption>{escape(repr(self)[1:-1])}</caption><tr>{heads}</tr>{rows}</table>"

    def __iter__(self) -> Iterator[dict[str, str]]:
        names = headings(self.table)
        return (dict(zip(names, cells(row), strict=True)) for row in self.table.rows)

    def columns(self) -> dict[str, Sequence[Cell]]:
        rows = [cells(row) for row in self.table.rows]
        return {name: typed([row[place] for row in rows]) for place, name in enumerate(headings(self.table))}

    def csv(self) -> bytes:
        return as_csv(self.table)


def select(
    tables: ThingTables,
    type: str,
    *,
    where: str | Sequence[str] = (),
    columns: str | Sequence[str] = (),
    sort: str = "",
    sites: int = 0,
    alone: bool = False,
    present: bool = False,
    limit: int = 1000,
) -> Things:
    """`alone`: without the subtypes. `present`: only things on pages that are still found.

    Raises `NothingFound` if no thing has the type, `UsageError` for a condition or a property that cannot be read."""
    conditions = [where] if isinstance(where, str) else where
    named = columns.split(",") if isinstance(columns, str) else columns
    selection = ThingSelection(
        type=tables.resolve(type),
        conditions=tuple(parse_condition(text) for text in conditions),
        sort=parse_path(sort.lstrip("-")) if sort else (),
        descending=sort.startswith("-"),
        sites=sites,
        alone=alone,
        present=present,
    )
    paths = tuple(parse_path(text) for text in named if text.strip())
    request = TableRequest(selection=selection, columns=paths, limit=max(1, limit), facets=False)
    return Things(tables.table(request), tables.unused((*selection.paths, *paths)))
