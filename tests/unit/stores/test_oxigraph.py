"""What only the Oxigraph backend has: value normal forms, other processes, locks."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.errors import StoreError, WarehouseLocked
from quadloom.model.quads import Quads
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
