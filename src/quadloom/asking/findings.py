"""Findings of all pages: which defects there are, and how many pages have them.

A page's findings are those of its last visit, so a defect that was fixed disappears when the page is read again.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from quadloom.model.finding import WEIGHT, Finding, Severity


class LocatedDefect(msgspec.Struct, frozen=True):
    """One defect of one page."""

    url: str
    finding: Finding


class Defect(msgspec.Struct, frozen=True):
    """One code: its gravest severity, the number of pages that have it, of findings in all, and the first such page."""

    code: str
    severity: Severity
    pages: int
    findings: int
    example: str
    message: str


def defects(located: Iterator[LocatedDefect]) -> list[Defect]:
    """Counts by code, errors first, then by number of pages. Findings of one page must follow each other."""
    counted: dict[str, Defect] = {}
    last: dict[str, str] = {}
    for item in located:
        code, severity = item.finding.code, item.finding.severity
        so_far = counted.get(code) or Defect(code, severity, 0, 0, item.url, item.finding.message)
        counted[code] = msgspec.structs.replace(
            so_far,
            severity=min(so_far.severity, severity, key=WEIGHT.__getitem__),
            pages=so_far.pages + (last.get(code) != item.url),
            findings=so_far.findings + 1,
        )
        last[code] = item.url
    return sorted(counted.values(), key=lambda defect: (WEIGHT[defect.severity], -defect.pages, defect.code))
