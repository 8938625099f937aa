"""Compaction of edge segments: the same links in less space, whenever it is killed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from quadloom.maintenance.links import StoredLinks
from quadloom.planning.ranking import segment_compaction
from quadloom.planning.ranking.link_exchange import LinkExchange
from quadloom.planning.ranking.link_lookup import links_touching
from quadloom.planning.ranking.link_matrix import RECORD, LinkMatrix
from quadloom.planning.ranking.segment_compaction import compact_segments

PAGES = 40
SEGMENT = 50 * RECORD.itemsize


def opened(folder: Path, exchange: LinkExchange | None = None) -> LinkMatrix:
    return LinkMatrix(folder, segment_bytes=SEGMENT, exchange=exchange)


def crawl(matrix: LinkMatrix, rounds: int, seed: int = 1) -> dict[int, set[int]]:
    """Read all pages again and again; returns the links of the last readings."""
    chance = np.random.default_rng(seed)
    links: dict[int, set[int]] = {}
    for _ in range(rounds):
        for page in chance.permutation(PAGES).tolist():
            targets = set(chance.integers(0, PAGES, int(chance.integers(0, 6))).tolist())
            matrix.append(page, [(target, "plain") for target in sorted(targets)])
            links[page] = targets
    matrix.sync()
    matrix.rebuild()
    return links


def stored(matrix: LinkMatrix) -> dict[int, set[int]]:
    rows, names = matrix.rows(), matrix.fingerprints()
    return {int(name): set(names[rows.of(row)].tolist()) for row, name in enumerate(names)}


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.edges"))


def assert_links(folder: Path, expected: dict[int, set[int]]) -> None:
    """By the matrix, by a matrix that is built from the segments alone, and by the scan of segments."""
    assert stored(opened(folder)) == expected
    alone = folder.with_name("alone")
    shutil.rmtree(alone, ignore_errors=True)
    alone.mkdir()
    for path in folder.glob("*.edges"):
        shutil.copy2(path, alone)
    again = opened(alone)
    again.rebuild()
    assert {page: links for page, links in stored(again).items() if links or page in expected} == expected
    counted = StoredLinks(folder)  # what `quadloom verify` compares
    counts = dict(zip(counted._pages.tolist(), counted._counts.tolist(), strict=True))
    assert counts == {page: len(targets) for page, targets in expected.items()}
    found = links_touching(folder, list(range(PAGES)))
    pairs = {(page, target) for page, targets in expected.items() for target in targets}
    assert set(zip(found.sources.tolist(), found.targets.tolist(), strict=True)) == pairs


def test_dead_links_are_dropped_and_live_ones_stay(tmp_path: Path) -> None:
    matrix = opened(tmp_path / "links")
    expected = crawl(matrix, rounds=12)
    before = size(matrix.directory)
    while compact_segments(matrix, run_bytes=6 * SEGMENT):
        assert_links(matrix.directory, expected)
    live = matrix.live_records() * RECORD.itemsize
    assert size(matrix.directory) <= 2 * live + 3 * SEGMENT < before / 2
    generation = matrix.manifest.generation
    assert matrix.rebuild().generation == generation, "nothing is merged twice"
    expected |= crawl(matrix, rounds=1, seed=2)
    assert_links(matrix.directory, expected)
    numbers = [path.name for path in matrix.segments()]
    assert numbers == sorted(numbers) and any("-" in name for name in numbers)


def test_little_is_left_alone(tmp_path: Path) -> None:
    matrix = opened(tmp_path / "links")
    crawl(matrix, rounds=1)
    assert len(matrix.segments()) > 1
    assert compact_segments(matrix) == 0


@pytest.mark.parametrize("steps", range(9))
def test_killed_at_any_step_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """`steps`: system calls that change a folder or sync a file, before the process dies."""
    matrix = opened(tmp_path / "links")
    expected = crawl(matrix, rounds=12)
    left = [steps]

    class Killed(BaseException):
        pass

    def counted(name: str, owner: object) -> None:
        original = getattr(owner, name)

        def call(*given: object, **named: object) -> object:
            if not left[0]:
                raise Killed
            left[0] -= 1
            return original(*given, **named)

        monkeypatch.setattr(owner, name, call)

    counted("fsync", os)
    counted("replace", Path)
    counted("unlink", Path)
    counted("sync", segment_compaction)
    with pytest.raises(Killed):
        compact_segments(matrix)
    monkeypatch.undo()
    assert_links(matrix.directory, expected)
    after = opened(matrix.directory)
    after.rebuild()
    while compact_segments(after):
        pass
    assert_links(after.directory, expected)
    expected |= crawl(after, rounds=1, seed=3)
    assert_links(after.directory, expected)
    assert size(after.directory) <= 2 * after.live_records() * RECORD.itemsize + 60 * SEGMENT


def test_copies_for_other_workers_stay_as_they_were_written(tmp_path: Path) -> None:
    own = opened(tmp_path / "own", LinkExchange(tmp_path / "shared", "own"))
    other = opened(tmp_path / "other", LinkExchange(tmp_path / "shared", "other"))
    expected = crawl(own, rounds=12)
    own.publish()
    assert compact_segments(own)
    own.publish()
    names = {path.name for path in (tmp_path / "shared" / "own").iterdir()}
    assert not any("-" in name for name in names)
    other.rebuild()
    assert stored(other) == expected
