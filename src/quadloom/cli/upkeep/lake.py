"""`quadloom lake`: the warehouse as Parquet files, and SQL over them."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Literal

from cyclopts import App

from quadloom.asking.sparql.prefixes import type_iris
from quadloom.cli.options import Ray, Workers
from quadloom.cli.progress import Progress, known_pages
from quadloom.cli.session import Session, session
from quadloom.cli.upkeep.bulk import runner_of
from quadloom.cli.words import counted, size
from quadloom.errors import UsageError
from quadloom.maintenance.lake.place import place_of
from quadloom.maintenance.lake.query import LakeAnswer, LakeTables, ask, views
from quadloom.maintenance.lake.statistics import LakeStatistics, count
from quadloom.maintenance.lake.sync import sync as sync_lake
from quadloom.maintenance.lake.tables import arrow
from quadloom.maintenance.lake.things import things_of
from quadloom.process.clock import unix_time
from quadloom.process.durable import replacing

lake = App(name="lake")
_MAX_ROWS = 1000


@lake.command
def sync(place: str = "", *, parts: int = 0, workers: Workers = 0, ray: Ray = None) -> None:
    """Write what has changed since the last sync: quads, pages, links and findings as Parquet files.

    A crawl may run at the same time. If sync is killed, run it again: it continues.

    Parameters
    ----------
    place
        directory or s3://bucket/prefix [default: stores.lake, or the folder lake in the warehouse]
    parts
        number of parts of a new lake, a divisor of 256: each is written by one process; 0 = 16, or 1 if
        there are few pages
    """
    s = session()
    runner = runner_of(s, workers, ray)
    with s.read() as warehouse, Progress(s, "lake sync", total=known_pages(warehouse)) as progress:
        report = sync_lake(warehouse.stores, place, parts=parts, runner=runner, progress=progress.show)
    if s.json:
        s.emit(report)
        return
    pages = counted(report.written, "page")
    s.say(f"{pages} written, {report.removed:,} removed; {report.files:,} files, {size(report.bytes)}")
    s.table(["table", "rows"], list(report.rows.items()))


@lake.command
def query(sql: str, *, place: str = "", format: Literal["csv", "json"] | None = None, limit: int = _MAX_ROWS) -> None:
    """Answer a question in SQL (DuckDB) over the tables quads, pages, links and findings.

    Parameters
    ----------
    sql
        the question; `-` reads it from standard input
    place
        directory or s3://bucket/prefix of the lake [default: stores.lake, or the folder lake in the warehouse]
    format
        csv or json [default: a table]
    limit
        number of rows to print; 0 = all
    """
    s = session()
    text = sys.stdin.read() if sql == "-" else sql
    _print(s, ask(place_of(s.warehouse, s.settings, place), text, limit=limit), format or ("json" if s.json else ""))


@lake.command(name="views")
def print_views(*, place: str = "") -> None:
    """Print SQL that defines the tables in any DuckDB: `quadloom lake views > views.sql`, in the lake's directory.

    Parameters
    ----------
    place
        directory of the lake [default: stores.lake, or the folder lake in the warehouse]
    """
    s = session()
    s.write(views(place_of(s.warehouse, s.settings, place)).rstrip())


@lake.command
def statistics(place: str = "", *, report: Path | None = None) -> None:
    """Count pages, domains and entities by syntax, class and property, in the form of Web Data Commons.

    For a folder that `quadloom bulk` has written. The numbers are also written into it: statistics/*.parquet.

    Parameters
    ----------
    place
        directory or s3://bucket/prefix of the lake [default: stores.lake, or the folder lake in the warehouse]
    report
        write a page with tables and charts to this HTML file
    """
    s = session()
    found = write_statistics(s, place, report)
    if s.json:
        s.emit(found)
        return
    s.table(["number", ""], [(name.replace("_", " "), f"{value:,}") for name, value in found.summary.items()])
    s.table(["syntax", "pages", "domains"], found.tables["syntaxes"].rows)


@lake.command
def things(type: str, output: Path, *, place: str = "") -> None:
    """Write the things of a type as a table: a column for each property, typed, with the URL of the page.

    Parameters
    ----------
    type
        schema:Event, Event or a full IRI
    output
        file to write: .parquet or .csv
    place
        directory or s3://bucket/prefix of the lake [default: stores.lake, or the folder lake in the warehouse]
    """
    s = session()
    rows = write_things(s, place, type, output)
    s.say(f"{output}: {counted(rows, 'thing')}")


def write_things(s: Session, place: str, type: str, output: Path) -> int:
    """Returns the number of things."""
    if output.suffix not in (".parquet", ".csv"):
        raise UsageError(f"the format of {output.name} is unknown", hint="name a file .parquet or .csv")
    with LakeTables(place_of(s.warehouse, s.settings, place)) as tables:
        found = things_of(tables, type_iris(type))
    with replacing(output) as file:
        if output.suffix == ".parquet":
            arrow().parquet.write_table(found, file, compression="zstd")
        else:
            writer = csv.writer(io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True))
            writer.writerow(found.column_names)
            for row in found.to_pylist():
                writer.writerow(" | ".join(map(str, one)) if isinstance(one, list) else one for one in row.values())
    return len(found)


def write_statistics(s: Session, place: str, report: Path | None) -> LakeStatistics:
    """Count, and write the report if one is wanted."""
    found = count(place_of(s.warehouse, s.settings, place))
    if report is not None:
        from quadloom.web.lake_report import lake_report_html

        title = place.rstrip("/").rpartition("/")[2] or "Lake"
        report.write_text(lake_report_html(found, title=title, now=unix_time()), encoding="utf-8")
    return found


def _print(s: Session, answer: LakeAnswer, format: str) -> None:
    if format == "json":
        s.emit([dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows])
    elif format == "csv":
        writer = csv.writer(sys.stdout)
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
    else:
        s.table(list(answer.columns), [["" if value is None else value for value in row] for row in answer.rows])


def _plain(value: object) -> object:
    """As JSON can hold it."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
