"""The order of hits, their number, and what is gone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from quadloom.asking.result_order import PageFact, ranked
from quadloom.asking.search import search, search_request, why_nothing
from quadloom.asking.things.found import find_things
from quadloom.model.outcome import Outcome, PageRow
from quadloom.model.quads import Quads
from quadloom.model.text import TextDocument
from quadloom.model.url import Url
from quadloom.model.wire import decode, encode
from quadloom.planning.policy.page_row import PageScheduleRow
from quadloom.planning.policy.planner import PageSchedule
from quadloom.stores.protocols.catalog import PageSummary
from quadloom.stores.protocols.text import Hit
from quadloom_lab.memory.quads import MemoryQuads
from quadloom_lab.memory.text import MemoryText

DAY = 86_400.0


class Rows:
    """A catalog with these pages."""

    def __init__(self, *rows: PageRow) -> None:
        self._rows = {row.fingerprint: row for row in rows}

    def summaries(self, fingerprints: Sequence[int]) -> dict[int, PageSummary]:
        rows = {number: self._rows[number] for number in fingerprints if number in self._rows}
        return {number: decode(encode(row), PageSummary) for number, row in rows.items()}


def row(url: str, *, outcome: Outcome = Outcome.NEW, importance: float = 0.0, text: bytes = b"") -> PageRow:
    parsed = Url.parse(url)
    schedule = encode(PageScheduleRow(PageSchedule(), importance=importance))
    return PageRow(
        fingerprint=parsed.fingerprint,
        key=parsed.key,
        href=url,
        host="a.example",
        outcome=outcome,
        schedule=schedule,
        text_digest=text,
    )


def index_of(*documents: TextDocument) -> MemoryText:
    index = MemoryText()
    index.put(documents)
    index.commit()
    return index


def test_importance_counts_within_a_tier() -> None:
    hits = [
        Hit(id="a", score=203.0, tier=1),
        Hit(id="b", score=12.0, kind="html"),
        Hit(id="c", score=11.5, kind="html"),
        Hit(id="d", score=11.9, kind="rss"),
    ]
    facts = {"c": PageFact(importance=30.0)}
    assert [hit.id for hit in ranked(hits, facts, newest=False)] == ["a", "c", "b", "d"]


def test_what_is_new_comes_first_only_if_the_question_asks_for_it() -> None:
    hits = [Hit(id="old", score=12.0, fetched_at=DAY), Hit(id="new", score=10.0, fetched_at=400 * DAY)]
    assert [hit.id for hit in ranked(hits, {}, newest=False)] == ["old", "new"]
    assert [hit.id for hit in ranked(hits, {}, newest=True)] == ["new", "old"]
    index = index_of(
        TextDocument(id="http://a.example/old", title="Gala", body="gala gala gala", fetched_at=DAY),
        TextDocument(id="http://a.example/new", title="Gala", body="gala", fetched_at=400 * DAY),
    )
    assert [hit.id[-3:] for hit in search(index, search_request("gala")).hits] == ["old", "new"]
    assert [hit.id[-3:] for hit in search(index, search_request("latest gala")).hits] == ["new", "old"]


def test_total_facets_and_list_are_the_same_number() -> None:
    """A feed and a data file about a page are documents of their own: folding them into it would need all hits."""
    index = index_of(
        TextDocument(id="http://a.example/x", title="Opening", body="doors open", site="a.example", kind="html"),
        TextDocument(id="http://a.example/feed", title="News", body="opening doors", site="a.example", kind="rss"),
        TextDocument(id="http://a.example/x.ttl", title="Opening", body="doors", site="a.example", kind="turtle"),
    )
    answer = search(index, search_request("doors", facets=True))
    assert answer.total == len(answer.hits) == dict(answer.facets["sites"])["a.example"] == 3
    assert sum(count for _, count in answer.facets["kinds"]) == 3


def test_pages_that_are_gone_are_left_out_unless_asked_for() -> None:
    there, gone = "http://a.example/there", "http://a.example/gone"
    index = index_of(TextDocument(id=there, title="Opera"), TextDocument(id=gone, title="Opera house"))
    catalog = Rows(row(there), row(gone, outcome=Outcome.GONE))
    answer = search(index, search_request("opera"), catalog)
    assert ([hit.id for hit in answer.hits], answer.total) == ([there], 1)
    answer = search(index, search_request("opera", gone=True), catalog)
    assert {hit.id: hit.gone for hit in answer.hits} == {there: False, gone: True}


def test_the_parts_of_a_score_make_the_score() -> None:
    index = index_of(TextDocument(id="http://a.example/", title="Opera", kind="rss"))
    (hit,) = search(index, search_request("opera"), Rows(row("http://a.example/", importance=3.0))).hits
    assert hit.score == pytest.approx(3.0 * (1.0 + 0.1 * 2.0) * 0.7)


def test_a_filter_that_nothing_passes_is_named() -> None:
    index = index_of(TextDocument(id="http://a.example/", title="Opera", site="a.example", language="en"))
    assert why_nothing(index, search_request("opera", site=["nosuch.example"])) == [
        "no page has the site nosuch.example"
    ]
    assert why_nothing(index, search_request("xyz", language=["en"])) == []


def test_a_misspelt_type_is_one_word_and_the_nearest_is_named() -> None:
    index = index_of(TextDocument(id="http://a.example/", title="Opera", types=("http://schema.org/Book",)))
    assert why_nothing(index, search_request("opera", type=["Bok"])) == [
        "no page has the type Bok; did you mean schema:Book?"
    ]
    assert why_nothing(index, search_request("opera", type=["schema:Zebra"])) == ["no page has the type Zebra"]


def test_things_have_the_words_in_their_texts() -> None:
    page = "http://a.example/1"
    name, kind = "<http://schema.org/name>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    lines = [
        f"<{page}#opera> {kind} <http://schema.org/Event>",
        f'<{page}#opera> {name} "Opera by the sea"',
        f'<{page}#hall> {name} "Town hall"',
        f'<{page}#hall> <http://schema.org/description> "Where the opera plays"',
        f'<{page}#bar> {name} "Bar"',
    ]
    quads = MemoryQuads()
    quads.replace(Quads.of(page, "".join(sorted(f"{line} <{page}> .\n" for line in lines)).encode()))
    index = index_of(TextDocument(id=page, title="Tonight", literals="Opera by the sea\nTown hall\nBar"))
    found = find_things(index, quads, search_request("opera"))
    assert [(thing.iri, thing.label) for thing in found] == [
        (f"{page}#opera", "Opera by the sea"),
        (f"{page}#hall", "Town hall"),
    ]
    assert found[0].types == ("http://schema.org/Event",) and found[0].pages == (page,)
    assert "\x02Opera\x03" in found[0].text
    assert [thing.iri for thing in find_things(index, quads, search_request("opera", type=["Event"]))] == []


def test_every_name_of_a_large_file_is_found_and_comes_first() -> None:
    page, number = "http://a.example/all.ttl", 4_000
    names = [f"Pump {at} of the harbour" if at % 2 else f"Valve {at}" for at in range(number)]
    lines = [
        f'<{page}#{at}> <http://www.w3.org/2000/01/rdf-schema#label> "{name}" <{page}> .\n'
        for at, name in enumerate(names)
    ]
    quads = MemoryQuads()
    quads.replace(Quads.of(page, "".join(sorted(lines)).encode()))
    index = index_of(TextDocument(id=page, title="All parts", literals="\n".join(names)))
    for wanted in (7, 1_999, 2_000, 3_998):
        found = find_things(index, quads, search_request(names[wanted]))
        assert (found[0].iri, found[0].label, found.unread) == (f"{page}#{wanted}", names[wanted], ())


def test_pages_that_are_too_large_to_be_read_whole_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadloom.asking.things.found._MOST_STATEMENTS", 3)
    page = "http://a.example/all.ttl"
    lines = [f'<{page}#{at}> <http://schema.org/name> "Valve {at}" <{page}> .\n' for at in range(5)]
    quads = MemoryQuads()
    quads.replace(Quads.of(page, "".join(lines).encode()))
    index = index_of(TextDocument(id=page, literals="Valve 1"))
    assert find_things(index, quads, search_request("valve")).unread == (page,)
