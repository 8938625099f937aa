"""The contract of `Cluster`, and of the part of `ShardHeartbeat` that answers it."""

from __future__ import annotations

import time

import pytest
from contract_backends import Machines

from quadloom.errors import UsageError
from quadloom.model.event import Event, EventKind

pytestmark = pytest.mark.cluster


def test_every_machine_sees_all_workers(machines: Machines) -> None:
    machines.worker("one").renew(b"about one")
    machines.worker("two").renew(b"about two")
    machines.kill("two")
    rows = {row.owner.partition(":")[0]: row for row in machines.cluster.workers()}
    assert {name: (row.is_alive, row.record) for name, row in rows.items()} == {
        "one": (True, b"about one"),
        "two": (False, b"about two"),
    }
    assert abs(rows["one"].started - time.time()) < 60.0


def test_a_record_stays_until_another_one_replaces_it(machines: Machines) -> None:
    worker = machines.worker("one")
    worker.renew(b"first")
    worker.renew()
    assert [row.record for row in machines.cluster.workers()] == [b"first"]


def test_a_request_reaches_the_workers_that_it_names(machines: Machines) -> None:
    one, two = machines.worker("one"), machines.worker("two")
    one.renew(b"1")
    two.renew(b"2")
    everybody = machines.cluster.send(b"all")
    only = machines.cluster.send(b"only two", worker="two")
    assert (everybody.workers, only.workers) == (["one", "two"], ["two"])
    assert everybody.id < only.id == one.last_request()
    assert [item.request for item in one.requests(0)] == [b"all"]
    assert [item.request for item in two.requests(0)] == [b"all", b"only two"]
    assert [item.request for item in two.requests(everybody.id)] == [b"only two"]
    assert two.news(everybody.id).requests and not two.news(only.id).requests


def test_a_dead_worker_need_not_answer(machines: Machines) -> None:
    machines.worker("one").renew(b"1")
    machines.worker("two").renew(b"2")
    machines.kill("one")
    assert machines.cluster.send(b"all").workers == ["two"]


def test_the_last_answer_counts(machines: Machines) -> None:
    worker = machines.worker("one")
    worker.renew(b"1")
    sent = machines.cluster.send(b"all")
    assert machines.cluster.answers(sent.id) == {}
    worker.answer(sent.id, b"no")
    worker.answer(sent.id, b"yes")
    assert machines.cluster.answers(sent.id) == {"one": b"yes"}


def test_later_workers_get_what_is_retained(machines: Machines) -> None:
    machines.worker("one").renew(b"1")
    machines.cluster.send(b"pause", retain="paused")
    machines.cluster.send(b"faster", retain="pace")
    machines.cluster.send(b"once")
    machines.cluster.send(b"resume", retain="paused")
    late = machines.worker("late")
    late.renew(b"2")
    assert [item.request for item in late.requests(None)] == [b"faster", b"resume"]
    assert machines.cluster.retained("paused") == b"resume"
    assert machines.cluster.retained("unknown") is None


def test_events_of_all_workers_have_one_order(machines: Machines) -> None:
    kinds: tuple[EventKind, ...] = ("page", "notice", "page", "notice")
    for number, kind in enumerate(kinds, 1):
        machines.publish(Event(7, kind, float(number), str(number)))
    events = machines.cluster.events(0, 10)
    assert [event.subject for event in events] == ["1", "2", "3", "4"]
    assert len({event.id for event in events}) == 4
    assert [event.subject for event in machines.cluster.events(events[1].id, 10)] == ["3", "4"]
    assert [event.subject for event in machines.cluster.events(0, 1)] == ["4"]
    assert [event.subject for event in machines.cluster.events(0, 10, settled=False)] == ["2", "4"]


def test_requests_need_a_warehouse(machines: Machines) -> None:
    with pytest.raises(UsageError, match="no warehouse"):
        machines.open_empty()
