"""Archived pages transformed again, by workers that may be killed: for verify and rebuild."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from quadloom.crawling.workers.batch import TransformPool
from quadloom.maintenance.archive_order import ArchivedPage
from quadloom.model.outcome import PageRow
from quadloom.model.page import Page
from quadloom.model.page_result import PageResult
from quadloom.model.visit import Visit
from quadloom.settings import Settings


class ReprocessedPage(msgspec.Struct, frozen=True):
    """A page transformed again; `result` is None if it has no readable copy or is quarantined."""

    row: PageRow
    page: Page | None
    result: PageResult | None


def reprocessed(settings: Settings, items: Iterable[ArchivedPage]) -> Iterator[ReprocessedPage]:
    """In the order of the items."""
    with TransformPool(settings) as pool:
        for item, done in pool.each(items, _task):
            result = done.answer.with_links() if done is not None and done.answer is not None else None
            yield ReprocessedPage(item.row, item.page, result)


def _task(item: ArchivedPage) -> tuple[Visit, Page] | None:
    row, page = item.row, item.page
    if page is None or row.kind == "quarantined":
        return None
    return Visit(row.href, row.key, row.host, row.fingerprint, row.depth, known=True), page
