"""The running estimate against the fixpoint of the same web."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from quadloom.planning.ranking.importance import fixpoint
from quadloom.planning.ranking.link_blocks import LinkBlocks, LinkRows
from quadloom.planning.ranking.opic import Opic


def web(pages: int, seed: int) -> tuple[list[list[int]], sparse.csr_array]:
    rng = np.random.default_rng(seed)
    links = [sorted({int(t) for t in (rng.pareto(1.0, 8) * 9).astype(int) % pages}) for _ in range(pages)]
    links[::9] = [[] for _ in links[::9]]
    matrix = sparse.lil_array((pages, pages))
    for source, targets in enumerate(links):
        for target in targets:
            matrix[source, target] = 1.0
    return links, matrix.tocsr()


def importance(csr: sparse.csr_array) -> np.ndarray:
    return fixpoint(LinkBlocks(LinkRows(csr.indptr, csr.indices))).vector


def richest(opic: Opic) -> int:
    """The page with the most cash: reading in this order makes the estimate converge fastest."""
    pages = slice(0, opic.pages)
    return int(np.argmax(opic._cash[pages] + opic._dividend - opic._seen[pages]))


@pytest.mark.parametrize("order", ["random", "greedy"])
def test_tends_to_the_fixpoint_whatever_the_order(order: str) -> None:
    links, csr = web(150, 4)
    rng = np.random.default_rng(0)
    opic = Opic(window=1e9)
    opic.read(149, links[149], 0.0)
    for step in range(1, 15_000):
        page = int(rng.integers(150)) if order == "random" else richest(opic)
        opic.read(page, links[page], float(step))
    expected = importance(csr)
    got = opic.estimates()
    assert got.sum() == pytest.approx(1.0)
    assert np.abs(got - expected).sum() < 0.1
    assert np.corrcoef(got, expected)[0, 1] > 0.99
    assert opic.importance(3) == pytest.approx(got[3])
    assert opic.importance(10**9) == 0.0


def test_cash_is_neither_made_nor_lost() -> None:
    links, _ = web(80, 2)
    opic = Opic(window=100.0)
    opic.read(79, links[79], 0.0)
    for step in range(1000):
        opic.read(step * 7 % 80, links[step * 7 % 80], float(step))
        cash = opic._cash[:80].sum() + 80 * opic._dividend - opic._seen[:80].sum() + opic._virtual
        assert cash == pytest.approx(1.0, abs=1e-5), "but for rounding to single precision"


def test_links_to_pages_without_an_id_take_their_part() -> None:
    """A page that links to one known and three unknown pages gives a quarter to the known one."""
    whole, part = Opic(window=100.0), Opic(window=100.0)
    for opic, elsewhere in ((whole, 0), (part, 3)):
        opic.read(3, [0, 1, 2, 3], 0.0)
        before, held = opic._cash[1], opic._cash[2] + opic._dividend - opic._seen[2]
        opic.read(2, [1], 1.0, elsewhere)
        cash = opic._cash[:4].sum() + 4 * opic._dividend - opic._seen[:4].sum() + opic._virtual
        assert cash == pytest.approx(1.0, abs=1e-5), "but for rounding to single precision"
        assert opic._cash[1] == pytest.approx(before + 0.85 * held / (1 + elsewhere))


def test_a_page_that_gains_links_rises_within_a_window() -> None:
    links, csr = web(100, 7)
    opic = Opic(window=4000.0)
    opic.start(importance(csr), 0.0)
    before = opic.importance(99)
    for source in range(60):
        links[source] = [*links[source], 99]
    rng = np.random.default_rng(1)
    for step in range(1, 12_000):
        page = int(rng.integers(100))
        opic.read(page, links[page], float(step))
    assert opic.importance(99) > 3 * before


def test_new_pages_join() -> None:
    opic = Opic(window=50.0)
    opic.read(0, [1, 2], 0.0)
    opic.read(1, [5000], 1.0)
    assert opic.pages == 5001
    assert opic.importance(5000) > opic.importance(4000)
