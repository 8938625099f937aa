"""The contract of `Catalog`."""

from __future__ import annotations

import pytest
from contract_backends import State
from contract_records import found, page_row
from msgspec.structs import replace

from quadloom.model.finding import Finding
from quadloom.model.outcome import ArchiveRef, FetchedVersion, Outcome, PageRow, Settlement
from quadloom.model.phase import Owed
from quadloom.model.visit import Visit
from quadloom.stores.protocols.catalog import IndexedPage, PageSummary, VisitKey


def visit(number: int, host: str = "a.example", at: float = 1.0) -> Visit:
    d = found(f"http://{host}/{number}")
    return Visit(d.href, d.key, d.host, d.fingerprint, not_before=at, deadline=at + 600)


def settled(v: Visit, outcome: Outcome = Outcome.NEW, **values: object) -> Settlement:
    return Settlement(v, outcome, page_row(v, outcome, **values))


def test_a_page_comes_back_equal(state: State) -> None:
    v = visit(1)
    row = page_row(
        v,
        title="Ümläute",
        archive=ArchiveRef("f", 3, 9),
        findings=(Finding("code", "text"),),
        status=404,
        etag='"e"',
        visits=3,
        via=-5,
    )
    state.catalog.record([Settlement(v, Outcome.NEW, row)], 1.0)
    assert state.catalog.page(v.fingerprint) == row
    assert state.catalog.page(12345) is None
    assert state.catalog.pages([v.fingerprint, 12345]) == {v.fingerprint: row}


def test_a_standing_is_a_part_of_its_row(state: State) -> None:
    rows = [
        page_row(visit(1), Outcome.GONE, kind="html", schedule=b"34"),
        page_row(visit(2), Outcome.NEW, kind="redirect"),
    ]
    state.catalog.record([Settlement(visit(n + 1), row.outcome, row) for n, row in enumerate(rows)], 1.0)
    known = state.catalog.summaries([rows[0].fingerprint, rows[1].fingerprint, 12345])
    assert known == {
        row.fingerprint: PageSummary(
            fingerprint=row.fingerprint,
            outcome=row.outcome,
            kind=row.kind,
            schedule=row.schedule,
        )
        for row in rows
    }
    assert state.catalog.summaries([]) == {}


def test_settlements_without_a_page_are_left_out(state: State) -> None:
    state.catalog.record([Settlement(visit(1), Outcome.DENIED, None)], 1.0)
    assert state.catalog.scan() == []
    assert state.catalog.counts() == {}


def test_history_is_newest_first_and_idempotent(state: State) -> None:
    for at, outcome in ((1.0, Outcome.NEW), (2.0, Outcome.CHANGED), (3.0, Outcome.UNCHANGED)):
        again = settled(visit(1, at=at), outcome, quads=int(at))
        state.catalog.record([again], at)
        state.catalog.record([again], at)
    history = state.catalog.visits.of(visit(1).fingerprint)
    assert [(row.fetched_at, row.outcome, row.quads) for row in history] == [
        (3.0, "unchanged", 3),
        (2.0, "changed", 2),
        (1.0, "new", 1),
    ]
    assert state.catalog.counts()["outcome:unchanged"] == 1


def test_a_late_settlement_does_not_turn_a_page_back(state: State) -> None:
    state.catalog.record([settled(visit(1, at=5.0), title="newer")], 5.0)
    state.catalog.record([settled(visit(1, at=4.0), title="older")], 6.0)
    row = state.catalog.page(visit(1).fingerprint)
    assert row is not None
    assert row.title == "newer"
    assert len(state.catalog.visits.of(row.fingerprint)) == 2


def test_scan_goes_by_fingerprint_and_host(state: State) -> None:
    visits = [visit(n, host=f"h{n % 3}.example") for n in range(30)]
    state.catalog.record([settled(v) for v in visits], 1.0)
    seen: list[PageRow] = []
    while rows := state.catalog.scan(after=seen[-1].fingerprint if seen else -(1 << 63), limit=7):
        seen += rows
    assert [row.fingerprint for row in seen] == sorted(v.fingerprint for v in visits)
    assert len(state.catalog.scan(host="h1.example")) == 10
    assert state.catalog.pages([row.fingerprint for row in seen]) == {row.fingerprint: row for row in seen}


