"""`quadloom stats` and `quadloom findings`: what the warehouse holds in numbers, and the defects of what was read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from quadloom.asking.finding_codes import refuse_unknown
from quadloom.asking.findings import LocatedDefect, defects
from quadloom.asking.report.numbers import WarehouseNumbers, labelled
from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.statistics import Summary
from quadloom.cli.options import Ray, Resume, Sites, Workers
from quadloom.cli.progress import Progress
from quadloom.cli.session import Session, session
from quadloom.cli.upkeep.bulk import runner_of


def stats(
    *,
    limit: int = 20,
    recount: bool = False,
    workers: Workers = 0,
    ray: Ray = None,
    resume: Resume = False,
) -> None:
    """Count what the warehouse holds: classes, properties, vocabularies, sites, kinds, sizes and change rates.

    Parameters
    ----------
    limit
        number of lines of each list
    recount
        count classes and properties again, page by page, instead of using the sums of crawls; no crawl may run.
        --workers, --ray and --resume are for this
    """
    s = session()
    if recount:
        with s.open() as opened, Progress(s, "recount", unit="parts") as progress:
            opened.maintenance.recount(progress=progress.show, runner=runner_of(s, workers, ray), resume=resume)
    with s.read() as warehouse:
        found, numbers = warehouse.ask.numbers(), warehouse.ask.statistics(limit=limit)
    if s.json:
        s.emit({"numbers": found, **msgspec.structs.asdict(numbers)})
        return
    for place, (columns, rows) in enumerate(_tables(found, numbers)):
        if place:
            s.write("")
        s.table(columns, rows)


def _tables(found: WarehouseNumbers, numbers: Summary) -> Iterator[tuple[list[str], Sequence[Sequence[object]]]]:
    """The columns and rows of each list."""
    yield ["the warehouse", "count"], labelled(found)
    for name, unit in (("classes", "descriptions"), ("properties", "statements"), ("vocabularies", "statements")):
        yield [name, unit], [(shorten(value), count) for value, count in getattr(numbers, name)]
    for name in ("sites", "kinds", "outcomes"):
        yield [name, "pages"], getattr(numbers, name)
    for name in ("sizes", "change_rates"):
        rows = [(value, f"{share:.1%}") for value, share in getattr(numbers, name)]
        yield [name.replace("_", " "), "share of pages"], rows
    if numbers.by_kind:
        yield (
            ["kind", "bytes", "quads", "changes a day", "versions", "statements changed"],
            [
                (one.kind, one.bytes, one.quads, one.changes_per_day, one.versions, one.changed_statements)
                for one in numbers.by_kind
            ],
        )
    if (xml := numbers.xml).documents:
        columns = ["XML documents", "mean elements", "mean depth", "deepest"]
        yield columns, [(xml.documents, xml.elements, xml.depth, xml.deepest)]
        yield ["DTD or namespace", "documents"], [*xml.dtds, *xml.namespaces]


def _print_located(s: Session, located: list[LocatedDefect]) -> None:
    """For a terminal: for each code the advice, then the pages with the place of each finding."""
    by_code: dict[str, list[LocatedDefect]] = {}
    for item in located:
        by_code.setdefault(item.finding.code, []).append(item)
    for code, items in by_code.items():
        advice = next((item.finding.advice for item in items if item.finding.advice), "")
        s.write(f"{items[0].finding.severity} {code}" + (f": {advice}" if advice else ""))
        s.table(["page", "line", "finding"], [(one.url, one.finding.line or "", one.finding.message) for one in items])


def findings(
    *codes: str,
    site: Sites = (),
    limit: int = 1000,
    fail_found: bool = False,
) -> int:
    """Count the defects found in pages, by code; with codes, list the pages that have them.

    Parameters
    ----------
    codes
        list the pages with this finding, such as jsonld-invalid; without codes, all are counted
    limit
        number of lines to print
    fail_found
        exit with code 1 if there are errors or warnings, for scripts
    """
    s = session()
    with s.read() as warehouse:
        counted = defects(warehouse.ask.findings(codes=codes, site=site))
        located = list(islice(warehouse.ask.findings(codes=codes, site=site), limit)) if codes else []
    refuse_unknown(codes, [defect.code for defect in counted])
    if s.json:
        for record in located if codes else counted[:limit]:
            s.emit(record)
    elif codes and s.is_terminal:
        _print_located(s, located)
    elif codes:
        s.table(
            ["page", "severity", "code", "finding"],
            [(item.url, item.finding.severity, item.finding.code, str(item.finding)) for item in located],
        )
    else:  # the address of an example leaves no room on a terminal
        names = ["severity", "code", "pages", "findings", *([] if s.is_terminal else ["example"]), "message"]
        s.table(names, [[getattr(defect, name) for name in names] for defect in counted[:limit]])
    total = sum(defect.findings for defect in counted) if codes else len(counted)
    if total > limit and not s.json:
        s.say(f"{limit} of {total} are printed; all of them: --limit {total}")
    if not counted:
        s.say("no findings" + (f" {' '.join(codes)}; to list those in use: `quadloom findings`" if codes else ""))
    elif codes and (total := sum(defect.findings for defect in counted)) > len(located):
        s.say(f"{len(located):,} of {total:,} findings; to see more, raise --limit")
    elif not codes:
        s.say("to list the pages: `quadloom findings CODE`; docs/reference/findings.md explains the codes")
    return 1 if fail_found and any(defect.severity != "info" for defect in counted) else 0
