"""A visit that finds nothing new writes nothing to the indexes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from quadloom.crawling.ingest.intake import Ingest
from quadloom.documents.descriptions import PAGES
from quadloom.documents.pipeline import process_page
from quadloom.model.outcome import HostPace, Outcome
from quadloom.model.page import Page
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.model.wire import decode
from quadloom.planning.policy.page_row import PageScheduleRow
from quadloom.planning.refresh.scheduler import RefreshScheduler
from quadloom.settings import Settings
from quadloom.stores.archive.warc_record import encode
from quadloom.stores.protocols.settlement import FinishedVisit
from quadloom.stores.quads.oxigraph import OxigraphQuads
from quadloom.warehouse import Warehouse

HREF = "http://site.example/page"
DAY = 86_400.0
SETTINGS = Settings()


class OnePage:
    """A page, and what was described in the store since it was opened."""

    def __init__(self, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stores = warehouse.stores
        self.described: list[str] = []
        describe = OxigraphQuads.describe

        def counted(store: OxigraphQuads, graph: str, descriptions: Sequence[tuple[str, bytes]]) -> None:
            self.described += [subject for subject, _ in descriptions]
            describe(store, graph, descriptions)

        monkeypatch.setattr(OxigraphQuads, "describe", counted)

    def visit(self, at: float, *, status: int = 304, title: str = "A page") -> Outcome:
        body = f"<html><title>{title}</title><h1>Words</h1>".encode() if status == 200 else b""
        page = Page(HREF, HREF, status, (("content-type", "text/html"),), body, at, 0.1)
        url = Url.parse(HREF)
        known = self.stores.catalog.page(url.fingerprint) is not None
        visit = Visit(url.href, url.key, url.host, url.fingerprint, known=known, deadline=at + 600)
        pace = HostPace(url.host, "192.0.2.1", 1.0, at + 1.0)
        finished = FinishedVisit(visit, page, pace)
        if status == 200:
            finished = FinishedVisit(visit, page, pace, process_page(page, visit, SETTINGS, ()), encode(page))
        scheduler = RefreshScheduler(self.stores.catalog, self.stores.frontier, SETTINGS)
        ingest = Ingest(self.stores, SETTINGS, hooks=[scheduler])
        (settled,) = ingest.settle([finished], at)
        ingest.close()
        scheduler.close()
        return settled.outcome

    @property
    def schedule(self) -> PageScheduleRow:
        row = self.stores.catalog.page(Url.parse(HREF).fingerprint)
        assert row is not None
        return decode(row.schedule, PageScheduleRow)

    def rate(self) -> float:
        (line,) = self.stores.quads.match(f"<{HREF}>", "<urn:quadloom:changesPerDay>", None, f"<{PAGES}>")
        return float(line.split('"')[1]) / DAY


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnePage]:
    with Warehouse.open(tmp_path / "warehouse", settings=SETTINGS) as warehouse:
        yield OnePage(warehouse, monkeypatch)


@pytest.mark.parametrize("status", [304, 200])
def test_an_unchanged_visit_writes_no_statements(page: OnePage, status: int) -> None:
    page.visit(1.7e9, status=200)
    before = sorted(page.stores.quads.match(None, None, None, None))
    next_visit = page.schedule.next_visit
    for hour in range(1, 4):
        assert page.visit(1.7e9 + hour * 3600.0, status=status) is Outcome.UNCHANGED
    assert page.described == []
    assert sorted(page.stores.quads.match(None, None, None, None)) == before
    assert page.schedule.next_visit != next_visit, "the schedule itself goes on"


def test_a_rate_that_has_halved_is_described_and_no_other(page: OnePage) -> None:
    page.visit(1.7e9, status=200)
    visits, at = 12, 1.7e9
    for turn in range(visits):
        at += 2.0**turn * DAY
        page.visit(at)
        described, known = page.schedule.described_rate, page.schedule.plan.changes_per_second
        assert 0.5 * described < known < 2.0 * described
    assert 1 <= len(page.described) < visits
    assert page.rate() == pytest.approx(page.schedule.described_rate, rel=0.01)


def test_a_new_title_is_described(page: OnePage) -> None:
    page.visit(1.7e9, status=200)
    page.visit(1.7e9 + DAY, status=200, title="Another title")
    titles = page.stores.quads.match(f"<{HREF}>", "<http://purl.org/dc/terms/title>", None, f"<{PAGES}>")
    assert ["Another title" in line for line in titles] == [True]
