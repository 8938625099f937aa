"""The log of the quad store: what was flushed is durable although no file was added."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quadloom.model.quads import Quads
from quadloom.stores.quads import oxigraph
from quadloom.stores.quads.oxigraph import OxigraphQuads


def page(number: int, statements: int = 3) -> Quads:
    graph = f"http://e.example/{number}"
    lines = (f'<{graph}#{n}> <x:p> "{n}" <{graph}> .\n' for n in range(statements))
    return Quads.of(graph, "".join(sorted(lines)).encode())


def files(path: Path) -> int:
    return len(list(path.glob("*.sst")))


def test_small_commits_add_no_files_and_can_be_read_and_recovered(tmp_path: Path) -> None:
    store = OxigraphQuads(tmp_path / "quads")
    before = files(tmp_path / "quads")
    for number in range(10):
        store.replace(page(number))
        store.flush()
    assert files(tmp_path / "quads") == before
    view = OxigraphQuads(tmp_path / "quads", read_only=True)
    assert len(view) == 30
    view.close()
    shutil.copytree(tmp_path / "quads", tmp_path / "killed")  # as a process leaves it that is killed now
    recovered = OxigraphQuads(tmp_path / "killed")
    assert len(recovered) == 30
    recovered.close()
    store.close()


def test_a_long_log_becomes_files_and_a_closed_store_does_not_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oxigraph, "_LOG_QUADS", 60)
    store = OxigraphQuads(tmp_path / "quads")
    for number in range(50):
        store.replace(page(number))
        store.flush()
    grown = files(tmp_path / "quads")
    assert grown > 0
    store.replace(page(50))
    store.flush()
    store.close()
    for log in (tmp_path / "quads").glob("*.log"):
        log.write_bytes(b"")
    store = OxigraphQuads(tmp_path / "quads")
    assert len(store) == 153
    store.close()