def test_unindexed_is_the_replay_list(state: State) -> None:
    first, second = visit(1, at=1.0), visit(2, at=2.0)
    state.catalog.record([settled(first), settled(second)], 2.0)
    assert [row.fingerprint for row in state.catalog.unindexed(10)] == [first.fingerprint, second.fingerprint]
    assert len(state.catalog.unindexed(1)) == 1
    state.catalog.mark_indexed(
        [IndexedPage(first.fingerprint, b"q", b"t"), IndexedPage(second.fingerprint, b"q", b"old")]
    )
    assert [row.fingerprint for row in state.catalog.unindexed(10)] == [second.fingerprint]
    state.catalog.mark_indexed([IndexedPage(second.fingerprint, b"q", b"t")])
    assert state.catalog.unindexed(10) == []
    gone = settled(visit(1, at=9.0), Outcome.GONE, quads_digest=b"", text_digest=b"")
    state.catalog.record([gone], 9.0)
    (row,) = state.catalog.unindexed(10)
    assert (row.quads_digest, row.indexed_quads) == (b"", b"q")


def test_a_settlement_cannot_claim_to_be_indexed(state: State) -> None:
    state.catalog.record([settled(visit(1), indexed_quads=b"q", indexed_text=b"t")], 1.0)
    assert len(state.catalog.unindexed(10)) == 1


def test_counts_follow_changes(state: State) -> None:
    state.catalog.record([settled(visit(n)) for n in range(3)], 1.0)
    state.catalog.record([settled(visit(0, at=2.0), Outcome.GONE, status=404, kind="")], 2.0)
    assert state.catalog.counts() == {
        "kind:html": 2,
        "kind:unknown": 1,
        "outcome:gone": 1,
        "outcome:new": 2,
        "status:200": 2,
        "status:404": 1,
    }


def test_named_values(state: State) -> None:
    catalog = state.catalog
    assert catalog.values.get("a") is None
    for name in ("robots/b", "robots/a", "robot", "Robots/c", "robots/%"):
        catalog.values.put(name, name.encode())
    catalog.values.put("robots/a", b"new")
    assert catalog.values.get("robots/a") == b"new"
    assert catalog.values.names("robots/") == ["robots/%", "robots/a", "robots/b"]
    catalog.values.put("robots/a", None)
    catalog.values.put("robots/a", None)
    assert catalog.values.names("robots/") == ["robots/%", "robots/b"]


def test_a_transaction_is_all_or_nothing(state: State) -> None:
    with state.catalog.transaction():
        state.catalog.values.put("kept", b"1")
        with state.catalog.transaction():
            state.catalog.record([settled(visit(1))], 1.0)
    with pytest.raises(ValueError, match="stop"), state.catalog.transaction():
        state.catalog.values.put("lost", b"1")
        state.catalog.record([settled(visit(2))], 1.0)
        with state.catalog.transaction():
            raise ValueError("stop")
    assert state.catalog.values.names("") == ["kept"]
    assert len(state.catalog.scan()) == 1
    assert state.catalog.counts()["outcome:new"] == 1


def test_forgotten_visits_leave_the_history_and_the_page_stays(state: State) -> None:
    for at in (1.0, 2.0, 3.0):
        state.catalog.record([settled(visit(1, at=at)), settled(visit(2, at=at))], at)
    key = visit(1).fingerprint
    before, counts = state.catalog.page(key), state.catalog.counts()
    state.catalog.visits.forget([VisitKey(key, 1.0), VisitKey(key, 2.0), VisitKey(key, 99.0), VisitKey(12345, 1.0)])
    assert [row.fetched_at for row in state.catalog.visits.of(key)] == [3.0]
    assert [row.fetched_at for row in state.catalog.visits.of(visit(2).fingerprint)] == [3.0, 2.0, 1.0]
    assert (state.catalog.page(key), state.catalog.counts()) == (before, counts)


