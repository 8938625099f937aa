"""What a state offers besides its stores: the mark of change, and shards where there are several workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from postgres_server import postgres
from quadloom.model.link import Discovery
from quadloom.model.url import Url
from quadloom.settings import Settings, StoreSettings
from quadloom.stores.backends import open_state
from quadloom.stores.protocols.state import State
from quadloom.stores.shards import SHARDS

BACKENDS = ("sqlite", pytest.param("postgresql", marks=pytest.mark.cluster))


class AnyUrl:
    """A scope for tests."""

    def verdict(self, href: str, host: str, depth: int) -> str | None:
        return None


def found(href: str) -> Discovery:
    url = Url.parse(href)
    return Discovery(url.href, url.key, url.host, url.fingerprint, 0)


@pytest.fixture(params=BACKENDS)
def settings(request: pytest.FixtureRequest) -> Settings:
    if request.param == "sqlite":
        return Settings()
    url = postgres().url()
    return Settings(stores=StoreSettings(frontier=url, catalog=url))


@pytest.fixture
def owner(settings: Settings, tmp_path: Path) -> Iterator[State]:
    state = open_state(tmp_path, settings, writable=True)
    yield state
    state.close()


def test_the_mark_changes_with_every_commit(owner: State, settings: Settings, tmp_path: Path) -> None:
    alone = settings.stores.frontier.startswith("sqlite:")  # a server has other databases, which change its mark too
    with closing(open_state(tmp_path, settings, writable=False)) as reader:
        marks = {owner.changed_mark()}
        assert not alone or reader.changed_mark() in marks, "marks of two openings can be compared"
        for number in range(50):
            owner.catalog.values.put("name", str(number).encode())  # quicker than a clock ticks
            mark = reader.changed_mark()
            assert mark not in marks
            assert not alone or owner.changed_mark() == reader.changed_mark() == mark
            assert reader.catalog.values.get("name") == str(number).encode()
            marks.add(mark)
        with owner.catalog.transaction():
            owner.catalog.values.put("name", b"unseen")
            reader.changed_mark()
            assert reader.catalog.values.get("name") == b"49"
        assert reader.changed_mark() not in marks
        assert reader.catalog.values.get("name") == b"unseen"


def test_the_mark_changes_while_nobody_has_the_database_open(settings: Settings, tmp_path: Path) -> None:
    with closing(open_state(tmp_path, settings, writable=True)) as state:
        state.catalog.values.put("name", b"1")
    with closing(open_state(tmp_path, settings, writable=False)) as reader:
        before = reader.changed_mark()
    with closing(open_state(tmp_path, settings, writable=True)) as state:
        state.catalog.values.put("name", b"2")
    with closing(open_state(tmp_path, settings, writable=False)) as reader:
        assert reader.changed_mark() != before


def test_only_a_state_for_several_workers_has_shards(owner: State, settings: Settings, tmp_path: Path) -> None:
    shared = not settings.stores.frontier.startswith("sqlite:")
    assert (owner.shards is not None) is shared
    with closing(open_state(tmp_path, settings, writable=False)) as reader:
        assert reader.shards is None, "a reader owns nothing"


@pytest.mark.cluster
def test_shards_change_hands_through_the_seam(tmp_path: Path) -> None:
    url = postgres().url()
    settings = Settings(stores=StoreSettings(frontier=url, catalog=url))
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        folder.mkdir()
    opened = [closing(open_state(folder, settings, writable=True)) for folder in folders]
    with opened[0] as first, opened[1] as second:
        frontiers = [state.frontier(AnyUrl(), 0.0) for state in (first, second)]
        assert first.shards is not None
        assert second.shards is not None
        with closing(first.shards.heartbeat()) as beat, closing(second.shards.heartbeat()) as other:
            assert (beat.renew(), other.renew(), beat.news(0).workers) == (frozenset(), frozenset(), 2)
            assert len(first.shards.take(SHARDS, 0.0)) == SHARDS
            assert second.shards.take(SHARDS, 0.0) == []
            frontiers[1].add([found("http://a.example/")], 0.0)
            assert beat.news(0).links
            prepared: list[bool] = []
            assert first.shards.pull(0.0, lambda: prepared.append(True)) is False, "there is no more"
            assert prepared == [True]
            assert not beat.news(0).links
            assert frontiers[0].stats(0.0).queued == 1
            first.shards.drain(range(10))
            assert first.shards.give_back(frozenset({0})) == list(range(1, 10))
            assert second.shards.take(SHARDS, 0.0) == list(range(1, 10))
            assert second.shards.owned == frozenset(range(1, 10))
            assert second.shards.catalog_of([1]).unindexed(1) == []
            second.shards.lose([1])
            assert 1 not in second.shards.owned
        for frontier in frontiers:
            frontier.close()
