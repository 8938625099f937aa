"""Packed slices hold exactly the links of the matrix, however they were cut, compiled or not, fillers included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from quadloom.planning.ranking import link_kernels
from quadloom.planning.ranking.link_slices import LinkSlices, MemorySlices, slice_width, write_slices
from thoroughness import examples


def links_of(slices: LinkSlices) -> list[tuple[int, int]]:
    """(source, target) in order of the slices; sources ascend within each."""
    found: list[tuple[int, int]] = []
    for part in slices:
        inside = [
            (int(s), part.low + int(t))
            for sources, targets in part.chunks(7)
            for s, t in zip(sources, targets, strict=True)
        ]
        assert [s for s, _ in inside] == sorted(s for s, _ in inside)
        assert all(part.low <= t < part.high for _, t in inside)
        found += inside
    return found


def web(pages: int, pairs: list[tuple[int, int]]) -> sparse.csr_array:
    rows, columns = (np.array([p[k] for p in sorted(set(pairs))], dtype=int) for k in (0, 1))
    return sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(pages, pages)).tocsr()


@settings(max_examples=examples(25, 200), deadline=None)
@given(
    st.integers(1, 60).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=50))
    ),
    st.integers(1, 80),
    st.integers(1, 20),
)
def test_slices_hold_the_links(
    tmp_path_factory: pytest.TempPathFactory, given: tuple[int, list[tuple[int, int]]], width: int, at_once: int
) -> None:
    pages, pairs = given
    csr = web(pages, pairs)
    slices = MemorySlices(csr.indptr, csr.indices, width)
    assert sorted(links_of(slices)) == sorted(set(pairs))
    on_disk = write_slices(tmp_path_factory.mktemp("cut"), csr.indptr, csr.indices, width, links_at_once=at_once)
    assert links_of(on_disk) == links_of(slices) and on_disk.links == slices.links == csr.nnz
    assert on_disk.outdegree.tolist() == slices.outdegree.tolist()


def sparse_web() -> sparse.csr_array:
    """A wide slice leaves few bits for the distance of sources, so far sources need fillers."""
    pages = 1 << 20
    rng = np.random.default_rng(3)
    rows = np.sort(rng.integers(0, pages, 120_000))
    rows[:3] = [0, 0, 1]
    rows[-1] = pages - 1
    columns = rng.integers(0, pages, len(rows))
    matrix = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(pages, pages)).tocsr()
    return matrix[:, :]


@pytest.mark.parametrize("width", [1 << 14, 1 << 20, (1 << 30) + 1])
def test_distant_sources_are_reached_over_fillers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    csr = sparse_web()
    compiled = MemorySlices(csr.indptr, csr.indices, width)
    on_disk = write_slices(tmp_path, csr.indptr, csr.indices, width, links_at_once=50_000)
    monkeypatch.setattr("quadloom.planning.ranking.link_slices.kernels", lambda: None)
    plain = MemorySlices(csr.indptr, csr.indices, width)
    if width > 1 << 20:
        assert len(plain.words) > 4 * plain.links  # one bit is left for the distance
    np.testing.assert_array_equal(compiled.words, plain.words)
    np.testing.assert_array_equal(compiled.offsets, plain.offsets)
    np.testing.assert_array_equal(np.concatenate([part.words for part in on_disk]), plain.words)
    sources, targets = (np.concatenate(column) for column in zip(*unpacked(plain), strict=True))
    order = np.lexsort((targets, sources))
    np.testing.assert_array_equal(sources[order], np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr)))
    np.testing.assert_array_equal(targets[order], csr.indices)


def unpacked(slices: LinkSlices) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(sources, part.low + targets) for part in slices for sources, targets in part.chunks(1 << 16)]


@pytest.mark.skipif(link_kernels.kernels() is None, reason="numba is not installed")
def test_compiled_loops_skip_fillers() -> None:
    csr = sparse_web()
    fast = link_kernels.kernels()
    assert fast is not None
    rng = np.random.default_rng(1)
    values, worth = rng.random(csr.shape[0]), rng.random(csr.shape[0])
    for width in (1 << 18, (1 << 22) - 1):
        gathered, backwards = np.zeros(csr.shape[0]), np.zeros(csr.shape[0])
        for part in MemorySlices(csr.indptr, csr.indices, width):
            buffer = np.zeros(width + 1)
            fast.forward(part.words, part.bits, values, buffer)
            again = np.zeros(part.high - part.low)
            fast.both(part.words, part.bits, values, again, worth[part.low : part.high], backwards)
            np.testing.assert_array_equal(again, buffer[: part.high - part.low])
            gathered[part.low : part.high] = again
        np.testing.assert_allclose(gathered, csr.T @ values, rtol=1e-12)
        np.testing.assert_allclose(backwards, csr @ worth, rtol=1e-12)


def test_slices_are_neither_tiny_nor_beyond_the_cache() -> None:
    assert [slice_width(n) for n in (0, 10_000, 10_000_000, 2_000_000_000)] == [1 << 17, 1 << 17, 156_250, 1 << 18]