def test_repointing_changes_places_and_nothing_else(state: State) -> None:
    old, new, other = ArchiveRef("1", 10, 5), ArchiveRef("2", 0, 5), ArchiveRef("1", 15, 5)
    first, second = visit(1), visit(2)
    state.catalog.record([settled(visit(1, at=1.0), archive=other)], 1.0)
    state.catalog.record([settled(visit(1, at=2.0), archive=old, title="kept")], 2.0)
    state.catalog.record([settled(visit(1, at=3.0), archive=old, title="kept"), settled(second, archive=None)], 3.0)
    state.catalog.mark_indexed([IndexedPage(first.fingerprint, b"q", b"t")])
    before = state.catalog.page(first.fingerprint)
    assert before is not None
    with pytest.raises(RuntimeError), state.catalog.transaction():
        state.catalog.repoint({old: new}, [first.fingerprint])
        raise RuntimeError("crash")
    assert state.catalog.page(first.fingerprint) == before
    state.catalog.repoint({old: new}, [first.fingerprint, second.fingerprint, 12345])
    assert state.catalog.page(first.fingerprint) == replace(before, archive=new)
    assert [row.archive for row in state.catalog.visits.of(first.fingerprint)] == [new, new, other]
    assert [row.archive for row in state.catalog.visits.of(second.fingerprint)] == [None]


def test_a_row_is_amended_between_visits_only(state: State) -> None:
    v = visit(1)
    state.catalog.record([settled(v, quads_digest=b"q")], 1.0)
    state.catalog.mark_indexed([IndexedPage(v.fingerprint, b"q", b"")])
    row = state.catalog.page(v.fingerprint)
    assert row is not None
    state.catalog.amend([replace(row, schedule=b"plan", indexed_quads=b"claimed"), page_row(visit(2))])
    amended = state.catalog.page(v.fingerprint)
    assert amended == replace(row, schedule=b"plan"), "and what the indexes have is theirs to say"
    assert state.catalog.page(visit(2).fingerprint) is None
    assert len(state.catalog.visits.of(v.fingerprint)) == 1
    state.catalog.record([settled(visit(1, at=5.0))], 5.0)
    newer = state.catalog.page(v.fingerprint)
    state.catalog.amend([amended])
    assert state.catalog.page(v.fingerprint) == newer, "it was visited since"


ALL_OWED = Owed.DETECT | Owed.TRANSFORM | Owed.INDEX | Owed.EXTRACT


def test_what_a_page_owes_comes_back_and_a_settlement_replaces_it(state: State) -> None:
    v = visit(1)
    waiting = FetchedVersion(5.0, ArchiveRef("f", 1, 2))
    fetched = page_row(v, Outcome.FETCHED, owed=ALL_OWED, fetched=waiting, quads_digest=b"", text_digest=b"")
    state.catalog.record([Settlement(v, Outcome.FETCHED, fetched)], 1.0)
    assert state.catalog.page(v.fingerprint) == fetched
    assert fetched.state == "fetched"
    assert state.catalog.visits.of(v.fingerprint) == []  # it joins the history when it is transformed
    state.catalog.record([settled(v, owed=Owed.INDEX | Owed.EXTRACT)], 2.0)
    row = state.catalog.page(v.fingerprint)
    assert row is not None
    assert (row.state, row.fetched) == ("transformed", None)
    assert len(state.catalog.visits.of(v.fingerprint)) == 1


def test_pages_are_leased_once_and_in_the_order_of_the_phases(state: State) -> None:
    catalog = state.catalog
    debts = (ALL_OWED, ALL_OWED & ~Owed.DETECT, Owed.INDEX | Owed.EXTRACT, Owed.EXTRACT, Owed.NOTHING)
    for number, owed in enumerate(debts):
        catalog.record([settled(visit(number, at=10.0 - number), owed=owed)], 1.0)
    keys = [visit(number).fingerprint for number in range(5)]
    assert catalog.backlog.counts() == {Owed.DETECT: 1, Owed.TRANSFORM: 2, Owed.INDEX: 3, Owed.EXTRACT: 4}
    assert [row.fingerprint for row in catalog.backlog.lease(Owed.TRANSFORM, 1, "a")] in ([keys[1]], [keys[0]])
    assert len(catalog.backlog.lease(Owed.TRANSFORM, 9, "b")) == 1
    assert catalog.backlog.lease(Owed.TRANSFORM, 9, "b") == []
    assert catalog.backlog.lease(Owed.DETECT, 9, "b") == []  # somebody works on it
    assert [row.fingerprint for row in catalog.backlog.lease(Owed.INDEX, 9, "a")] == [keys[2]]
    assert [row.fingerprint for row in catalog.backlog.lease(Owed.EXTRACT, 9, "a")] == [keys[3]]
    assert catalog.backlog.owners() == ["a", "b"]
    catalog.backlog.release("a", keys)  # not those of b
    assert [row.fingerprint for row in catalog.backlog.lease(Owed.EXTRACT, 9, "c")] == [keys[3]]
    catalog.backlog.release("b")
    assert len(catalog.backlog.lease(Owed.TRANSFORM, 9, "c")) == 2


