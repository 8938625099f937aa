"""Which shards have pages on their way through the indexer."""

from __future__ import annotations

from quadloom.crawling.ingest.index.indexer import IndexJob
from quadloom.crawling.ingest.index.jobs import PendingIndex
from quadloom.model.quads import Quads
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.shards import shard_of


def entry(number: int, host: str) -> IndexJob:
    return IndexJob(number, Quads.of(f"http://{host}/{number}", b""), None, b"", fresh=True, host=host)


def test_a_shard_is_busy_until_the_last_of_its_pages_is_marked() -> None:
    pending = PendingIndex()
    pending.add([entry(1, "a.example"), entry(2, "a.example"), entry(3, "b.example")])
    assert (len(pending), pending.shards()) == (3, frozenset({shard_of("a.example"), shard_of("b.example")}))
    pending.acknowledge([IndexedPage(1, b"q", b"t"), IndexedPage(3, b"q", b"t")])
    assert (len(pending), pending.shards()) == (1, frozenset({shard_of("a.example")}))
    pending.acknowledge([IndexedPage(2, b"q", b"t")])
    assert (len(pending), pending.shards()) == (0, frozenset())


def test_a_page_that_was_read_twice_waits_for_both_marks() -> None:
    pending = PendingIndex()
    pending.add([entry(1, "a.example")])
    pending.add([entry(1, "a.example")])
    pending.acknowledge([IndexedPage(1, b"old", b"")])
    assert pending.shards() == {shard_of("a.example")}
    pending.acknowledge([IndexedPage(1, b"new", b"")])
    assert not pending.shards()
    assert not pending
