"""`/changed`: pages that are new or changed since a day, the newest first, each with a link to what changed."""

from __future__ import annotations

import msgspec

from quadloom.asking.search import moment
from quadloom.asking.urls import fingerprint_of
from quadloom.model.outcome import PageRow
from quadloom.model.timestamps import day
from quadloom.model.url import site_of
from quadloom.warehouse import Warehouse
from quadloom.web.server.requests import ViewResponse, WebRequest

MOST = 100
_DAY_SECONDS = 86400.0


class ChangedPage(msgspec.Struct, frozen=True, kw_only=True):
    """`before`: time of the visit that its newest change is compared with."""

    url: str
    title: str
    language: str
    site: str
    at: float
    before: float
    is_new: bool
    statements: int


class ChangedView(msgspec.Struct, frozen=True):
    since: float
    pages: list[ChangedPage]
    more: bool


def changed_page(request: WebRequest) -> ViewResponse:
    since = moment(request.text("since") or _midnight(request.site.clock() - _DAY_SECONDS))
    rows = changed_rows(request.warehouse, since, MOST + 1)
    pages = [_changed(request.warehouse, row, since) for row in rows[:MOST]]
    return ViewResponse("changed.html", ChangedView(since, pages, len(rows) > MOST), {"date": day(since)})


def changed_rows(warehouse: Warehouse, since: float, limit: int) -> list[PageRow]:
    """Rows of pages that changed since, or were read for the first time; the newest first."""
    hits = warehouse.search(since=max(since, 1.0), limit=limit).hits
    prints = [found for hit in hits if (found := fingerprint_of(hit.id)) is not None]
    known = warehouse.stores.catalog.pages(prints)
    rows = [known[number] for number in prints if number in known]
    return sorted((row for row in rows if row.changed_at >= since), key=lambda row: -row.changed_at)


def _changed(warehouse: Warehouse, row: PageRow, since: float) -> ChangedPage:
    before = 0.0
    if row.visits > 1 and row.first_seen < since:
        older = [visit.fetched_at for visit in warehouse.stores.catalog.visits.of(row.fingerprint)]
        before = next((at for at in older if at < row.changed_at), 0.0)
    return ChangedPage(
        url=row.href,
        title=row.title,
        language=row.language,
        site=site_of(row.host),
        at=row.changed_at,
        before=before,
        is_new=not before,
        statements=row.quads,
    )


def _midnight(at: float) -> float:
    return at - at % _DAY_SECONDS
