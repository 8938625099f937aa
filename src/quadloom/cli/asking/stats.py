"""`quadloom stats` and `quadloom findings`: what the warehouse holds in numbers, and the defects of what was read."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from cyclopts import Parameter

from quadloom.asking.findings import defects
from quadloom.asking.sparql.prefixes import shorten
from quadloom.cli.session import session
from quadloom.warehouse import Warehouse


def stats(*, limit: int = 20) -> None:
    """Count what the warehouse holds: classes, properties, vocabularies, sites, kinds, sizes and change rates.

    Parameters
    ----------
    limit
        number of lines of each list
    """
    s = session()
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
        numbers = warehouse.ask.statistics(limit=limit)
    if s.json:
        s.emit(numbers)
        return
    s.write(f"pages\t{numbers.pages}\nquads\t{numbers.quads}")
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
        for name, found in (("dtds", xml.dtds), ("namespaces", xml.namespaces)):
            for value, count in found:
                s.write(f"{name}\t{value}\t{count}")


def findings(
    *codes: str,
    site: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    limit: int = 1000,
    fail_found: Annotated[bool, Parameter(negative="")] = False,
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
    if s.json:
        for record in located if codes else counted[:limit]:
            s.emit(record)
    elif codes:
        s.table(
            ["page", "severity", "code", "finding"],
            [(item.url, item.finding.severity, item.finding.code, str(item.finding)) for item in located],
        )
    else:
        s.table(
            ["severity", "code", "pages", "findings", "example", "finding"],
            [
                (defect.severity, defect.code, defect.pages, defect.findings, defect.example, defect.message)
                for defect in counted[:limit]
            ],
        )
    if not counted:
        s.say("no findings" + (f" {' '.join(codes)}" if codes else ""))
    elif not codes:
        s.say("to list the pages: `quadloom findings CODE`; docs/reference/findings.md explains the codes")
    return 1 if fail_found and any(defect.severity != "info" for defect in counted) else 0
