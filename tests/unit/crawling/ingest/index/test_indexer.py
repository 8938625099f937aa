"""A quad store that is away for a while: the indexer waits, writes everything, and counts nothing twice."""

from __future__ import annotations

import queue

import pytest

from quadloom.crawling.ingest.index import indexer as module
from quadloom.crawling.ingest.index.indexer import IndexAcks, Indexer, IndexJob, LinksFound
from quadloom.errors import StoreUnavailable
from quadloom.model.quads import Quads
from quadloom.process.failpoints import Failpoints
from quadloom.settings import IndexSettings
from quadloom.stores.protocols.quads import Difference
from quadloom.stores.statistics import Statistics
from quadloom_lab.memory.quads import MemoryQuads
from quadloom_lab.memory.text import MemoryText


class AwayQuads(MemoryQuads):
    """Refuses the n-th call of each method, as if the server went away in between."""

    def __init__(self, refused: dict[str, int]) -> None:
        super().__init__()
        self.refused = refused
        self.calls = 0

    def _call(self, name: str) -> None:
        self.calls += 1
        self.refused[name] -= 1
        if self.refused[name] == 0:
            raise StoreUnavailable("the server is away")

    def replace(self, quads: Quads, known: bytes = b"") -> Difference:
        self._call("replace")
        return super().replace(quads, known)

    def flush(self) -> None:
        self._call("flush")


def job(number: int, *, fresh: bool) -> IndexJob:
    graph = f"http://a.example/{number}"
    lines = f'<{graph}> <http://p.example/{number % 3}> "{number}" <{graph}> .\n'.encode()
    return IndexJob(fingerprint=number, quads=Quads.of(graph, lines), text=None, text_digest=b"", fresh=fresh)


@pytest.mark.parametrize(
    "refused", [{"replace": 1, "flush": 0}, {"replace": 3, "flush": 0}, {"replace": 0, "flush": 1}]
)
def test_it_waits_and_goes_on(refused: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.05)
    acks: queue.Queue[IndexAcks | LinksFound] = queue.Queue()
    statistics, store = Statistics(), AwayQuads(dict(refused))
    indexer = Indexer(store, MemoryText(), IndexSettings(), acks.put, Failpoints(), statistics)
    indexer.put([job(number, fresh=number > 4) for number in range(8)])
    indexer.hurry()
    found = acks.get(timeout=30)
    assert isinstance(found, IndexAcks) and [mark.fingerprint for mark in found.marks] == list(range(8))
    assert statistics.statements == 8 and not indexer.waiting.reason
    indexer.close()


def test_who_stops_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.05)
    store = AwayQuads({"replace": 0, "flush": 0})
    monkeypatch.setattr(store, "replace", _away)
    indexer = Indexer(store, MemoryText(), IndexSettings(), lambda _acks: None, Failpoints(), Statistics())
    indexer.put([job(1, fresh=False)])
    indexer.hurry()
    while not indexer.waiting.reason:
        pass
    for number in range(40):
        indexer.put([job(number, fresh=False)])  # nobody is kept waiting meanwhile
    with pytest.raises(StoreUnavailable):
        indexer.close()


def _away(_quads: Quads, _known: bytes = b"") -> Difference:
    raise StoreUnavailable("the server is away")


def test_an_error_that_nobody_expected_reaches_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was printed by the thread, and the owner waited for ever, or ended as if all was well."""

    def broken(_quads: Quads, _known: bytes = b"") -> Difference:
        raise ValueError("not a statement")

    store = AwayQuads({"replace": 0, "flush": 0})
    monkeypatch.setattr(store, "replace", broken)
    indexer = Indexer(store, MemoryText(), IndexSettings(), lambda _acks: None, Failpoints(), Statistics())
    indexer.put([job(1, fresh=False)])
    with pytest.raises(ValueError, match="not a statement"):
        indexer.close()
    with pytest.raises(ValueError, match="not a statement"):
        indexer.check()
