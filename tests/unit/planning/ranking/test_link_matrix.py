"""The link matrix against a dictionary of sets, through growth, replacement, crashes and slices."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadloom.model.link import LinkKind
from quadloom.planning.ranking.link_matrix import KINDS, RECORD, RESET, LinkMatrix
from quadloom.planning.ranking.usefulness import rank
from thoroughness import examples

PAGES = [(n * 0x9E3779B97F4A7C15 + 11) % (1 << 64) - (1 << 63) for n in range(40)]


def contents(matrix: LinkMatrix) -> dict[int, set[int]]:
    """What the matrix says, by fingerprint."""
    fingerprints = matrix.fingerprints()
    rows = matrix.rows()
    found = {int(name): {int(target) for target in fingerprints[rows.of(row)]} for row, name in enumerate(fingerprints)}
    return {name: targets for name, targets in found.items() if targets}


def test_kinds_have_a_byte_each() -> None:
    assert set(KINDS) == set(get_args(LinkKind)) and len(set(KINDS)) == len(KINDS) < RESET
    assert RECORD.itemsize == 17


readings = st.lists(st.tuples(st.integers(0, 39), st.lists(st.integers(0, 39), max_size=6)), max_size=12)


@settings(max_examples=examples(12, 100), deadline=None)
@given(st.lists(readings, min_size=1, max_size=4), st.integers(1, 20), st.integers(20, 400))
def test_rebuilding_in_any_portions_gives_the_last_readings(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[int, list[int]]]], at_once: int, segment: int
) -> None:
    matrix = LinkMatrix(tmp_path_factory.mktemp("links"), segment_bytes=segment, links_at_once=at_once)
    truth: dict[int, set[int]] = {}
    seen: dict[int, int] = {}
    for reading in rounds:
        for source, targets in reading:
            matrix.append(PAGES[source], [(PAGES[t], "plain") for t in targets])
            truth[PAGES[source]] = {PAGES[t] for t in targets}
        manifest = matrix.rebuild()
        assert contents(matrix) == {s: t for s, t in truth.items() if t}
        ids = matrix.ids(PAGES)
        assert manifest.pages == np.count_nonzero(ids >= 0) == len(matrix.fingerprints())
        for fingerprint, number in zip(PAGES, ids.tolist(), strict=True):
            assert number < 0 or seen.setdefault(fingerprint, number) == number  # ids never change
    matrix.close()


def test_images_and_stylesheets_do_not_vote_and_parallel_links_count_once(tmp_path: Path) -> None:
    matrix = LinkMatrix(tmp_path)
    matrix.append(1, [(2, "plain"), (2, "next"), (3, "image"), (4, "stylesheet"), (5, "feed")])
    matrix.rebuild()
    assert contents(matrix) == {1: {2, 5}}


def test_reopening_continues_and_a_torn_record_is_ignored(tmp_path: Path) -> None:
    matrix = LinkMatrix(tmp_path)
    matrix.append(1, [(2, "plain")])
    matrix.sync()
    with (tmp_path / "000001.edges").open("ab") as file:
        file.write(b"half a rec")  # the process died here
    again = LinkMatrix(tmp_path)
    again.append(2, [(1, "plain"), (3, "plain")])
    again.rebuild()
    assert contents(again) == {1: {2}, 2: {1, 3}}
    again.close()
    assert contents(LinkMatrix(tmp_path)) == {1: {2}, 2: {1, 3}}
    assert [p.name for p in sorted(tmp_path.glob("*.edges"))] == ["000001.edges", "000002.edges"]


def test_a_damaged_matrix_is_rebuilt_from_segments(tmp_path: Path) -> None:
    matrix = LinkMatrix(tmp_path)
    for page in range(1, 50):
        matrix.append(page, [(page + 1, "plain"), (page * 7 % 50 + 1, "plain")])
    matrix.rebuild()
    whole = contents(matrix)
    matrix.close()
    targets = next(tmp_path.glob("matrix-*")) / "targets"
    targets.write_bytes(targets.read_bytes()[:-3])
    again = LinkMatrix(tmp_path)
    assert again.manifest.pages == 0
    again.rebuild()
    assert contents(again) == whole


def test_empty_matrix(tmp_path: Path) -> None:
    matrix = LinkMatrix(tmp_path)
    assert matrix.rebuild().pages == 0
    assert matrix.rows().pages == 0 and not len(matrix.blocks())
    assert matrix.ids([1, 2]).tolist() == [-1, -1]


@pytest.mark.parametrize("width", [0, 64, 1000])
def test_blocks_on_disk_give_the_same_importance(tmp_path: Path, width: int) -> None:
    rng = np.random.default_rng(0)
    matrix = LinkMatrix(tmp_path, links_at_once=500)
    for page in range(900):
        matrix.append(page, [(int(t), "plain") for t in rng.integers(0, 1000, rng.integers(0, 12))])
    matrix.rebuild()
    nothing = np.zeros(matrix.manifest.pages, dtype=bool)
    expected = rank(matrix.blocks(), nothing).importance
    for _ in range(2):  # cut, then found
        got = rank(matrix.blocks(on_disk=True, width=width), nothing).importance
        assert np.abs(got - expected).sum() < 3e-9
