"""The contract of `Outbox`."""

from __future__ import annotations

import pytest
from contract_backends import State
from msgspec.structs import replace

from quadloom.model.event import Notice, NoticeKind
from quadloom.model.outcome import ArchiveRef
from quadloom.stores.protocols.outbox import Delivery


def notice(
    url: str = "http://a.example/", subscription: str = "s", at: float = 10.0, kind: NoticeKind = "new"
) -> Notice:
    return Notice(at=at, subscription=subscription, kind=kind, url=url)


def ids(state: State, since: int = 0, subscription: str = "") -> list[int]:
    return [found.id for found in state.outbox.since(since, subscription=subscription)]


def test_a_notice_comes_back_equal_but_for_its_id(state: State) -> None:
    page = Notice(
        at=1.5,
        subscription="s",
        kind="changed",
        url="http://a.example/ü",
        title="Ümläute",
        before=ArchiveRef("f", 3, 9),
        after=ArchiveRef("g", 0, 7),
    )
    rows = Notice(at=2.5, subscription="q", kind="result", added=("a\tb", "c"), removed=("d",), more=7)
    state.outbox.append([replace(page, id=99), rows])
    found = state.outbox.since(0)
    assert found == [replace(page, id=found[0].id), replace(rows, id=found[1].id)]
    assert 0 < found[0].id < found[1].id == state.outbox.last_id()


def test_since_goes_on_after_an_id_in_order(state: State) -> None:
    assert state.outbox.last_id() == 0 and state.outbox.since(0) == []
    for number in range(25):
        state.outbox.append([notice(f"http://a.example/{number}", "even" if number % 2 == 0 else "odd")])
    seen: list[Notice] = []
    while found := state.outbox.since(seen[-1].id if seen else 0, limit=4):
        seen += found
    assert [found.url for found in seen] == [f"http://a.example/{number}" for number in range(25)]
    assert [found.id for found in seen] == sorted({found.id for found in seen})
    assert len(ids(state, subscription="odd")) == 12
    assert ids(state, since=seen[3].id, subscription="even") == [found.id for found in seen[4::2]]
    assert ids(state, subscription="nobody") == []
    assert state.outbox.since(state.outbox.last_id()) == []


def test_ids_of_a_lost_database_can_be_skipped(state: State) -> None:
    state.outbox.skip_ids(40)
    state.outbox.append([notice()])
    state.outbox.skip_ids(7)
    state.outbox.append([notice()])
    assert ids(state) == [41, 42]


def test_ids_are_never_used_again(state: State) -> None:
    state.outbox.append([notice(), notice()])
    last = state.outbox.last_id()
    assert state.outbox.trim(11.0) == 2
    assert state.outbox.last_id() == last, "what was trimmed still counts"
    state.crash(0.0)
    assert state.outbox.last_id() == last
    state.outbox.append([notice()])
    (fresh,) = ids(state)
    assert fresh > last


def test_what_was_appended_survives_a_crash(state: State) -> None:
    state.outbox.append([notice("http://a.example/1"), notice("http://a.example/2")])
    state.outbox.put_delivery(Delivery(subscription="s", delivered=1, attempts=2, retry_at=5.0, error="HTTP 500"))
    before = state.outbox.since(0)
    state.crash(0.0)
    assert state.outbox.since(0) == before
    assert state.outbox.delivery("s").error == "HTTP 500"


def test_a_notice_and_its_cause_are_one_commit(state: State) -> None:
    with state.catalog.transaction():
        state.outbox.append([notice("http://a.example/kept")])
        state.catalog.values.put("kept", b"1")
    kept = state.outbox.since(0)
    with pytest.raises(ValueError, match="stop"), state.catalog.transaction():
        state.outbox.append([notice("http://a.example/lost")])
        state.outbox.put_delivery(Delivery(subscription="s", delivered=7))
        state.outbox.trim(100.0)
        state.catalog.values.put("lost", b"1")
        raise ValueError("stop")
    assert state.outbox.since(0) == kept and [found.url for found in kept] == ["http://a.example/kept"]
    assert state.outbox.delivery("s") == Delivery(subscription="s")
    assert state.catalog.values.names("") == ["kept"]


