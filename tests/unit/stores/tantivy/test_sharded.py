"""One tantivy index per shard: writers that change, readers on other machines, and ranks as of one index."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from quadloom.model.text import TextDocument
from quadloom.stores.protocols.text import SearchRequest
from quadloom.stores.shards import shard_of
from quadloom.stores.tantivy import sharded
from quadloom.stores.tantivy.generations import claim, newest_claim, newest_ready, place, take_over
from quadloom.stores.tantivy.index import TantivyText
from quadloom.stores.tantivy.sharded import ShardedText

WORDS = [f"word{number}" for number in range(60)]


def document(number: int, body: str = "", site: int | None = None) -> TextDocument:
    host = f"site{number % 12 if site is None else site}.example"
    return TextDocument(
        id=f"http://{host}/{number}", title=f"Page {number}", body=body, site=host, host=host, fetched_at=1e9 + number
    )


def found(index: ShardedText | TantivyText, text: str) -> set[str]:
    return {hit.id for hit in index.search(SearchRequest(text=text, limit=100, exact=True))}


@pytest.fixture
def always_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharded, "_LOOK_SECONDS", 0.0)


@pytest.fixture
def both(tmp_path: Path, always_looking: None) -> Iterator[tuple[ShardedText, ShardedText]]:
    """Two workers on one directory."""
    one, other = ShardedText(tmp_path / "text"), ShardedText(tmp_path / "text")
    yield one, other
    one.close()
    other.close()


def test_a_shard_changes_its_writer_and_nothing_is_lost(both: tuple[ShardedText, ShardedText]) -> None:
    one, other = both
    for number in range(6):  # takes turns within one shard
        writer = both[number % 2]
        writer.put([document(number, f"alpha{number} shared", site=1)])
        writer.commit()
    assert found(one, "shared") == found(other, "shared") == {f"http://site1.example/{number}" for number in range(6)}
    other.remove(["http://site1.example/0"])
    other.commit()
    assert len(one) == len(other) == 5


def test_a_paused_writer_stops_nobody_and_its_last_commit_is_not_lost(
    both: tuple[ShardedText, ShardedText], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is paused within its commit, with the lock of its index; the other takes over meanwhile."""
    one, other = both
    one.put([document(1, "early", site=1)])
    one.commit()
    commit = TantivyText.commit
    paused: list[bool] = []

    def paused_commit(index: TantivyText) -> None:
        if not paused:
            paused.append(True)
            other.put([document(2, "meanwhile", site=1)])
            other.commit()
        commit(index)

    monkeypatch.setattr(TantivyText, "commit", paused_commit)
    one.put([document(3, "late", site=1)])
    one.commit()
    for reader in both:
        assert [len(found(reader, word)) for word in ("early", "meanwhile", "late")] == [1, 1, 1]


def test_readers_see_other_workers_and_a_missing_directory_is_empty(tmp_path: Path, always_looking: None) -> None:
    reader = ShardedText(tmp_path / "text", read_only=True)
    assert (len(reader), found(reader, "alpha"), reader.words("alp", 3)) == (0, set(), [])
    writer = ShardedText(tmp_path / "text")
    for number in range(24):
        writer.put([document(number, "alpha")])
    writer.commit()
    assert len(reader) == len(found(reader, "alpha")) == 24
    assert reader.words("alp", 3) == [("alpha", 24)]
    writer.close()
    reader.close()


def test_ranks_are_those_of_one_index(tmp_path: Path) -> None:
    """A word that is rare in one shard and common in others weighs the same everywhere."""
    chance = random.Random(5)
    documents = [document(number, " ".join(chance.choices(WORDS, k=40))) for number in range(300)]
    documents += [document(1000 + number, "word7 " * 3 + " ".join(WORDS[:37]), site=3) for number in range(60)]
    alone, parts = TantivyText(tmp_path / "one"), ShardedText(tmp_path / "many")
    for index in (alone, parts):
        index.put(documents)
        index.commit()
    assert len({shard_of(document.host) for document in documents}) > 5
    for text in ("word7", "word1 word2", "word3 word4 word5", "word7 word59"):
        request = SearchRequest(text=text, limit=400)
        expected, answer = alone.search(request), parts.search(request)
        assert answer.total == expected.total
        scores = {hit.id: hit.score for hit in expected}
        assert {hit.id for hit in answer} == set(scores)
        # The average length of a field is that of one shard, so scores differ a little.
        assert all(abs(hit.score - scores[hit.id]) < 0.03 * scores[hit.id] for hit in answer), text
    alone.close()
    parts.close()


def test_facets_and_dates_are_gathered(tmp_path: Path) -> None:
    index = ShardedText(tmp_path / "text")
    index.put([document(number, "alpha") for number in range(36)])
    index.commit()
    newest = index.search(SearchRequest(limit=5, offset=2))
    assert [hit.title for hit in newest] == [f"Page {number}" for number in range(33, 28, -1)]
    facets = index.search(SearchRequest(text="alpha", facets=True)).facets
    assert sorted(facets["sites"]) == sorted((f"site{number}.example", 3) for number in range(12))
    index.close()


def test_a_fresh_index_is_shown_when_it_is_complete(tmp_path: Path, always_looking: None) -> None:
    before, reader = ShardedText(tmp_path / "text"), ShardedText(tmp_path / "text", read_only=True)
    before.put([document(number, "old") for number in range(12)])
    before.commit()
    fresh = ShardedText(tmp_path / "text", fresh=True)
    fresh.put([document(1, "new"), document(2, "new")])
    fresh.commit()
    assert (len(found(reader, "old")), found(reader, "new")) == (12, set())
    fresh.publish()
    assert (found(reader, "old"), len(found(reader, "new"))) == (set(), 2)
    before.put([document(3, "later")])
    before.commit()
    assert len(reader) == 3
    for index in (before, reader, fresh):
        index.close()


def test_claims_without_a_generation_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "017"
    first = take_over(folder)
    assert newest_ready(folder) == 0, "there is no index in it yet"
    TantivyText(place(folder, first)).close()
    assert (claim(folder), newest_claim(folder), newest_ready(folder)) == (first + 1, first + 1, first)
    assert take_over(folder) == first + 2 == newest_ready(folder)
    assert not place(folder, first).exists(), "generations before the last two are removed"
