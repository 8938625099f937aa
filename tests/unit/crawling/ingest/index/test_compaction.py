"""When the quad store compacts its files, on a clock that the test sets; and that it really does."""

from __future__ import annotations

import queue
import threading
from pathlib import Path

import pytest

from quadloom.crawling.ingest.index.compaction import ENOUGH, StoreCompactor
from quadloom.crawling.ingest.index.indexer import IndexAcks, Indexer, IndexJob, LinksFound
from quadloom.errors import StoreError
from quadloom.model.quads import Quads
from quadloom.process.failpoints import Failpoints
from quadloom.settings import IndexSettings
from quadloom.stores.quads.oxigraph import OxigraphQuads
from quadloom.stores.statistics import Statistics
from quadloom_lab.memory.quads import MemoryQuads
from quadloom_lab.memory.text import MemoryText
from waiting import wait_until


class Slow(MemoryQuads):
    """`optimize` takes until it may end."""

    def __init__(self) -> None:
        super().__init__()
        self.may_end = threading.Event()
        self.calls = 0

    def optimize(self) -> None:
        self.calls += 1
        self.may_end.wait(10)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("written", "total", "waited", "expected"),
    [
        (ENOUGH, ENOUGH, 4.0, 1),
        (ENOUGH - 1, ENOUGH, 4.0, 0),  # too little to be worth it
        (ENOUGH, ENOUGH, 2.0, 0),  # the next batch may be on its way
        (ENOUGH, 10 * ENOUGH, 4.0, 0),  # a tenth of the store: merging everything costs more than it frees
        (20_000_000, 20_000_000, 4.0, 0),  # expected to take over a minute: stopping the crawl would have to wait
    ],
)
def test_it_starts_only_when_it_pays(written: int, total: int, waited: float, expected: int) -> None:
    clock, store = Clock(), Slow()
    store.may_end.set()
    compactor = StoreCompactor(store, lambda: total, monotonic=clock)
    compactor.wrote(written)
    clock.now = waited
    compactor.idle()
    compactor.close()
    assert store.calls == expected


def test_one_at_a_time_and_the_caller_never_waits() -> None:
    clock, store = Clock(), Slow()
    compactor = StoreCompactor(store, lambda: ENOUGH, monotonic=clock)
    for _ in range(3):
        compactor.wrote(ENOUGH)
        clock.now += 4.0
        compactor.idle()
    assert store.calls == 1
    store.may_end.set()
    compactor.close()
    compactor.idle()
    compactor.close()
    assert store.calls == 2


def test_the_estimate_adapts_to_a_slow_disk() -> None:
    clock, store = Clock(), Slow()
    compactor = StoreCompactor(store, lambda: ENOUGH, monotonic=clock)
    compactor.wrote(ENOUGH)
    clock.now = 4.0
    compactor.idle()
    clock.now = 64.0  # a minute
    store.may_end.set()
    compactor.close()
    compactor.wrote(ENOUGH)
    clock.now = 100.0
    compactor.idle()
    compactor.close()
    assert store.calls == 1


def test_its_error_is_available_to_the_indexer() -> None:
    class Broken(MemoryQuads):
        def optimize(self) -> None:
            raise StoreError("the disk is gone")

    clock = Clock()
    compactor = StoreCompactor(Broken(), lambda: ENOUGH, monotonic=clock)
    compactor.wrote(ENOUGH)
    clock.now = 4.0
    compactor.idle()
    compactor.close()
    assert compactor.error is not None
    assert compactor.error.message == "the disk is gone"


def test_files_become_fewer_while_statements_stay(tmp_path: Path) -> None:
    store = OxigraphQuads(tmp_path / "quads")
    for batch in range(4):
        graphs = [f"http://e.example/{batch}/{number}" for number in range(100)]
        store.insert_new(
            [Quads.of(g, "".join(f'<{g}#{n}> <x:p> "{n}" <{g}> .\n' for n in range(90)).encode()) for g in graphs]
        )
    store.flush()
    before, count = len(list((tmp_path / "quads").glob("*.sst"))), len(store)
    clock = Clock()
    compactor = StoreCompactor(store, lambda: count, monotonic=clock)
    compactor.wrote(ENOUGH)
    clock.now = 4.0
    compactor.idle()
    compactor.close()
    assert len(list((tmp_path / "quads").glob("*.sst"))) < before
    assert len(store) == count == 36_000
    store.close()


def page(number: int, statements: int, version: int = 0) -> IndexJob:
    graph = f"http://e.example/{number}"
    lines = "".join(f'<{graph}#{n}> <x:p> "{n} {version}" <{graph}> .\n' for n in range(statements))
    return IndexJob(number, Quads.of(graph, lines.encode()), None, b"", fresh=not version)


def test_first_reads_in_bulk_are_left_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their files are compressed, those of a compaction are not. What is replaced later counts."""
    monkeypatch.setattr("quadloom.crawling.ingest.index.compaction.ENOUGH", 1000)
    store = OxigraphQuads(tmp_path / "quads")
    marks: queue.Queue[IndexAcks | LinksFound] = queue.Queue()
    indexer = Indexer(
        store, MemoryText(), IndexSettings(text=False, text_commit_seconds=0.05), marks.put, Failpoints(), Statistics()
    )
    clock = indexer.compactor._monotonic = Clock()
    indexer.put([page(number, 300) for number in range(40)])
    marks.get(timeout=60)
    clock.now += 4.0
    indexer._idle()
    indexer.compactor.close()
    assert indexer.compactor.runs == 0
    indexer.put([page(number, 300, version=1) for number in range(10)])
    marks.get(timeout=60)
    clock.now += 4.0
    wait_until(lambda: indexer.compactor.runs)
    indexer.close()
    assert indexer.compactor.runs == 1
    store.close()


def test_an_idle_indexer_compacts_and_a_busy_one_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadloom.crawling.ingest.index.compaction.ENOUGH", 1000)
    store = OxigraphQuads(tmp_path / "quads")
    marks: queue.Queue[IndexAcks | LinksFound] = queue.Queue()
    settings = IndexSettings(text=False, text_commit_seconds=0.05)
    indexer = Indexer(store, MemoryText(), settings, marks.put, Failpoints(), Statistics())
    clock = indexer.compactor._monotonic = Clock()
    for number in range(12):  # over 12 s: longer than the idle time that it needs
        clock.now += 1.0
        indexer.put([page(number, 300)])
        marks.get(timeout=60)
        assert indexer.compactor.runs == 0
    clock.now += 4.0
    wait_until(lambda: indexer.compactor.runs)
    indexer.close()
    assert indexer.compactor.runs == 1
    assert len(store) == 3600
    store.close()
