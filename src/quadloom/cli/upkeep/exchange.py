"""`quadloom export` and `quadloom import`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from quadloom.asking.search import moment
from quadloom.asking.sparql.prefixes import type_iris
from quadloom.cli.session import Session, session
from quadloom.errors import NothingFound, UsageError
from quadloom.export.dump import parse_format
from quadloom.export.selection import Selection
from quadloom.warehouse import Warehouse

_EVERY = 1000  # pages between two words of progress


def export(
    target: Path | None = None,
    *,
    format: str = "",
    site: tuple[str, ...] = (),
    type: tuple[str, ...] = (),
    since: str = "",
    until: str = "",
    fail_empty: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Write the warehouse, or a part of it, to a file or to standard output.

    Parameters
    ----------
    target
        file; its suffix gives the format (`out.nq.gz`) [default: standard output]
    format
        nq, trig, ttl, nt, jsonld, rdf, parquet, warc or void, with .gz or .zst where wanted [default: nq]
    site
        only pages of this registered domain
    type
        only pages about such things: schema:Event, Event or a full IRI
    since
        only pages that changed on this date or later
    until
        only pages that changed on this date or before
    fail_empty
        exit with 4 when nothing was selected
    """
    s = session()
    if target is None and sys.stdout.isatty() and not format:
        raise UsageError("this would fill your terminal", hint="name a file, or pipe it: quadloom export | head")
    selection = Selection(
        sites=site, types=tuple(iri for name in type for iri in type_iris(name)), since=moment(since),
        until=moment(until),
    )  # fmt: skip
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
        written = warehouse.maintenance.export(
            target if target is not None else sys.stdout.buffer, format=format, selection=selection, progress=_told(s)
        )
    if s.json and target is not None:
        s.emit({"pages": written.pages, "quads": written.quads, "file": target})
    chosen, _ = parse_format(format or (target.name.partition(".")[2] if target else "") or "nq")
    s.say(f"{written.pages} pages, {written.quads} {'records' if chosen == 'warc' else 'quads'}")
    if fail_empty and not written.pages:
        raise NothingFound("no page was selected", hint="`quadloom stats` shows which sites and types there are")


def import_(*paths: Path, graph: str = "") -> None:
    """Read WARC files and RDF dumps into the warehouse, through the same phases as a crawl. Visits nobody.

    Parameters
    ----------
    paths
        files: .warc.gz, .nq, .trig, .ttl, .nt, .jsonld, .rdf, each with .gz or .zst
    graph
        URL under which statements are kept that name no graph
    """
    s = session()
    if not paths:
        raise UsageError("no file given", hint="quadloom import crawl.warc.gz dump.nq.gz")
    for path in paths:
        if not path.is_file():
            raise UsageError(
                f"there is no file {path}", hint="name .warc.gz, .nq, .trig, .ttl, .nt, .jsonld or .rdf files"
            )
    with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
        report = warehouse.maintenance.import_(
            *paths, graph=graph, progress=_told(s), notice=lambda kind, text: s.say(f"{kind}: {text}")
        )
    if s.json:
        s.emit(report)
    else:
        quarantined = f", {report.quarantined} quarantined" if report.quarantined else ""
        s.say(
            f"{report.pages} pages: {report.new} new, {report.changed} changed, {report.unchanged} unchanged"
            + quarantined
        )


def _told(s: Session) -> Callable[[int], None]:
    """Progress for people, now and then."""
    told = 0

    def tell(pages: int) -> None:
        nonlocal told
        if pages - told >= _EVERY:
            told = pages
            s.say(f"{pages} pages")

    return tell
