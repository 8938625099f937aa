"""A page's rank and its next visit, as statements that SPARQL can query."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pyoxigraph as ox
import pytest

from quadloom.crawling.ingest.index.describe import _digits, description
from quadloom.documents.descriptions import PAGES
from quadloom.model.outcome import PageRow
from quadloom.model.wire import encode
from quadloom.planning.policy.page_row import PageScheduleRow
from quadloom.planning.policy.planner import PageSchedule
from quadloom.stores.quads.oxigraph import OxigraphQuads

DAY = 86_400.0
RATE = 1.0 / (5.0 * DAY)
PLAN = PageSchedule(weight=2.0, changes_per_second=RATE, log_mean=math.log(RATE), log_variance=0.25, period=3.0 * DAY)
SCHEDULE = PageScheduleRow(PLAN, 1_700_000_000.0, False, 12.3456, 0.25)


def row(schedule: PageScheduleRow = SCHEDULE, number: int = 1, visits: int = 4) -> PageRow:
    return PageRow(
        fingerprint=number,
        key="",
        href=f"https://a.example/{number}",
        host="a.example",
        kind="html",
        visits=visits,
        fetched_at=1_700_000_000.0,
        changed_at=1_600_000_000.0,
        quads_digest=b"q",
        title="A page",
        schedule=encode(schedule),
    )


def stated(data: bytes) -> dict[str, str]:
    return {
        str(quad.predicate.value).removeprefix("urn:quadloom:"): quad.object.value
        for quad in ox.parse(data, ox.RdfFormat.N_QUADS)
        if str(quad.predicate.value).startswith("urn:quadloom:")
    }


def test_all_numbers_are_stated() -> None:
    facts = stated(description(row(), 200, "", schedule=True))
    assert facts["importance"] == "12.3" and facts["usefulness"] == "0.25"
    assert facts["changesPerDay"] == "0.2"
    assert float(facts["changesPerDayLow"]) == pytest.approx(0.2 * math.exp(-1.2816 * 0.5), rel=0.01)
    assert float(facts["changesPerDayHigh"]) == pytest.approx(0.2 * math.exp(1.2816 * 0.5), rel=0.01)
    assert facts["nextVisit"] == "2023-11-17T22:13:20Z"


def test_only_what_is_known_is_stated() -> None:
    plain = description(row(), 200, "", schedule=False)
    everything = {"importance", "usefulness", "changesPerDay", "changesPerDayLow", "changesPerDayHigh", "nextVisit"}
    assert not stated(plain).keys() & everything
    new = stated(description(row(PageScheduleRow(PLAN, 1_700_000_000.0), visits=1), 200, "", schedule=True))
    assert new.keys() & everything == {"nextVisit"}, "not ranked, and nothing is known about its changes"
    parked = stated(description(row(PageScheduleRow(PLAN, 1.7e9, True, 1.0, 1.0)), 200, "", schedule=True))
    assert "nextVisit" not in parked and "importance" in parked
    assert description(row(PageScheduleRow(PageSchedule())), 200, "", schedule=True) == plain


@pytest.mark.parametrize("number", [0.0, 1.0, 0.25, 12.3456, 99999.0, 1e-9, 0.000123456, 0.1, 1234.5, 7e11])
def test_numbers_are_formatted_as_in_the_store(number: float) -> None:
    """Another format of the same number would look like a change at every visit."""
    store = ox.Store()
    text = _digits(number)
    store.load(f'<x:s> <x:p> "{text}"^^<http://www.w3.org/2001/XMLSchema#double> .\n'.encode(), ox.RdfFormat.N_TRIPLES)
    assert [quad.object.value for quad in store] == [text]
    assert float(text) == pytest.approx(number, rel=0.005)


def test_sparql_can_ask_for_them(tmp_path: Path) -> None:
    quads = OxigraphQuads(tmp_path / "quads")
    rows = [row(PageScheduleRow(PLAN, 1.7e9 + n * DAY, False, n + 0.5, 1.0), n) for n in range(20)]
    quads.describe(PAGES, [(item.href, description(item, 200, "", schedule=True)) for item in rows])
    answer = quads.query(
        "PREFIX ql: <urn:quadloom:> SELECT ?page { GRAPH ql:pages { ?page ql:importance ?i ; ql:nextVisit ?v ; "
        "ql:changesPerDayHigh ?high FILTER(?i > 17 && ?high > 0.2 && ?v > NOW() - '" + "P9000D'^^"
        "<http://www.w3.org/2001/XMLSchema#dayTimeDuration>) } } ORDER BY DESC(?i)"
    )
    assert [f"https://a.example/{n}".encode() in answer for n in (19, 18, 17, 16)] == [True, True, True, False]


def test_updating_a_description_costs_little(tmp_path: Path) -> None:
    """A visit without a change moves the next visit, and so changes one or a few statements."""
    quads = OxigraphQuads(tmp_path / "quads")
    best = float("inf")
    for turn in range(6):
        rows = [row(PageScheduleRow(PLAN, 1.7e9 + turn * DAY, False, n + 0.5, 1.0), n) for n in range(500)]
        began = time.process_time()
        quads.describe(PAGES, [(item.href, description(item, 200, "", schedule=True)) for item in rows])
        best = min(best, (time.process_time() - began) / len(rows)) if turn else best
    assert best < 500e-6, f"{best * 1e6:.0f} µs a page"
