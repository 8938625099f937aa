"""A page that comes again byte for byte is settled without being transformed, and only then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from quadloom.crawling.ingest.intake import Ingest
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.page import Page
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.settings import IndexSettings, Settings
from quadloom.warehouse import Warehouse

HREF = "http://site.example/page"
BODY = b"<html><title>A page</title><p>Words of the page."
SETTINGS = Settings()
HTML = (("content-type", "text/html"),)


class Visits:
    """Visits of one page through real workers. `transformed` counts the pages that reached one."""

    def __init__(self, warehouse: Warehouse, settings: Settings = SETTINGS) -> None:
        self.stores = warehouse.stores
        self.transformed = 0
        self.ingest = Ingest(self.stores, settings, workers=1)
        self._counted = 0

    def visit(
        self, at: float, body: bytes = BODY, headers: tuple[tuple[str, str], ...] = (), *, truncated: bool = False
    ) -> Settlement:
        """Until it is indexed, so that the next visit finds a complete page."""
        url = Url.parse(HREF)
        known = self.stores.catalog.page(url.fingerprint) is not None
        visit = Visit(url.href, url.key, url.host, url.fingerprint, known=known, deadline=at + 600)
        page = Page(HREF, HREF, 200, HTML + headers, body, at, 0.1, truncated=truncated)
        self.ingest.submit(visit, page, HostPace(url.host, "192.0.2.1", 1.0, at + 1.0))
        (settled,) = self.ingest.drain()
        self.ingest.finish_indexing()
        self.transformed, self._counted = self.ingest.counts.transformed - self._counted, self.ingest.counts.transformed
        return settled

    @property
    def row(self) -> PageRow:
        row = self.stores.catalog.page(Url.parse(HREF).fingerprint)
        assert row is not None
        return row


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "warehouse", settings=SETTINGS) as opened:
        yield opened


def test_the_same_bytes_are_not_transformed_again(warehouse: Warehouse) -> None:
    visits = Visits(warehouse)
    visits.visit(1.7e9, headers=(("date", "Monday"), ("etag", '"1"')))
    first = visits.row
    settled = visits.visit(1.7e9 + 60, headers=(("date", "Tuesday"), ("etag", '"2"')))
    assert (settled.outcome, visits.transformed) == (Outcome.UNCHANGED, 0)
    again = visits.row
    assert (again.visits, again.status, again.etag, again.fetched_at) == (2, 200, '"2"', 1.7e9 + 60)
    assert again == replace(
        first, outcome=Outcome.UNCHANGED, visits=2, etag='"2"', fetched_at=1.7e9 + 60, schedule=again.schedule
    )
    history = visits.stores.catalog.visits.of(first.fingerprint)
    assert [visit.archive for visit in history] == [first.archive] * 2, "no second copy in the archive"
    visits.ingest.close()
    assert warehouse.maintenance.verify().drifts == ()


@pytest.mark.parametrize("difference", ["body", "x-robots-tag", "link", "cut"])
def test_what_may_say_something_else_is_transformed(warehouse: Warehouse, difference: str) -> None:
    visits = Visits(warehouse)
    visits.visit(1.7e9)
    if difference == "body":
        settled = visits.visit(1.7e9 + 60, BODY + b"<p>More.")
        assert settled.outcome is Outcome.CHANGED
    elif difference == "x-robots-tag":
        settled = visits.visit(1.7e9 + 60, headers=(("x-robots-tag", "noindex"),))
        assert not visits.row.quads_digest, "a page that wants to leave the index leaves it"
    elif difference == "link":
        visits.visit(1.7e9 + 60, headers=(("link", '</feed>; rel="alternate"; type="application/rss+xml"'),))
    else:
        visits.visit(1.7e9 + 60, truncated=True)
    assert visits.transformed == 1
    visits.ingest.close()


def test_other_settings_or_another_scope_transform_it_again(warehouse: Warehouse) -> None:
    visits = Visits(warehouse)
    visits.visit(1.7e9)
    visits.stores.catalog.values.put("scope-judged-by", b"a wider scope")
    visits.ingest.forget_links()
    visits.visit(1.7e9 + 60)
    assert visits.transformed == 1
    visits.visit(1.7e9 + 120)
    assert visits.transformed == 0
    visits.ingest.close()
    others = Visits(warehouse, replace(SETTINGS, index=IndexSettings(links="none")))
    others.visit(1.7e9 + 180)
    assert others.transformed == 1
    others.ingest.close()
