"""The bench of the fixpoint, and its figures: faster than scipy's product, within less memory than the matrix."""

from __future__ import annotations

import pytest

from quadloom.errors import InputError
from quadloom_lab.scheduling.importance_speed import compare, count_sweeps, random_links, under_limit


def test_comparison_states_what_it_measured() -> None:
    found = compare(20_000, 5, turns=1)
    assert (found.pages, found.links) == (20_000, 100_000)
    assert found.product.cpu > 0 and found.sweep.cpu > 0 and found.peak > found.scipy_matrix > found.own_matrix > 0
    assert found.cpu_ratio == found.product.cpu / found.sweep.cpu
    csr = random_links(1000, 3)
    assert csr.shape == (1000, 1000) and (csr.sum(axis=1) == 3).all()


def test_gauss_seidel_saves_sweeps_on_random_links() -> None:
    counts = count_sweeps(20_000, 10)
    assert counts.random_blocks < counts.random_jacobi
    assert counts.near_blocks <= counts.near_jacobi


def test_a_limit_that_proves_nothing_is_refused() -> None:
    with pytest.raises(InputError):
        under_limit(1000, 2)


@pytest.mark.slow
def test_a_sweep_is_as_fast_as_scipys_product() -> None:
    """5 million pages × 10 links. Equally fast is what is measured; a busy machine may take a part of it."""
    found = compare(5_000_000, 10, turns=6)
    assert found.cpu_ratio >= 0.7
    assert found.peak < 3000


@pytest.mark.slow
def test_five_million_pages_in_less_memory_than_their_matrix() -> None:
    proof = under_limit(5_000_000, 10)
    assert proof.limit < proof.own_matrix < proof.scipy_matrix
    assert proof.total == pytest.approx(1.0, abs=1e-9)
