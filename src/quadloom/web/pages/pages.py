"""`/pages`: pages by outcome, status, kind or finding, so that every count of the monitor leads to what it counts.

The catalog is read in slices, at most `LOOKED_AT` pages at a time; the next part is a link away.
"""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec

from quadloom.model.outcome import PageRow
from quadloom.model.url import site_of
from quadloom.web.server.requests import ViewResponse, WebRequest

LOOKED_AT = 10_000
_SLICE = 1000
_MAX_LISTED = 100
_FILTERS = ("outcome", "status", "kind", "finding", "site")
_FIRST = -(1 << 63)


class PageLine(msgspec.Struct, frozen=True, kw_only=True):
    """`reason`: of a failure or denial, or the message of the finding that was asked for."""

    url: str
    title: str
    status: int
    outcome: str
    at: float
    reason: str


class PagesView(msgspec.Struct, frozen=True, kw_only=True):
    """`after`: where the next part begins; 0 = all pages were looked at."""

    filters: dict[str, str]
    pages: list[PageLine]
    looked_at: int
    after: int


def pages_page(request: WebRequest) -> ViewResponse:
    filters = {name: request.text(name).strip() for name in _FILTERS if request.text(name).strip()}
    after = request.number("after", _FIRST, low=_FIRST, high=1 << 62)
    catalog = request.warehouse.stores.catalog
    found: list[PageLine] = []
    looked_at = 0
    while len(found) < _MAX_LISTED and looked_at < LOOKED_AT:
        rows = catalog.scan(after=after, limit=_SLICE)
        for row in rows:
            after, looked_at = row.fingerprint, looked_at + 1
            if _fits(row, filters):
                found.append(_line(row, filters.get("finding", "")))
                if len(found) == _MAX_LISTED:
                    break
        if len(rows) < _SLICE and len(found) < _MAX_LISTED:
            after = 0
            break
    view = PagesView(filters=filters, pages=found, looked_at=looked_at, after=after)
    more = "/pages?" + urlencode({**filters, "after": after}) if after else ""
    return ViewResponse("pages.html", view, {"more": more})


def _fits(row: PageRow, filters: dict[str, str]) -> bool:
    for name, wanted in filters.items():
        match name:
            case "finding":
                fits = any(wanted in (finding.code, finding.severity) for finding in row.findings)
            case "site":
                fits = wanted in (row.host, site_of(row.host))
            case "status":
                fits = str(row.status) == wanted
            case "kind":
                fits = row.kind == wanted
            case _:
                fits = str(row.outcome) == wanted
        if not fits:
            return False
    return True


def _line(row: PageRow, finding: str) -> PageLine:
    messages = [found.message for found in row.findings if finding in (found.code, found.severity)]
    return PageLine(
        url=row.href,
        title=row.title,
        status=row.status,
        outcome=str(row.outcome),
        at=row.fetched_at,
        reason=messages[0] if finding and messages else row.reason,
    )
