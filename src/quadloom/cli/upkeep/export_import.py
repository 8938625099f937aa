"""`quadloom export` and `quadloom import`: data out of the warehouse, and into it from files."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from quadloom.asking.export.dump import parse_format
from quadloom.asking.export.selection import Selection
from quadloom.asking.search import moment
from quadloom.asking.sparql.prefixes import type_iris
from quadloom.cli.options import FailEmpty, Ray, Resume, Sites, Types, Workers
from quadloom.cli.progress import Progress, known_pages
from quadloom.cli.session import session
from quadloom.cli.upkeep.bulk import runner_if_asked
from quadloom.cli.words import counted
from quadloom.errors import NothingFound, UsageError
from quadloom.maintenance.importing.imported_pages import listed
from quadloom.maintenance.importing.lake_pages import is_lake


def export(
    target: Path | None = None,
    *,
    format: str = "",
    site: Sites = (),
    type: Types = (),
    since: str = "",
    until: str = "",
    fail_empty: FailEmpty = False,
    workers: Workers = 1,
    ray: Ray = None,
    resume: Resume = False,
) -> None:
    """Write the warehouse, or a part of it, to a file or to standard output.

    With several processes or machines pages are read in parallel and written in the same order, so the result is the
    same, byte for byte. --resume is for an export into the same file with --workers or --ray.

    Parameters
    ----------
    target
        file to write; its suffix gives the format (`out.nq.gz`); for Markdown also a folder [default: standard output]
    format
        nq, trig, ttl, nt, jsonld, rdf, parquet, warc, wacz, void, markdown (JSON Lines, or files in a folder)
        or chunks (Markdown by heading), optionally with .gz or .zst [default: nq]
    since
        only pages that changed on this date or later
    until
        only pages that changed on this date or before
    """
    s = session()
    if target is None and sys.stdout.isatty() and not format:
        hint = "give a file, or pipe it: `quadloom export | head`"
        raise UsageError("the export would be printed on your terminal", hint=hint)
    selection = Selection(
        sites=site,
        types=tuple(iri for name in type for iri in type_iris(name)),
        since=moment(since),
        until=moment(until),
    )
    with s.read() as warehouse:
        whole = known_pages(warehouse) if selection == Selection() else 0
        with Progress(s, "export", total=whole) as progress:
            written = warehouse.maintenance.export(
                target if target is not None else sys.stdout.buffer,
                format=format,
                selection=selection,
                progress=progress.show,
                runner=runner_if_asked(s, workers, ray),
                resume=resume,
            )
    if s.json and target is not None:
        s.emit({"pages": written.pages, "quads": written.quads, "file": target})
    chosen, _ = parse_format(format or (target.name.partition(".")[2] if target else "") or "nq")
    unit = {"warc": "record", "wacz": "record", "chunks": "chunk"}.get(chosen, "quad")
    records = "" if chosen == "markdown" else f", {counted(written.quads, unit)}"
    s.say(counted(written.pages, "page") + records)
    if fail_empty and not written.pages:
        raise NothingFound("no page is selected", hint="to list the sites and types in use: `quadloom stats`")


def import_(*paths: Path, graph: str = "", links: Annotated[bool, Parameter(negative="--no-links")] = True) -> int:
    """Read WARC files and RDF dumps into the warehouse, through the same phases as a crawl. Visits no site.

    A bad record or file is reported and skipped, and the exit code is 1. A file that ends within its last record is a
    warning.

    Parameters
    ----------
    paths
        files: .warc.gz, .arc.gz, .wacz, .nq, .trig, .ttl, .nt, .jsonld, .rdf, packed or not; or folders that
        `quadloom bulk` has written, which have no words to search for
    graph
        graph (URL) for statements that name none
    links
        queue the links of the pages for the next crawl, as far as crawl.strategies and the scope allow
    """
    s = session()
    if not paths:
        raise UsageError("no file is given", hint="for example: `quadloom import crawl.warc.gz dump.nq.gz`")
    for path in paths:
        if not path.is_file() and not is_lake(path):
            raise UsageError(
                f"there is no file {path}", hint="give .warc.gz, .wacz, .nq, .trig, .ttl, .nt, .jsonld or .rdf files"
            )
    with s.open() as warehouse, Progress(s, "import") as progress:
        report = warehouse.maintenance.import_(
            *paths,
            graph=graph,
            links=links,
            progress=progress.show,
            notice=lambda kind, text: s.say(f"{kind}: {text}"),
        )
    pages = counted(report.pages, "page")
    s.report(
        report,
        f"{pages}: {report.new:,} new, {report.changed:,} changed, {report.unchanged:,} unchanged"
        + (f", {report.quarantined:,} quarantined" if report.quarantined else "")
        + (f", {report.skipped:,} records or files skipped" if report.skipped else "")
        + (f"; {counted(report.queued, 'URL')} queued for the next crawl" if report.queued else "")
        + (f"; records without a page: {listed(Counter(report.not_taken))}" if report.not_taken else ""),
    )
    return 0 if report.is_complete else 1
