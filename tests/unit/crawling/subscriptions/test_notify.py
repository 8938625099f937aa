"""Notices: who gets one for which change, and its form."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from msgspec.structs import replace

from quadloom.crawling.subscriptions.feed import atom, event
from quadloom.crawling.subscriptions.notify import ChangeNotifier
from quadloom.crawling.subscriptions.registry import add_subscription
from quadloom.crawling.subscriptions.webhooks import LINES, NoticeMessage, message
from quadloom.model.event import Notice
from quadloom.model.outcome import Outcome, PageRow, Settlement
from quadloom.model.quads import Quads
from quadloom.model.subscription import Subscription
from quadloom.model.url import fingerprint, host_of
from quadloom.model.visit import Visit
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.protocols.quads import Difference
from quadloom_lab.memory.catalog import MemoryCatalog
from quadloom_lab.memory.frontier import MemoryFrontier
from quadloom_lab.memory.outbox import MemoryOutbox
from quadloom_lab.memory.quads import MemoryQuads

NOW = 1_000_000.0
EVENT = "http://schema.org/Event"
TYPED = f"<http://a/> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EVENT}> <http://a/> .\n".encode()


class Stores:
    def __init__(self) -> None:
        self.frontier = MemoryFrontier(FrontierPolicy(delay=0.0, ip_delay=0.0), now=NOW)
        self.catalog = MemoryCatalog(self.frontier)
        self.outbox = MemoryOutbox(self.catalog)

    def subscribe(self, subscription: Subscription) -> None:
        add_subscription(subscription, catalog=self.catalog, outbox=self.outbox, frontier=self.frontier, now=NOW)


@pytest.fixture
def stores() -> Stores:
    return Stores()


def settled(url: str, outcome: Outcome, again_at: float | None = None) -> Settlement:
    key = fingerprint(url)
    row = PageRow(fingerprint=key, key=url, href=url, host=host_of(url), outcome=outcome, fetched_at=NOW)
    return Settlement(Visit(url, url, host_of(url), key), outcome, row, None, (), again_at)


def noticed(
    stores: Stores, settlements: list[Settlement], nquads: bytes = b"", known: dict[int, PageRow] | None = None
) -> list[tuple[str, str, str]]:
    notices = ChangeNotifier(stores.catalog, stores.outbox, MemoryQuads()).notices(
        settlements, lambda _: nquads, known or {}, NOW
    )
    return [(notice.subscription, notice.kind, notice.url) for notice in notices]


def test_pages_are_matched_by_url_site_and_type(stores: Stores) -> None:
    stores.subscribe(Subscription(id="page", urls=("https://a.example/x",)))
    stores.subscribe(Subscription(id="site", sites=("b.example",)))
    stores.subscribe(Subscription(id="type", types=(EVENT,)))
    new = Outcome.NEW
    assert noticed(stores, [settled("https://a.example/x", new)]) == [("page", "new", "https://a.example/x")]
    assert noticed(stores, [settled("https://www.b.example/y", new)]) == [("site", "new", "https://www.b.example/y")]
    assert noticed(stores, [settled("https://c.example/", Outcome.CHANGED)], TYPED) == [
        ("type", "changed", "https://c.example/")
    ]
    assert noticed(stores, [settled("https://a.example/x", Outcome.UNCHANGED)]) == []


def test_gone_is_reported_at_once_and_once(stores: Stores) -> None:
    stores.subscribe(Subscription(id="page", urls=("https://a.example/x",)))
    old = PageRow(
        fingerprint=1,
        key="https://a.example/x",
        href="https://a.example/x",
        host="a.example",
        quads_digest=b"d",
        changed_at=1.0,
    )
    dying, missing = (settled("https://a.example/x", Outcome.GONE, again) for again in (None, NOW + 9))
    known = {fingerprint("https://a.example/x"): old}
    assert noticed(stores, [dying], known=known) == [("page", "gone", "https://a.example/x")]
    assert missing.page is not None
    missing = replace(missing, page=replace(missing.page, quads_digest=b"d"))  # it stays in the indexes
    assert noticed(stores, [missing], known=known) == [("page", "gone", "https://a.example/x")]
    known = {fingerprint("https://a.example/x"): replace(old, outcome=Outcome.GONE)}
    assert noticed(stores, [missing], known=known) == noticed(stores, [dying], known=known) == [], "told before"
    back = settled("https://a.example/x", Outcome.UNCHANGED)
    assert back.page is not None
    back = replace(back, page=replace(back.page, quads_digest=b"d"))
    assert noticed(stores, [back], known=known) == [("page", "back", "https://a.example/x")]


@pytest.mark.parametrize(("outcome", "kind"), [(Outcome.CHANGED, "changed"), (Outcome.GONE, "gone")])
def test_the_last_thing_of_a_type_leaves_a_page(stores: Stores, outcome: Outcome, kind: str) -> None:
    url = "https://c.example/"
    stores.subscribe(Subscription(id="type", types=(EVENT,)))
    quads = MemoryQuads()
    quads.replace(Quads.of(url, TYPED.replace(b"<http://a/> .", b"<https://c.example/> .")))
    old = PageRow(fingerprint=fingerprint(url), key=url, href=url, host="c.example", quads_digest=b"d")
    notifying = ChangeNotifier(stores.catalog, stores.outbox, quads)
    notices = notifying.notices([settled(url, outcome)], lambda _: b"", {old.fingerprint: old}, NOW)
    assert [(notice.subscription, notice.kind) for notice in notices] == [("type", kind)]
    elsewhere = settled("https://d.example/", outcome)
    other = {elsewhere.visit.fingerprint: replace(old, href="https://d.example/")}
    assert notifying.notices([elsewhere], lambda _: b"", other, NOW) == []


def test_a_page_settled_twice_in_a_batch_changed_once(stores: Stores) -> None:
    stores.subscribe(Subscription(id="page", urls=("https://a.example/x",)))
    assert len(noticed(stores, [settled("https://a.example/x", Outcome.NEW)] * 2)) == 1


def test_messages_are_cut_and_say_how_much() -> None:
    notice = Notice(id=5, at=NOW, subscription="s", kind="changed", url="https://a.example/")
    cut = message(notice, Difference(tuple(str(n) for n in range(LINES + 7)), ()))
    assert (len(cut.added), cut.more) == (LINES, 7)


def test_the_feed_is_well_formed_whatever_pages_contain() -> None:
    evil = "]]></title><script>\x00\x1f\ud800 & \"'"
    messages = [
        NoticeMessage(
            id=n, subscription="s", at="2026-01-01T00:00:00+00:00", kind="changed", url=evil, title=evil, added=(evil,)
        )
        for n in (1, 2)
    ]
    feed = atom(messages, title=evil, self_url="https://we.example/feed?a=1&b=2", updated="2026-01-01T00:00:00Z")
    root = ElementTree.fromstring(feed)
    ids = [node.text for node in root.findall("{*}entry/{*}id")]
    assert ids == ["https://we.example/feed?a=1&b=2#2", "https://we.example/feed?a=1&b=2#1"]


def test_an_event_stream_can_be_resumed_by_id() -> None:
    sent = event(NoticeMessage(id=9, subscription="s", at="", kind="new", title="two\nlines"))
    assert sent.startswith(b"id: 9\nevent: notice\ndata: {") and sent.endswith(b"}\n\n") and sent.count(b"\n") == 4
