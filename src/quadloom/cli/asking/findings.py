"""`quadloom findings`: what is wrong with the data of the pages that were read, and where."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from cyclopts import Parameter

from quadloom.asking.findings import defects
from quadloom.cli.session import session
from quadloom.warehouse import Warehouse


def findings(
    *codes: str,
    site: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    limit: int = 1000,
    fail_found: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Count the defects in what was read, by code; with codes, list the pages that have them.

    Parameters
    ----------
    codes
        list every page with such a finding, such as jsonld-invalid; without any, all codes are counted
    site
        only pages of this registered domain or host; may be repeated
    limit
        lines printed
    fail_found
        exit with 1 where an error or a warning is among them, for scripts
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
            ["severity", "code", "pages", "findings", "for instance", "finding"],
            [
                (defect.severity, defect.code, defect.pages, defect.findings, defect.example, defect.message)
                for defect in counted[:limit]
            ],
        )
    if not counted:
        s.say("no findings" + (f" {' '.join(codes)}" if codes else ""))
    elif not codes:
        s.say("`quadloom findings CODE` lists the pages; docs/reference/findings.md tells what each code means")
    return 1 if fail_found and any(defect.severity != "info" for defect in counted) else 0