def test_a_debt_is_paid_for_the_visit_that_it_belongs_to(state: State) -> None:
    catalog, v = state.catalog, visit(1)
    catalog.record([settled(v, owed=Owed.INDEX | Owed.EXTRACT)], 1.0)
    catalog.backlog.remove(Owed.EXTRACT, [VisitKey(v.fingerprint, v.not_before + 1.0)])
    catalog.mark_indexed([IndexedPage(v.fingerprint, b"other", b"t")])
    assert catalog.backlog.counts() == {Owed.INDEX: 1, Owed.EXTRACT: 1}
    catalog.backlog.remove(Owed.EXTRACT, [VisitKey(v.fingerprint, v.not_before)])
    catalog.mark_indexed([IndexedPage(v.fingerprint, b"q", b"t")])
    assert catalog.backlog.counts() == {}


def test_every_page_with_content_can_owe_a_phase_again(state: State) -> None:
    catalog = state.catalog
    catalog.record([settled(visit(1)), settled(visit(2, "b.example"))], 1.0)
    catalog.record([settled(visit(3), Outcome.FAILED, quads_digest=b"", text_digest=b"")], 1.0)
    catalog.record([settled(visit(4), owed=ALL_OWED)], 1.0)
    assert catalog.backlog.add(Owed.EXTRACT, host="b.example") == 1
    assert catalog.backlog.add(Owed.EXTRACT) == 2
    assert {row.fingerprint for row in catalog.backlog.lease(Owed.EXTRACT, 9, "a")} == {
        visit(1).fingerprint,
        visit(2, "b.example").fingerprint,
    }


def test_a_row_that_waits_in_the_archive_is_repointed(state: State) -> None:
    v = visit(1)
    old, new = ArchiveRef("old", 1, 2), ArchiveRef("new", 3, 2)
    row = page_row(v, Outcome.FETCHED, owed=ALL_OWED, fetched=FetchedVersion(5.0, old))
    state.catalog.record([Settlement(v, Outcome.FETCHED, row)], 1.0)
    state.catalog.repoint({old: new}, [v.fingerprint])
    assert state.catalog.page(v.fingerprint) == replace(row, fetched=FetchedVersion(5.0, new))


def test_a_value_that_is_locked_to_change_it_reads_as_otherwise(state: State) -> None:
    with state.catalog.transaction():
        assert state.catalog.values.get("seeds", lock=True) is None
        state.catalog.values.put("seeds", b"one")
        assert state.catalog.values.get("seeds", lock=True) == b"one"
    assert state.catalog.values.get("seeds") == b"one"


def test_forgotten_pages_leave_nothing(state: State) -> None:
    catalog = state.catalog
    catalog.record([settled(visit(1)), settled(visit(2), Outcome.CHANGED)], 1.0)
    catalog.record([settled(visit(1, at=2.0), owed=Owed.TRANSFORM)], 2.0)
    catalog.backlog.lease(Owed.TRANSFORM, 5, "worker")
    catalog.forget([visit(1).fingerprint, 12345])
    assert catalog.page(visit(1).fingerprint) is None and not catalog.visits.of(visit(1).fingerprint)
    assert catalog.counts() == {"kind:html": 1, "outcome:changed": 1, "status:200": 1}
    assert not catalog.backlog.owners() and len(catalog.visits.of(visit(2).fingerprint)) == 1
    catalog.forget([])
