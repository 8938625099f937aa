"""`quadloom stats` and `quadloom findings`: what the warehouse holds in numbers, and the defects of what was read."""

from __future__ import annotations

from itertools import islice

import msgspec

from quadloom.asking.finding_codes import refuse_unknown
from quadloom.asking.findings import LocatedDefect, defects
from quadloom.asking.report.numbers import WarehouseNumbers, labelled
from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.statistics import Summary
from quadloom.cli.progress import Progress
from quadloom.cli.session import Session, session
from quadloom.cli.upkeep.bulk import runner_of
from quadloom.warehouse import Warehouse


def stats(
    *,
    limit: int = 20,
    recount: bool = False,
    workers: int = 0,
    ray: str | None = None,
    resume: bool = False,
) -> None:
    """Count what the warehouse holds: classes, properties, vocabularies, sites, kinds, sizes and change rates.

    Parameters
    ----------
    limit
        number of lines of each list
    recount
        count classes and properties again, page by page, instead of trusting the sums of crawls; no crawl may run
    workers
        with --recount: processes that count; 0 = one per core
    ray
        with --recount: address of a Ray cluster (auto, local, ray://host:10001) whose machines count
    resume
        with --recount: go on after an interrupted one
    """
    s = session()
    if recount:
        with (
            Warehouse.open(s.warehouse, settings=s.settings) as opened,
            Progress(s, "recount", unit="parts") as progress,
        ):
            opened.maintenance.recount(progress=progress.show, runner=runner_of(s, workers, ray), resume=resume)
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
        found, numbers = warehouse.ask.numbers(), warehouse.ask.statistics(limit=limit)
    if s.json:
        s.emit({"numbers": found, **msgspec.structs.asdict(numbers)})
        return
    if s.is_terminal:
        _print_statistics(s, found, numbers)
        return
    for label, count in labelled(found):
        s.write(f"{label}\t{count}")
    for name in ("classes", "properties", "vocabularies"):
        for value, count in getattr(numbers, name):
            s.write(f"{name}\t{shorten(value)}\t{count}")
    for name in ("sites", "kinds", "outcomes"):
        for value, count in getattr(numbers, name):
            s.write(f"{name}\t{value}\t{count}")
    for name in ("sizes", "change_rates"):
        for value, share in getattr(numbers, name):
            s.write(f"{name}\t{value}\t{share:.1%}")
    for one in numbers.by_kind:
        change = f"{one.changed_statements:g} statements changed per version" if one.versions else "no new version yet"
        s.write(
            f"kind\t{one.kind}\t{one.bytes} bytes\t{one.quads} quads\t{one.changes_per_day:g} changes a day\t{change}"
        )
    xml = numbers.xml
    if xml.documents:
        s.write(
            f"xml\t{xml.documents} documents\t{xml.elements:g} elements\tdepth {xml.depth:g}, at most {xml.deepest}"
        )
        for name, counted in (("dtds", xml.dtds), ("namespaces", xml.namespaces)):
            for value, count in counted:
                s.write(f"{name}\t{value}\t{count}")


def _print_statistics(s: Session, found: WarehouseNumbers, numbers: Summary) -> None:
    """For a terminal: one table for each list, its values as people read them."""
    s.table(["the warehouse", ""], labelled(found))
    for name, unit in (("classes", "things"), ("properties", "statements"), ("vocabularies", "statements")):
        s.write("")
        s.table([name, unit], [(shorten(value), count) for value, count in getattr(numbers, name)])
    for name, unit in (("sites", "pages"), ("kinds", "pages"), ("outcomes", "pages")):
        s.write("")
        s.table([name, unit], getattr(numbers, name))
    for name, title in (("sizes", "size"), ("change_rates", "changes")):
        s.write("")
        s.table([title, "share of pages"], [(value, f"{share:.1%}") for value, share in getattr(numbers, name)])
    if numbers.by_kind:
        s.write("")
        s.table(
            ["kind", "bytes", "quads", "changes a day", "versions", "statements changed"],
            [
                (one.kind, one.bytes, one.quads, one.changes_per_day, one.versions, one.changed_statements)
                for one in numbers.by_kind
            ],
        )
    xml = numbers.xml
    if xml.documents:
        s.write(f"\nXML: {xml.documents} documents, {xml.elements:g} elements and depth {xml.depth:g} on average")
        s.table(["DTD or namespace", "documents"], [*xml.dtds, *xml.namespaces])


def _print_located(s: Session, located: list[LocatedDefect]) -> None:
    """For a terminal: by code, what to do once, then the pages with the place of each finding."""
    by_code: dict[str, list[LocatedDefect]] = {}
    for item in located:
        by_code.setdefault(item.finding.code, []).append(item)
    for code, items in by_code.items():
        advice = next((item.finding.advice for item in items if item.finding.advice), "")
        s.write(f"{items[0].finding.severity} {code}" + (f": {advice}" if advice else ""))
        s.table(["page", "line", "finding"], [(one.url, one.finding.line or "", one.finding.message) for one in items])


def findings(
    *codes: str,
    site: tuple[str, ...] = (),
    limit: int = 1000,
    fail_found: bool = False,
) -> int:
    """Count the defects found in pages, by code; with codes, list the pages that have them.

    Parameters
    ----------
    codes
        list the pages with this finding, such as jsonld-invalid; without codes, all are counted
    site
        only pages of this registered domain or host; may be repeated
    limit
        number of lines to print
    fail_found
        exit with code 1 if there are errors or warnings, for scripts
    """
    s = session()
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
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
    else:
        s.table(
            ["severity", "code", "pages", "findings", *(["finding"] if s.is_terminal else ["example", "finding"])],
            [
                (
                    *(defect.severity, defect.code, defect.pages, defect.findings),
                    *([] if s.is_terminal else [defect.example]),
                    defect.message,
                )
                for defect in counted[:limit]
            ],
        )
    if not counted:
        s.say("no findings" + (f" {' '.join(codes)}; to list those in use: `quadloom findings`" if codes else ""))
    elif not codes:
        s.say("to list the pages: `quadloom findings CODE`; docs/reference/findings.md explains the codes")
    return 1 if fail_found and any(defect.severity != "info" for defect in counted) else 0
