"""`/changed`: what is new, changed and gone since a time or the last crawl, with the values before and after."""

from __future__ import annotations

from quadloom.asking.changes.since import changed_rows as rows_changed
from quadloom.asking.changes.since import changes_since
from quadloom.asking.search import moment
from quadloom.crawling.run.run_history import last_crawl_began
from quadloom.model.outcome import PageRow
from quadloom.model.timestamps import day
from quadloom.warehouse import Warehouse
from quadloom.web.server.requests import ViewResponse, WebRequest

MOST_LISTED = 100
_DAY_SECONDS = 86400.0
_CHOICES = (
    ("last-crawl", "since the last crawl"), ("1h", "in the last hour"), ("1d", "in the last day"),
    ("7d", "in the last week"),
)  # fmt: skip


def changed_page(request: WebRequest) -> ViewResponse:
    text = request.text("since").strip()
    since = since_of(request.warehouse, text, request.site.clock())
    view = changes_since(request.warehouse.stores, request.warehouse.ask.versions, since, site=request.text("site"))
    chosen = request.text("group")
    extra: dict[str, object] = {
        "date": day(since),
        "choices": _CHOICES,
        "given": text,
        "site": request.text("site"),
        "chosen": chosen,
        "listed": [page for page in view.pages if not chosen or f"{page.site}{page.template}" == chosen][:MOST_LISTED],
    }
    return ViewResponse("changed.html", view, extra)


def since_of(warehouse: Warehouse, text: str, now: float) -> float:
    """`last-crawl`, a day, a time or so long ago (`1h`); without a text, yesterday."""
    if text == "last-crawl":
        return last_crawl_began(warehouse.stores.catalog)
    return moment(text, now) if text else now - now % _DAY_SECONDS - _DAY_SECONDS


def changed_rows(warehouse: Warehouse, since: float, limit: int) -> list[PageRow]:
    """Rows of pages that changed since, were read for the first time or are gone; the newest first."""
    return rows_changed(warehouse.stores, since, limit)
