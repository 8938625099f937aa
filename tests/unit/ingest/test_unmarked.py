"""Which shards have pages on their way through the indexer."""

from __future__ import annotations

from quadloom.ingest.indexer import IndexJob
from quadloom.ingest.pending import PendingIndex
from quadloom.model.quads import Quads
from quadloom.stores.shards import shard_of


def entry(number: int, host: str) -> IndexJob:
    return IndexJob(number, Quads.of(f"http://{host}/{number}", b""), None, b"", fresh=True, host=host)


def test_a_shard_is_busy_until_the_last_of_its_pages_is_marked() -> None:
    unmarked = PendingIndex()
    unmarked.put([entry(1, "a.example"), entry(2, "a.example"), entry(3, "b.example")])
    assert (len(unmarked), unmarked.shards()) == (3, {shard_of("a.example"), shard_of("b.example")})
    unmarked.marked([(1, b"q", b"t"), (3, b"q", b"t")])
    assert (len(unmarked), unmarked.shards()) == (1, {shard_of("a.example")})
    unmarked.marked([(2, b"q", b"t")])
    assert (len(unmarked), unmarked.shards()) == (0, frozenset())


def test_a_page_that_was_read_twice_waits_for_both_marks() -> None:
    unmarked = PendingIndex()
    unmarked.put([entry(1, "a.example")])
    unmarked.put([entry(1, "a.example")])
    unmarked.marked([(1, b"old", b"")])
    assert unmarked.shards() == {shard_of("a.example")}
    unmarked.marked([(1, b"new", b"")])
    assert not unmarked.shards()
    assert not unmarked
