"""A table of things as CSV, JSON Lines or Parquet: what the page shows, row by row, with IRI and sources."""

from __future__ import annotations

import csv
import io

import msgspec

from quadloom.asking.sparql.frames import require
from quadloom.asking.sparql.result_formats import without_formulas
from quadloom.asking.things.cells import CellValue
from quadloom.asking.things.table import TableColumn, ThingRow, ThingTable

_SEPARATOR = " | "  # values of one cell


def headings(table: ThingTable) -> list[str]:
    """Labels of the columns; two of the same label are told apart by where they stand."""
    labels = [column.label for column in table.columns]
    return ["iri", *(_heading(column, labels) for column in table.columns), "sources"]


def cells(row: ThingRow) -> list[str]:
    return [row.iri, *(_text(values) for values in row.cells), _SEPARATOR.join(row.sources)]


def as_csv(table: ThingTable) -> bytes:
    """RFC 4180 with a heading, in UTF-8. A cell that a spreadsheet would run as a formula gets an apostrophe."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow([without_formulas(name) for name in headings(table)])
    for row in table.rows:
        writer.writerow([without_formulas(text) for text in cells(row)])
    return stream.getvalue().encode("utf-8", "replace")


def as_json_lines(table: ThingTable) -> bytes:
    """An object for each row: heading → its values as a list."""
    names = headings(table)[1:-1]
    lines = [
        {
            "iri": row.iri,
            **{name: [value.text for value in values] for name, values in zip(names, row.cells, strict=True)},
            "sources": row.sources,
        }
        for row in table.rows
    ]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def as_parquet(table: ThingTable) -> bytes:
    """Numbers as numbers where all values of a column are; the rest as text. Raises `UsageError` without pyarrow."""
    require("pyarrow", "pip install 'quadloom[parquet]', or choose CSV")
    import pyarrow
    import pyarrow.parquet

    rows = [cells(row) for row in table.rows]
    names = headings(table)
    columns = {name: _numbers([row[place] for row in rows]) for place, name in enumerate(names)}
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream, compression="zstd")
    return stream.getvalue()


def _numbers(texts: list[str]) -> list[str] | list[float | None]:
    try:
        found = [float(text) if text else None for text in texts]
    except ValueError:
        return texts
    return found if any(number is not None for number in found) else texts


def _heading(column: TableColumn, labels: list[str]) -> str:
    return f"{column.within} › {column.label}" if labels.count(column.label) > 1 and column.within else column.label


def _text(values: tuple[CellValue, ...]) -> str:
    """Prices of several currencies have theirs, or nobody could tell which is which; a single one stays a number."""
    several = len({value.currency for value in values}) > 1
    return _SEPARATOR.join(f"{value.text} {value.currency}".rstrip() if several else value.text for value in values)
