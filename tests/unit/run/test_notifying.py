"""Notices: who is told of what, in order, signed, again after a failure, and once per change of an answer."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import msgspec
import pytest

from quadloom.errors import FetchError, NothingFound, UsageError
from quadloom.model.notice import Notice
from quadloom.model.outcome import Outcome, PageRow, Settlement
from quadloom.model.page import Page
from quadloom.model.url import fingerprint, host_of
from quadloom.model.visit import Visit
from quadloom.run.delivering import LINES, Delivering, Message, message, signature
from quadloom.run.notice_feed import atom, event
from quadloom.run.notifying import Notifying, add_subscription, read_subscriptions, remove_subscription
from quadloom.run.standing import Standing
from quadloom.scheduling.subscriptions import Subscription
from quadloom.stores.protocols import Difference
from quadloom.stores.sqlite_catalog import SqliteCatalog
from quadloom.stores.sqlite_database import SqliteDatabase
from quadloom.stores.sqlite_outbox import SqliteOutbox
from quadloom.stores.sqlite_schema import SCHEMA

NOW = 1_000_000.0
EVENT = "http://schema.org/Event"
TYPED = f"<http://a/> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EVENT}> <http://a/> .\n".encode()


class Stores:
    def __init__(self, folder: Path) -> None:
        database = SqliteDatabase.open(folder / "q.db", SCHEMA)
        self.catalog, self.outbox = SqliteCatalog(database), SqliteOutbox(database)


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    return Stores(tmp_path)


def settled(url: str, outcome: Outcome, again_at: float | None = None) -> Settlement:
    key = fingerprint(url)
    row = PageRow(fingerprint=key, key=url, href=url, host=host_of(url), outcome=outcome, fetched_at=NOW)
    return Settlement(Visit(url, url, host_of(url), key), outcome, row, None, (), again_at)


def told(stores: Stores, settlements: list[Settlement], nquads: bytes = b"", known: dict[int, PageRow] | None = None):  # type: ignore[no-untyped-def]
    notices = Notifying(stores.catalog, stores.outbox).notices(settlements, lambda _: nquads, known or {}, NOW)
    return [(notice.subscription, notice.kind, notice.url) for notice in notices]


def test_pages_are_matched_by_url_site_and_type(stores: Stores) -> None:
    add_subscription(stores.catalog, Subscription(id="page", urls=("https://a.example/x?utm_source=mail",)))
    add_subscription(stores.catalog, Subscription(id="site", sites=("b.example",)))
    add_subscription(stores.catalog, Subscription(id="type", types=(EVENT,)))
    new = Outcome.NEW
    assert told(stores, [settled("https://a.example/x", new)]) == [("page", "new", "https://a.example/x")]
    assert told(stores, [settled("https://www.b.example/y", new)]) == [("site", "new", "https://www.b.example/y")]
    assert told(stores, [settled("https://c.example/", Outcome.CHANGED)], TYPED) == [
        ("type", "changed", "https://c.example/")
    ]
    assert told(stores, [settled("https://a.example/x", Outcome.UNCHANGED)]) == []


def test_gone_is_told_when_a_page_with_content_dies(stores: Stores) -> None:
    add_subscription(stores.catalog, Subscription(id="page", urls=("https://a.example/x",)))
    old = PageRow(
        fingerprint=1, key="https://a.example/x", href="https://a.example/x", host="a.example", quads_digest=b"d"
    )
    dying, missing = (settled("https://a.example/x", Outcome.GONE, again) for again in (None, NOW + 9))
    known = {fingerprint("https://a.example/x"): old}
    assert told(stores, [dying], known=known) == [("page", "gone", "https://a.example/x")]
    assert told(stores, [missing], known=known) == [], "the next visit may find it again"


def test_a_page_settled_twice_in_a_batch_changed_once(stores: Stores) -> None:
    add_subscription(stores.catalog, Subscription(id="page", urls=("https://a.example/x",)))
    assert len(told(stores, [settled("https://a.example/x", Outcome.NEW)] * 2)) == 1


def test_a_subscription_is_to_pages_or_to_a_query(stores: Stores) -> None:
    for wrong in (Subscription(id="s"), Subscription(id="s", sites=("a.example",), query="ASK {}")):
        with pytest.raises(UsageError):
            add_subscription(stores.catalog, wrong)
    add_subscription(stores.catalog, Subscription(id="s", sites=("a.example",)))
    with pytest.raises(UsageError):
        add_subscription(stores.catalog, Subscription(id="s", sites=("b.example",)))
    remove_subscription(stores.catalog, "s")
    assert read_subscriptions(stores.catalog) == []
    with pytest.raises(NothingFound):
        remove_subscription(stores.catalog, "s")


class Receiver:
    def __init__(self) -> None:
        self.ids: list[int] = []
        self.status = 200

    def post(self, url: str, body: bytes, headers: tuple[tuple[str, str], ...]) -> Page:
        assert dict(headers)["Quadloom-Signature"] == signature(body, "secret")
        if self.status == 0:
            raise FetchError("connect", "refused")
        self.ids.append(msgspec.json.decode(body, type=Message).id)
        return Page(url, url, self.status, (), b"", NOW, 0.0)


def test_delivery_goes_on_where_it_failed(stores: Stores) -> None:
    hook = Subscription(id="s", sites=("a.example",), webhook="https://hook.example/", secret="secret")
    stores.outbox.append([Notice(at=NOW, subscription="s", kind="new", url=f"https://a.example/{n}") for n in range(4)])
    receiver = Receiver()
    delivering = Delivering(stores.outbox, receiver.post, lambda _: Difference())
    receiver.status = 0
    assert delivering.turn([hook], NOW) == 0
    assert delivering.turn([hook], NOW + 5.0) == 0 and receiver.ids == [], "within the pause"
    receiver.status = 500
    delivering.turn([hook], NOW + 11.0)
    assert receiver.ids == [1], "the first is refused, so the others wait"
    assert stores.outbox.delivery("s").attempts == 2
    assert stores.outbox.delivery("s").retry_at == pytest.approx(NOW + 11.0 + 20.0)
    receiver.status = 204
    assert delivering.turn([hook], NOW + 60.0) == 4
    assert receiver.ids == [1, 1, 2, 3, 4]
    assert delivering.turn([hook], NOW + 61.0) == 0


def test_ids_are_never_used_again(stores: Stores) -> None:
    notice = Notice(at=NOW, subscription="s", kind="new")
    stores.outbox.append([notice, notice])
    assert stores.outbox.trim(NOW + 1.0) == 2
    stores.outbox.append([notice])
    assert [found.id for found in stores.outbox.since(0)] == [3]
    assert stores.outbox.last_id() == 3


def test_a_standing_query_is_told_of_once_per_change(stores: Stores) -> None:
    answers = [["a", "b"], ["b", "a"], ["b", "c"]]
    clock = iter(range(1_000_000, 2_000_000, 100))
    query = Subscription(id="q", query="SELECT …")
    turns = []
    for version, answer in enumerate(answers):
        standing = Standing(lambda _query, rows=answer: rows)  # type: ignore[misc]  # a new process each time
        turns.append(
            standing.turn(
                [query], stores.catalog, stores.outbox, version, lambda action: action(), lambda: float(next(clock))
            )
        )
    assert turns == [1, 0, 1]
    notices = stores.outbox.since(0)
    assert [(n.added, n.removed) for n in notices] == [(("a", "b"), ()), (("c",), ("a",))]


def test_an_unchanged_index_asks_nothing(stores: Stores) -> None:
    asked: list[str] = []
    standing = Standing(lambda query: asked.append(query) or [])  # type: ignore[func-returns-value]
    now = [NOW]
    for _ in range(3):
        now[0] += 100.0
        standing.turn(
            [Subscription(id="q", query="x")], stores.catalog, stores.outbox, 7, lambda action: action(), lambda: now[0]
        )
    assert len(asked) == 1


def test_messages_are_cut_and_say_so() -> None:
    notice = Notice(id=5, at=NOW, subscription="s", kind="changed", url="https://a.example/")
    cut = message(notice, Difference(tuple(str(n) for n in range(LINES + 7)), ()))
    assert (len(cut.added), cut.more) == (LINES, 7)


def test_the_feed_is_well_formed_whatever_pages_say() -> None:
    evil = "]]></title><script>\x00\x1f\ud800 & \"'"
    messages = [
        Message(
            id=n, subscription="s", at="2026-01-01T00:00:00+00:00", kind="changed", url=evil, title=evil, added=(evil,)
        )
        for n in (1, 2)
    ]
    feed = atom(messages, title=evil, self_url="https://we.example/feed?a=1&b=2", updated="2026-01-01T00:00:00Z")
    root = ElementTree.fromstring(feed)
    ids = [node.text for node in root.findall("{*}entry/{*}id")]
    assert ids == ["https://we.example/feed?a=1&b=2#2", "https://we.example/feed?a=1&b=2#1"]


def test_an_event_stream_can_be_resumed_by_id() -> None:
    sent = event(Message(id=9, subscription="s", at="", kind="new", title="two\nlines"))
    assert sent.startswith(b"id: 9\nevent: notice\ndata: {") and sent.endswith(b"}\n\n") and sent.count(b"\n") == 4
