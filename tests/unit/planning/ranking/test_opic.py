"""The running estimate against the fixpoint of the same web."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from quadloom.planning.ranking.link_blocks import LinkBlocks, LinkRows
from quadloom.planning.ranking.opic import Opic, PageRead
from quadloom.planning.ranking.usefulness import rank


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
    return rank(LinkBlocks(LinkRows(csr.indptr, csr.indices)), np.zeros(csr.shape[0], dtype=bool)).importance


def richest(opic: Opic) -> int:
    """The page with the most cash: reading in this order makes the estimate converge fastest."""
    return int(np.argmax(opic.cash()))


def total_cash(opic: Opic) -> float:
    """Cash is neither made nor lost, but for rounding to single precision."""
    return float(opic.cash().sum()) + opic.virtual


def importance_of(opic: Opic, page: int) -> float:
    return float(opic.importance(np.array([page]))[0])


@pytest.mark.parametrize("order", ["random", "greedy"])
def test_tends_to_the_fixpoint_whatever_the_order(order: str) -> None:
    links, csr = web(150, 4)
    rng = np.random.default_rng(0)
    opic = Opic(window=1e9)
    opic.read([PageRead(149, links[149])], 0.0)
    for step in range(1, 15_000):
        page = int(rng.integers(150)) if order == "random" else richest(opic)
        opic.read([PageRead(page, links[page])], float(step))
    expected = importance(csr)
    got = opic.estimates()
    assert got.sum() == pytest.approx(1.0)
    assert np.abs(got - expected).sum() < 0.1
    assert np.corrcoef(got, expected)[0, 1] > 0.99
    assert importance_of(opic, 3) == pytest.approx(got[3])
    assert importance_of(opic, 10**9) == 0.0


def test_cash_is_neither_made_nor_lost() -> None:
    links, _ = web(80, 2)
    opic = Opic(window=100.0)
    opic.read([PageRead(79, links[79])], 0.0)
    for step in range(1000):
        opic.read([PageRead(step * 7 % 80, links[step * 7 % 80])], float(step))
        assert total_cash(opic) == pytest.approx(1.0, abs=1e-5)


def test_links_to_pages_without_an_id_take_their_part() -> None:
    """A page that links to one known and three unknown pages gives a quarter to the known one."""
    whole, part = Opic(window=100.0), Opic(window=100.0)
    for opic, elsewhere in ((whole, 0), (part, 3)):
        opic.read([PageRead(3, [0, 1, 2, 3])], 0.0)
        before = opic.cash()
        opic.read([PageRead(2, [1], elsewhere)], 1.0)
        assert total_cash(opic) == pytest.approx(1.0, abs=1e-5)
        gained = opic.cash() - before
        assert gained[1] - gained[0] == pytest.approx(0.85 * before[2] / (1 + elsewhere)), "0 has the dividend only"


def test_a_page_that_gains_links_rises_within_a_window() -> None:
    links, csr = web(100, 7)
    opic = Opic(window=4000.0)
    opic.start(importance(csr), 0.0)
    before = importance_of(opic, 99)
    for source in range(60):
        links[source] = [*links[source], 99]
    rng = np.random.default_rng(1)
    for step in range(1, 12_000):
        page = int(rng.integers(100))
        opic.read([PageRead(page, links[page])], float(step))
    assert importance_of(opic, 99) > 3 * before


def test_new_pages_join() -> None:
    opic = Opic(window=50.0)
    opic.read([PageRead(0, [1, 2])], 0.0)
    opic.read([PageRead(1, [5000])], 1.0)
    assert opic.pages == 5001
    assert importance_of(opic, 5000) > importance_of(opic, 4000)
