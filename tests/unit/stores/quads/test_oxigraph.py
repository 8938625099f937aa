"""What only the Oxigraph backend has: value normal forms, other processes, locks."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pytest

from quadloom.errors import StoreError, WarehouseLocked
from quadloom.model.quads import Quads
from quadloom.stores.quads import oxigraph, views
from quadloom.stores.quads.oxigraph import OxigraphQuads

G = "http://a.example/"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def number(text: str) -> bytes:
    return f'<{G}> <http://p.example/n> "{text}"^^<{INTEGER}> <{G}> .\n'.encode()


def test_numbers_are_compared_by_value(tmp_path: Path) -> None:
    store = OxigraphQuads(tmp_path / "quads")
    store.replace(Quads.of(G, number("01")))
    assert not store.replace(Quads.of(G, number("01")))
    assert not store.replace(Quads.of(G, number("1")))
    changed = store.replace(Quads.of(G, number("2")))
    assert (len(changed.added), len(changed.removed)) == (1, 1)


def test_an_escaped_quote_cannot_leave_its_string(tmp_path: Path) -> None:
    store = OxigraphQuads(tmp_path / "quads")
    evil = r'"\u0022 } } ; DROP ALL ; INSERT DATA { GRAPH <x:g> { <x:s> <x:p> \u0022"'
    store.replace(Quads.of(G, number("1")))
    store.replace(Quads.of(G, f"<{G}> <http://p.example/n> {evil} <{G}> .\n".encode()))
    assert list(store.graphs()) == [G]
    (line,) = store.match(None, None, None, None)
    assert r"\" } } ; DROP ALL" in line


def test_a_reader_beside_the_writer_sees_what_is_committed(tmp_path: Path) -> None:
    writer = OxigraphQuads(tmp_path / "quads")
    writer.replace(Quads.of(G, number("1")))
    reader = OxigraphQuads(tmp_path / "quads", read_only=True)
    assert reader.graph(G) == number("1")
    writer.replace(Quads.of(G, number("2")))
    assert reader.graph(G) == number("1")
    assert OxigraphQuads(tmp_path / "quads", read_only=True).graph(G) == number("2")


def test_readers_of_the_same_state_share_a_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each view that is opened reads the whole log: four threads of a server need not do so four times."""
    monkeypatch.setattr(views, "_SETTLED", -1.0)
    writer = OxigraphQuads(tmp_path / "quads")
    writer.replace(Quads.of(G, number("1")))
    first, second = (OxigraphQuads(tmp_path / "quads", read_only=True) for _ in range(2))
    assert first._store is second._store
    writer.replace(Quads.of(G, number("2")))
    third = OxigraphQuads(tmp_path / "quads", read_only=True)
    assert third._store is not first._store and third.graph(G) == number("2")
    first.close()
    assert second.graph(G) == number("1"), "as long as somebody uses it"
    second.close()
    third.close()
    assert tmp_path / "quads" not in views._views


def test_a_view_made_in_the_moment_of_a_write_is_not_shared(tmp_path: Path) -> None:
    """The next write may come within the same tick of the file system's clock."""
    writer = OxigraphQuads(tmp_path / "quads")
    writer.replace(Quads.of(G, number("1")))
    os.utime(next((tmp_path / "quads").glob("*.log")), (time.time() + 3600, time.time() + 3600))
    first, second = (OxigraphQuads(tmp_path / "quads", read_only=True) for _ in range(2))
    assert first._store is not second._store


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    writer = OxigraphQuads(tmp_path / "quads")
    with pytest.raises(WarehouseLocked) as refusal:
        OxigraphQuads(tmp_path / "quads")
    assert refusal.value.hint
    writer.close()
    OxigraphQuads(tmp_path / "quads").close()


def test_nothing_to_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no quads"):
        OxigraphQuads(tmp_path / "none", read_only=True)
    store = OxigraphQuads(tmp_path / "quads")
    store.close()
    with pytest.raises(StoreError, match="closed"):
        len(store)


@pytest.mark.parametrize("piece", [1, 100, 4000, 1 << 20])
def test_a_bulk_load_in_pieces_loses_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    """Pieces end between lines, within a graph or between two, and a line longer than a piece is one of its own."""
    monkeypatch.setattr(oxigraph, "_PIECE", piece)
    monkeypatch.setattr(oxigraph, "BULK_QUADS", 10)
    graphs = [f"http://a.example/{page}" for page in range(6)]
    batch = [
        Quads.of(
            graph, b"".join(b'<x:s> <x:p> "%d%s" <%s> .\n' % (k, b"x" * k * page, graph.encode()) for k in range(8))
        )
        for page, graph in enumerate(graphs)
    ]
    store = OxigraphQuads(tmp_path / "quads")
    store.insert_new([batch[0], Quads.of("x:empty", b""), *batch[1:]], number("7"))
    assert [store.graph(part.graph) for part in batch] == [
        b"".join(sorted(part.nquads.splitlines(True))) for part in batch
    ]
    assert store.graph(G) == number("7")


