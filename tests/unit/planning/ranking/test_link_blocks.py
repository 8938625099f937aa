"""Blocks have exactly the links of the matrix, however they were cut, in memory and on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadloom.planning.ranking import link_blocks
from quadloom.planning.ranking.link_blocks import Block, LinkBlocks, LinkRows, block_width
from thoroughness import examples


def rows_of(pages: int, pairs: list[tuple[int, int]]) -> LinkRows:
    ordered = sorted(set(pairs))
    degrees = np.bincount([source for source, _ in ordered], minlength=pages)
    return LinkRows(np.concatenate([[0], np.cumsum(degrees)]), np.array([t for _, t in ordered], dtype=np.int32))


def random_rows(pages: int, degree: int) -> LinkRows:
    chance = np.random.default_rng(3)
    pairs = zip(chance.integers(0, pages, pages * degree), chance.integers(0, pages, pages * degree), strict=True)
    return rows_of(pages, [(int(source), int(target)) for source, target in pairs])


def links_of(block: Block) -> list[tuple[int, int]]:
    """(source, target) in the order of the block; sources ascend."""
    inside = [
        (int(source), block.low + int(target))
        for piece in block.pieces
        for source, target in zip(piece.col, piece.row, strict=True)
    ]
    assert [source for source, _ in inside] == sorted(source for source, _ in inside)
    assert all(block.low <= target < block.high for _, target in inside)
    return inside


@settings(max_examples=examples(25, 200), deadline=None)
@given(
    st.integers(1, 60).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=50))
    ),
    st.integers(1, 80),
    st.integers(1, 20),
)
def test_blocks_have_the_links(
    tmp_path_factory: pytest.TempPathFactory, given: tuple[int, list[tuple[int, int]]], width: int, at_once: int
) -> None:
    pages, pairs = given
    rows = rows_of(pages, pairs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link_blocks, "_CHUNK", at_once)
        patch.setattr(link_blocks, "_PIECE", at_once)
        blocks = LinkBlocks(rows, width=width)
        folder = tmp_path_factory.mktemp("cut") / "blocks"
        on_disk = LinkBlocks(rows, width=width, folder=folder)
        found_again = LinkBlocks(rows, width=width, folder=folder)
        assert sorted(link for block in blocks for link in links_of(block)) == sorted(set(pairs))
        for other in (on_disk, found_again):
            assert [links_of(block) for block in other] == [links_of(block) for block in blocks]
        assert blocks.indegree().tolist() == [len({s for s, t in pairs if t == page}) for page in range(pages)]
        assert blocks.outdegree.tolist() == [len({t for s, t in pairs if s == page}) for page in range(pages)]


@pytest.mark.parametrize("width", [0, 70, 1 << 20])
def test_sums_flow_both_ways(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    rows = random_rows(5000, 9)
    monkeypatch.setattr(link_blocks, "_PIECE", 700)
    blocks = LinkBlocks(rows, width=width)
    chance = np.random.default_rng(1)
    values, worth = chance.random(5000), chance.random(5000)
    sources = np.repeat(np.arange(5000), np.diff(rows.starts))
    incoming = np.concatenate([block.incoming(values) for block in blocks])
    np.testing.assert_allclose(incoming, np.bincount(rows.targets, weights=values[sources], minlength=5000))
    outgoing = np.bincount(sources, weights=worth[rows.targets], minlength=5000)
    np.testing.assert_allclose(blocks.outgoing(worth), outgoing)
    np.testing.assert_allclose(blocks.outgoing(worth, 123, 4567), outgoing[123:4567])


def test_a_page_may_have_more_links_than_one_product_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(50, [(7, target) for target in range(50)] + [(8, 7)])
    monkeypatch.setattr(link_blocks, "_PIECE", 10)
    assert LinkBlocks(rows).outgoing(np.ones(50)).tolist() == [0.0] * 7 + [50.0, 1.0] + [0.0] * 41


def test_an_interrupted_cut_is_repeated(tmp_path: Path) -> None:
    rows = random_rows(300, 4)
    (tmp_path / "blocks.unfinished").mkdir()
    (tmp_path / "blocks.unfinished" / "sources.npy").write_bytes(b"torn")
    links = [link for block in LinkBlocks(rows, folder=tmp_path / "blocks") for link in links_of(block)]
    assert len(links) == len(rows.targets)
    assert [path.name for path in tmp_path.iterdir()] == ["blocks"]


def test_blocks_are_neither_tiny_nor_beyond_the_cache() -> None:
    assert [block_width(n) for n in (0, 10_000, 1_000_000, 2_000_000_000)] == [1 << 10, 1 << 10, 62_500, 1 << 17]
