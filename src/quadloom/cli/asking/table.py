"""`quadloom table`: things of a type as rows, their commonest properties as columns."""

from __future__ import annotations

import sys
from typing import Literal

from quadloom.asking.things.formats import as_csv, as_json_lines, as_parquet, cells, headings
from quadloom.asking.things.table import ThingTable
from quadloom.cli.session import Session, session
from quadloom.cli.words import counted, cut
from quadloom.errors import UsageError
from quadloom.warehouse import Warehouse
from quadloom.web.view.filters import date_words

_MAX_CELL = 60  # characters of a cell on a terminal
_TEXT_COLUMNS = 26  # columns that a text needs to be read


def table(
    type: str = "",
    *,
    where: tuple[str, ...] = (),
    columns: str = "",
    sort: str = "",
    sites: int = 0,
    alone: bool = False,
    present: bool = False,
    limit: int = 100,
    format: Literal["csv", "json", "parquet", "sparql"] | None = None,
) -> None:
    """Print things of a type and its subtypes as a table. One row is one thing, even if several pages describe it.
    Without a type, list the types.

    Parameters
    ----------
    type
        the type: Event, schema:Event or an IRI
    where
        a condition: property, operator, value, such as 'location contains Ghent' or 'offers/price below 20'; operators
        are is, not, contains, above, below, from, before, exists, missing; may be repeated. Numbers may have a currency
        or a unit (60 EUR, 2 kg), dates any precision (2026-06), durations are PT30M or 30 min
    columns
        properties to show, separated by commas; offers/price is the price of an offer [default: the commonest ones]
    sort
        sort by this property; with a minus before it, the largest first
    sites
        only things that at least as many sites describe
    alone
        only things of exactly this type, without its subtypes
    present
        only things on pages that are still found
    limit
        number of rows
    format
        csv, json (JSON Lines), parquet, or sparql, which prints the query for the same things
    """
    s = session()
    if format == "parquet" and s.is_terminal:
        hint = "redirect it into a file: `quadloom table … > things.parquet`"
        raise UsageError("Parquet cannot be printed on a terminal", hint=hint)
    with s.read() as warehouse:
        if not type:
            _list_types(s, warehouse)
            return
        found = warehouse.things(
            type, where=where, columns=columns, sort=sort, sites=sites, alone=alone, present=present, limit=limit
        )
    _print(s, found.table, format or ("json" if s.json else ""))
    for hint in found.hints:
        s.say(f"hint: {hint}")


def _print(s: Session, found: ThingTable, format: str) -> None:
    match format:
        case "sparql":
            s.write(found.sparql)
        case "csv":
            sys.stdout.buffer.write(as_csv(found))
        case "json":
            sys.stdout.buffer.write(as_json_lines(found))
        case "parquet":
            sys.stdout.buffer.write(as_parquet(found))
        case _:
            rows = [cells(row) for row in found.rows]
            if s.is_terminal:  # without IRI and sources, which would fill the screen
                texts = [[cut(date_words(text), _MAX_CELL) for text in row[1:-1]] for row in rows]
                _print_columns(s, headings(found)[1:-1], texts)
            else:
                s.table(headings(found), rows)
            about = "" if found.exact else "about "
            s.say(f"{len(found.rows):,} of {about}{counted(found.total, 'thing')} of type {found.name}")
            if found.subtypes and not found.alone:
                s.say(f"with {counted(found.subtypes, 'subtype')}; only {found.name} itself: --alone")
    if gone := sum(1 for row in found.rows if row.gone):
        s.say(f"{counted(gone, 'thing')} on pages that are not found any more; without them: --present")
    for left in found.unreadable:
        s.say(f"left out: {counted(left.count, 'thing')} whose {left.label}; to see them: --where '{left.condition}'")


def _print_columns(s: Session, names: list[str], rows: list[list[str]]) -> None:
    """The first columns, as many as can be read side by side; the others are named."""
    shown, used = 0, 0
    for place, name in enumerate(names):
        used += min(_TEXT_COLUMNS, max([len(name), *(len(row[place]) for row in rows)])) + 2
        if used > s.out.width and shown:
            break
        shown += 1
    s.table(names[:shown], [row[:shown] for row in rows])
    if shown < len(names):
        s.say(f"also: {', '.join(names[shown:])}; to choose: --columns; to see all: --format csv")


def _list_types(s: Session, warehouse: Warehouse) -> None:
    counts = warehouse.ask.tables().types()
    rows = [
        [one.short, "  " * one.depth + one.name, one.things, one.own, one.descriptions]
        for one in (*counts.types, *counts.parts)
    ]
    s.table(["type", "name", "things", "of exactly this type", "descriptions"], rows)
    if not rows:
        s.say("no page has structured data yet\nhint: begin with `quadloom crawl URL`")