def test_pieces_are_small_only_in_a_small_store_and_near_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = OxigraphQuads(tmp_path / "quads")
    found = []
    for megabytes in (100, 220, 400):
        monkeypatch.setattr(oxigraph, "resident_bytes", lambda _pid, size=megabytes: size << 20)
        found.append([size >> 20 for size in store._piece_bytes()])
    assert found == [[32, 8], [30, 8], [8, 8]]
    file = tmp_path / "quads" / "999999.sst"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 29)
    assert [size >> 20 for size in store._piece_bytes()] == [32, 32]
    file.unlink()
    store.close()


def test_a_large_graph_is_loaded_as_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines are never in memory all together, and it is loaded in small pieces."""
    graph = b"".join(b'<x:s%d> <x:p> "%s" <x:g> .\n' % (n, b"word " * 200) for n in range(20_000))
    large, small = Quads.of("x:g", graph).packed(), Quads.of("x:h", b'<x:s> <x:p> "o" <x:h> .\n')
    sizes = []
    taken = oxigraph._pieces

    def watched(graphs: Sequence[Quads], most: int) -> Iterator[BinaryIO]:
        for piece in taken(graphs, most):
            sizes.append(most)
            yield piece

    monkeypatch.setattr(oxigraph, "_pieces", watched)
    monkeypatch.setattr(oxigraph, "resident_bytes", lambda _pid: 100 << 20)
    store = OxigraphQuads(tmp_path / "quads")
    tracemalloc.start()
    store.insert_new([large, small])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 << 20 < len(graph)
    assert [size >> 20 for size in sizes] == [32, 8, 8, 8]
    assert len(store) == 20_001
    assert store.graph("x:g") == b"".join(sorted(graph.splitlines(keepends=True)))
    store.close()


def test_a_bulk_load_makes_no_copy_of_all_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits to be loaded is in memory already; the engine takes four times as much for a moment."""
    monkeypatch.setattr(oxigraph, "BULK_QUADS", 10)
    words = b"word " * 20_000
    batch = [Quads.of(f"x:{page}", b'<x:s> <x:p> "%s" <x:%d> .\n' % (words, page)) for page in range(100)]
    store = OxigraphQuads(tmp_path / "quads")
    tracemalloc.start()
    store.insert_new(batch)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20  # of 10 MB; the engine's own memory is not Python's
    assert len(store) == len(batch)


def test_memory_of_what_was_read_is_given_back_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is closed and opened again between two writes; other threads wait meanwhile."""
    monkeypatch.setattr(oxigraph, "_READ_QUADS", 10)
    opened: list[Path] = []
    monkeypatch.setattr(
        oxigraph, "_open_store", lambda path, real=oxigraph._open_store: opened.append(path) or real(path)
    )
    monkeypatch.setattr(oxigraph, "_LOG_QUADS", 1)
    store = OxigraphQuads(tmp_path / "quads")
    store.insert_new([Quads.of(f"x:{page}", b'<x:s> <x:p> "%d" <x:%d> .\n' % (page, page)) for page in range(20)])
    for page in range(20):
        store.describe("x:about", [(f"x:{page}", b'<x:%d> <x:p> "a" <x:about> .\n' % page)])
        store.describe("x:about", [(f"x:{page}", b'<x:%d> <x:p> "b" <x:about> .\n' % page)])
    store.release_memory()
    assert len(opened) == 1  # what is in the log would be read again
    store.flush()
    lines = store.match(None, None, None, None)  # another thread is in the middle of an answer
    next(lines)
    releasing = threading.Thread(target=store.release_memory)
    releasing.start()
    time.sleep(0.1)
    assert releasing.is_alive()
    del lines
    releasing.join(20)
    assert not releasing.is_alive() and len(set(opened)) == 1 and len(opened) >= 2
    assert len(store) == 40 and store.graph("x:about").count(b'"b"') == 20
    store.release_memory()
    before = len(opened)
    store.release_memory()  # little was read since
    assert len(opened) == before
    store.close()


def test_an_error_does_not_take_the_engines_answer_to_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's iterators must end where they began; a traceback that another thread drops kept them."""
    complaints: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda event: complaints.append(str(event.exc_value)))
    kept: list[Exception] = []
    store = OxigraphQuads(tmp_path / "quads")

    def ask() -> None:
        try:
            store.query("SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }")  # fails while it is evaluated
        except Exception as error:
            kept.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join()
    assert len(kept) == 1
    kept.clear()
    gc.collect()
    store.close()
    assert complaints == []
