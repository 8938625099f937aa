"""Findings of all pages: which defects there are, how many pages have them, and which pages.

An audit reads every row of the catalog once, in slices; only the counts are held in memory. A page's findings are those
of its last visit, so a defect that was fixed is gone from here as soon as the page has been read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from quadloom.model.finding import WEIGHT, Finding, Severity
from quadloom.model.url import belongs_to
from quadloom.stores.protocols.catalog import Catalog

_SLICE = 1000


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


def findings(catalog: Catalog, *, codes: Collection[str] = (), sites: Collection[str] = ()) -> Iterator[LocatedDefect]:
    """Every finding, page by page. `codes`, `sites` (registered domains or hosts): empty = all."""
    after = -(1 << 63)
    while rows := catalog.scan(after=after, limit=_SLICE):
        after = rows[-1].fingerprint
        for row in rows:
            if row.findings and belongs_to(row.host, sites):
                yield from (
                    LocatedDefect(row.href, found) for found in row.findings if not codes or found.code in codes
                )


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