def test_an_inner_failure_undoes_notices_of_the_outer_block(state: State) -> None:
    with pytest.raises(ValueError, match="stop"), state.catalog.transaction():
        state.outbox.append([notice()])
        with state.catalog.transaction():
            raise ValueError("stop")
    assert state.outbox.since(0) == []
    state.outbox.append([notice()])
    assert len(ids(state)) == 1


def test_trim_drops_what_is_older_and_nothing_else(state: State) -> None:
    state.outbox.append([notice(at=float(at), subscription=name) for at in range(10) for name in ("a", "b")])
    assert state.outbox.trim(0.0) == 0
    assert state.outbox.trim(4.0) == 8
    assert [found.at for found in state.outbox.since(0, subscription="a")] == [4.0, 5.0, 6.0, 7.0, 8.0, 9.0]


def test_trim_leaves_what_a_receiver_waits_for(state: State) -> None:
    state.outbox.append([notice(at=float(at), subscription=name) for at in range(6) for name in ("behind", "read")])
    taken = ids(state, subscription="behind")[2]
    assert state.outbox.trim(5.0, waiting={"behind": taken, "absent": 0}) == 3 + 5
    assert [found.at for found in state.outbox.since(0, subscription="behind")] == [3.0, 4.0, 5.0]
    assert [found.at for found in state.outbox.since(0, subscription="read")] == [5.0]


def test_a_delivery_is_of_one_subscription(state: State) -> None:
    assert state.outbox.delivery("s") == Delivery(subscription="s")
    first = Delivery(subscription="s", delivered=3, attempts=2, retry_at=99.5, error="HTTP 503", lost=4)
    state.outbox.put_delivery(first)
    state.outbox.put_delivery(Delivery(subscription="t", delivered=1))
    assert state.outbox.delivery("s") == first
    state.outbox.put_delivery(Delivery(subscription="s", delivered=4))
    assert state.outbox.delivery("s") == Delivery(subscription="s", delivered=4)
    state.outbox.forget_delivery("s")
    state.outbox.forget_delivery("s")
    assert state.outbox.delivery("s") == Delivery(subscription="s")
    assert state.outbox.delivery("t").delivered == 1


def test_repointing_changes_places_and_nothing_else(state: State) -> None:
    old, new, other = ArchiveRef("1", 10, 5), ArchiveRef("2", 0, 5), ArchiveRef("1", 15, 5)
    state.outbox.append(
        [
            replace(notice("http://a.example/1"), before=old, after=other),
            replace(notice("http://a.example/2"), before=None, after=old),
            replace(notice("http://a.example/3"), before=other),
        ]
    )
    before = state.outbox.since(0)
    with pytest.raises(RuntimeError), state.catalog.transaction():
        state.outbox.repoint({old: new})
        raise RuntimeError("crash")
    assert state.outbox.since(0) == before
    state.outbox.repoint({old: new})
    assert state.outbox.since(0) == [
        replace(before[0], before=new),
        replace(before[1], after=new),
        before[2],
    ]


def test_notices_are_edited_in_place(state: State) -> None:
    state.outbox.append([notice("http://a.example/1"), notice("http://a.example/2"), notice("http://a.example/3")])
    before = ids(state)
    changes = {"http://a.example/1": None, "http://a.example/2": "shorter"}

    def change(one: Notice) -> Notice | None:
        title = changes.get(one.url, "")
        return None if title is None else replace(one, title=title)

    assert state.outbox.edit(change) == 2
    assert [(found.id, found.title) for found in state.outbox.since(0)] == [(before[1], "shorter"), (before[2], "")]
    assert state.outbox.edit(lambda one: one) == 0
    assert state.outbox.last_id() == before[2]
