"""Importance and usefulness against dense linear algebra that shares no line with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from quadloom.errors import UsageError
from quadloom.planning.ranking.link_blocks import LinkBlocks, LinkRows
from quadloom.planning.ranking.usefulness import RankingRules, RankVectors, promoted, rank, weights
from thoroughness import examples


def blocks(csr: sparse.csr_array, width: int = 0) -> LinkBlocks:
    """Row i holds the out-links of page i."""
    return LinkBlocks(LinkRows(csr.indptr, csr.indices), width=width)


def fixpoint(links: LinkBlocks, start: np.ndarray | None = None, **rules: Any) -> RankVectors:
    """Of importance: without data, usefulness is 0."""
    known = None if start is None else RankVectors(start, np.zeros(len(start)), 0, 0.0)
    return rank(links, np.zeros(links.pages, dtype=bool), RankingRules(**rules), known)


def importance(csr: sparse.csr_array, **rules: Any) -> np.ndarray:
    return fixpoint(blocks(csr), **rules).importance


def random_web(pages: int, links: int, seed: int, *, dangling: float = 0.2) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    source = rng.integers(0, pages, links)
    target = (rng.pareto(1.0, links) * pages / 20).astype(int) % pages
    keep = ~np.isin(source, np.flatnonzero(rng.random(pages) < dangling))
    matrix = sparse.coo_array((np.ones(keep.sum()), (source[keep], target[keep])), shape=(pages, pages)).tocsr()
    matrix.data[:] = 1.0
    return matrix


def dense_pagerank(csr: sparse.csr_array, damping: float, jump: np.ndarray) -> np.ndarray:
    """The stationary vector of the walk, solved directly."""
    matrix = csr.toarray()
    degree = matrix.sum(axis=1)
    walk = np.where(degree[:, None] > 0, matrix / np.where(degree > 0, degree, 1)[:, None], jump[None, :])
    system = np.eye(len(jump)) - damping * walk.T
    return np.linalg.solve(system, (1 - damping) * jump)


def paper_power_iteration(csr: sparse.csr_array, damping: float, jump: np.ndarray) -> np.ndarray:
    """Equations (10) and (11) to the letter."""
    matrix = csr.toarray()
    degree = matrix.sum(axis=1)
    spread = (matrix / np.where(degree > 0, degree, 1)[:, None]).T
    vector = np.full(len(jump), 1 / len(jump))
    for _ in range(1200):
        new = damping * spread @ vector + (1 - damping) * jump
        before, vector = vector, new * vector.sum() / new.sum()
        if np.abs(vector - before).sum() < 1e-13:
            break
    return vector


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dangling", ["personalize", "normalize"])
def test_agrees_with_dense_algebra(seed: int, dangling: str) -> None:
    rng = np.random.default_rng(seed)
    pages = int(rng.integers(50, 700))
    csr = random_web(pages, pages * int(rng.integers(1, 12)), seed, dangling=float(rng.uniform(0, 0.6)))
    damping = float(rng.uniform(0.5, 0.95))
    jump = rng.random(pages) * (rng.random(pages) < 0.7) + 1e-9 if seed % 2 else np.ones(pages)
    got = importance(csr, damping=damping, personalization=jump, dangling=dangling)
    expected = (dense_pagerank if dangling == "personalize" else paper_power_iteration)(csr, damping, jump / jump.sum())
    assert got.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.abs(got - expected).sum() < 1e-8


@st.composite
def small_webs(draw: st.DrawFn) -> tuple[sparse.csr_array, np.ndarray, float]:
    """Links (loops too), a personalisation and a damping."""
    pages = draw(st.integers(1, 12))
    pairs = draw(st.lists(st.tuples(*[st.integers(0, pages - 1)] * 2), max_size=40))
    source, target = (np.array([p[k] for p in pairs], dtype=int) for k in (0, 1))
    jump = np.array(draw(st.lists(st.floats(0.01, 10.0), min_size=pages, max_size=pages)))
    csr = sparse.coo_array((np.ones(len(pairs)), (source, target)), shape=(pages, pages)).tocsr()
    csr.data[:] = 1.0  # parallel links count once
    return csr, jump, draw(st.sampled_from([0.3, 0.85, 0.95]))


@settings(max_examples=examples(25, 150), deadline=None)
@given(small_webs())
def test_any_small_web(web: tuple[sparse.csr_array, np.ndarray, float]) -> None:
    csr, jump, damping = web
    share = jump / jump.sum()
    found = importance(csr, damping=damping, personalization=jump, dangling="personalize")
    assert np.abs(found - dense_pagerank(csr, damping, share)).sum() < 1e-8
    # By this rule two parts of a web without links between them settle slowly: small steps are far from the end.
    found = importance(csr, damping=damping, personalization=jump, dangling="normalize", tol=1e-12)
    assert np.abs(found - paper_power_iteration(csr, damping, share)).sum() < 1e-8


def test_blocks_of_any_width_give_the_same() -> None:
    csr = random_web(3000, 20_000, 5)
    expected = importance(csr, tol=1e-12)
    structured = np.arange(3000) % 5 == 0
    useful = rank(blocks(csr), structured).usefulness
    for width in (7, 1000, 5000):
        got = fixpoint(blocks(csr, width))
        assert got.error <= 1e-9
        assert np.abs(got.importance - expected).sum() < 3e-9
        assert np.abs(rank(blocks(csr, width), structured).usefulness - useful).sum() < 3e-9


def test_gauss_seidel_and_warm_starts_save_sweeps() -> None:
    csr = random_web(4000, 40_000, 8)
    jacobi = fixpoint(blocks(csr, 4000))
    narrow = fixpoint(blocks(csr, 50))
    assert narrow.iterations < 0.75 * jacobi.iterations
    changed = csr.tolil()
    changed[3777, 3900] = 1.0  # two light pages: little importance moves
    warm = fixpoint(blocks(changed.tocsr()), start=narrow.importance, tol=1e-6)
    cold = fixpoint(blocks(changed.tocsr()), tol=1e-6)
    assert warm.iterations < 0.75 * cold.iterations
    assert np.abs(warm.importance - cold.importance).sum() < 2e-6
    grown = fixpoint(blocks(random_web(4100, 40_000, 8)), start=narrow.importance)
    assert len(grown.importance) == 4100


@pytest.mark.parametrize("dangling", ["personalize", "normalize"])
def test_the_error_is_an_upper_bound_at_any_tolerance(dangling: str) -> None:
    csr = random_web(4000, 40_000, 9)
    exact = importance(csr, dangling=dangling, tol=1e-13)
    for tol in (1e-3, 1e-6, 1e-9, 1e-12):
        found = fixpoint(blocks(csr, 500), dangling=dangling, tol=tol)
        assert np.abs(found.importance - exact).sum() <= found.error <= tol


@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-9])
def test_the_error_is_honest_on_webs_of_mostly_dangling_pages(tol: float) -> None:
    """As a young crawl has them: nine pages of ten are known but not read, and r·c is far above 1."""
    rng = np.random.default_rng(4)
    source, target = rng.integers(0, 500, 5000), rng.integers(0, 5000, 5000)
    csr = sparse.coo_array((np.ones(5000), (source, target)), shape=(5000, 5000)).tocsr()
    csr.data[:] = 1.0
    found = fixpoint(blocks(csr), dangling="normalize", tol=tol)
    expected = importance(csr, dangling="normalize", tol=1e-13)
    assert found.error / 50 < np.abs(found.importance - expected).sum() < found.error <= tol


@pytest.mark.parametrize(("dangling", "least", "most"), [("personalize", 0.0, 0.05), ("normalize", 0.5, 1.0)])
def test_a_site_that_links_to_no_other_gathers_importance_only_by_the_papers_rule(
    dangling: str, least: float, most: float
) -> None:
    """As in a crawl: most known URLs are not read, and one small site was read to its end."""
    known, read, closed = 5_000, 1_500, 20
    source = np.repeat(np.arange(closed, read), 10)
    target = np.random.default_rng(1).integers(0, known, len(source))
    inside = np.argwhere(~np.eye(closed, dtype=bool))
    rows, columns = np.concatenate([source, inside[:, 0]]), np.concatenate([target, inside[:, 1]])
    csr = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(known, known)).tocsr()
    found = fixpoint(blocks(csr), dangling=dangling, tol=1e-6)
    assert least <= found.importance[:closed].sum() <= most


def test_the_default_is_pagerank_and_takes_as_many_sweeps_as_its_damping_asks_for() -> None:
    csr = random_web(3_000, 16_000, 5, dangling=1 / 6)
    jump = np.full(3_000, 1 / 3_000)
    assert np.abs(importance(csr) - dense_pagerank(csr, 0.85, jump)).sum() < 1e-8
    assert fixpoint(blocks(csr), tol=1e-6).iterations <= 90


def test_webs_without_links_and_with_loops_only() -> None:
    jump = np.array([1.0, 2.0, 5.0])
    for links in (sparse.csr_array((3, 3)), sparse.csr_array(np.eye(3))):
        for dangling in ("normalize", "personalize"):
            found = importance(links, personalization=jump, dangling=dangling)
            np.testing.assert_allclose(found, jump / 8, atol=1e-9)
    np.testing.assert_allclose(importance(sparse.csr_array((1, 1))), [1.0])
    one_way = sparse.csr_array(np.array([[0.0, 1.0], [0.0, 0.0]]))
    expected = dense_pagerank(one_way, 0.85, np.full(2, 0.5))
    np.testing.assert_allclose(importance(one_way, dangling="personalize"), expected, atol=1e-9)


def test_forms_of_the_same_input() -> None:
    csr = random_web(300, 2000, 6)
    expected = importance(csr, personalization=np.arange(300.0))
    for scale in (1e-300, 7.0, 1e300):
        np.testing.assert_allclose(importance(csr, personalization=np.arange(300.0) * scale), expected, atol=1e-12)
    np.testing.assert_allclose(importance(csr, personalization=list(range(300))), expected, atol=1e-12)
    np.testing.assert_allclose(importance(csr, personalization={n: n for n in range(300)}), expected, atol=1e-12)
    only = np.zeros(300)
    only[7] = 1.0
    np.testing.assert_allclose(importance(csr, personalization={7: 0.1}), importance(csr, personalization=only))
    wide = csr.copy()
    wide.indptr, wide.indices = csr.indptr.astype(np.int64), csr.indices.astype(np.int64)
    np.testing.assert_allclose(importance(wide, personalization=np.arange(300.0)), expected, atol=1e-9)
    np.testing.assert_allclose(importance(csr, damping=0.0, personalization=only), only, atol=1e-9)
    nearly_undamped = importance(csr, damping=0.995, dangling="personalize")
    assert np.abs(nearly_undamped - dense_pagerank(csr, 0.995, np.full(300, 1 / 300))).sum() < 1e-8


def test_bad_input_is_refused() -> None:
    csr = random_web(10, 30, 1)
    wrong: dict[str, Any]
    for wrong in (
        {"damping": 1.0},
        {"damping": -0.1},
        {"damping": np.nan},
        {"personalization": np.full(10, np.nan)},
        {"personalization": np.full(10, np.inf)},
        {"personalization": {10: 1.0}},
        {"personalization": {}},
        {"personalization": np.zeros(10)},
        {"personalization": np.ones(9)},
        {"start": -np.ones(10)},
        {"dangling": "drop"},
    ):
        with pytest.raises(ValueError) as caught:
            importance(csr, **wrong)
        assert isinstance(caught.value, UsageError)


def figure_one() -> tuple[sparse.csr_array, np.ndarray, dict[str, int]]:
    """A web as the text describes the paper's figure 1: B is linked by many, among them important pages, and leads to
    no XML; A points to important XML pages; no page points to C."""
    names = ["A", "B", "C", "h1", "h2", "h3", "h4", "h5", "h6", "x1", "x2", "x3"]
    at = {name: i for i, name in enumerate(names)}
    links = [
        ("h1", "B"), ("h2", "B"), ("h3", "B"), ("h4", "B"), ("A", "x1"), ("A", "x2"), ("h1", "A"),
        ("x1", "x2"), ("x2", "x1"), ("h2", "h1"), ("B", "h5"), ("B", "h6"), ("h3", "x3"), ("x3", "x1"), ("h4", "h2"),
    ]  # fmt: skip
    matrix = sparse.lil_array((len(at), len(at)))
    for a, b in links:
        matrix[at[a], at[b]] = 1.0
    structured = np.array([name.startswith("x") or name == "C" for name in at])
    return matrix.tocsr(), structured, at


def test_the_papers_figure() -> None:
    csr, structured, at = figure_one()
    ranking = rank(blocks(csr), structured)
    html = [i for name, i in at.items() if name[0] in "ABh"]
    assert at["B"] == max(html, key=lambda i: ranking.importance[i])  # important …
    assert ranking.usefulness[at["B"]] == 0.0  # … and useless
    assert at["A"] == max(html, key=lambda i: ranking.usefulness[i])
    assert ranking.usefulness[at["h1"]] > 0.0  # indirectly, through A
    assert ranking.usefulness[at["h5"]] == 0.0
    # C is known by publication alone: a virtual page that nothing links to points at it and gives it importance.
    extended = sparse.block_array([[csr, None], [None, sparse.csr_array((1, 1))]]).tolil()
    extended[len(at), at["C"]] = 1.0
    jump = np.append(np.ones(len(at)), 3.0)
    published = importance(extended.tocsr(), personalization=jump)
    assert published[at["C"]] > 2 * ranking.importance[at["C"]]
    lifted = promoted(ranking.importance, np.array([at["C"]]), 0.2)
    assert np.mean(lifted > lifted[at["C"]]) <= 0.2


@pytest.mark.parametrize("variant", ["mean", "many"])
def test_usefulness_is_the_solution_of_its_equation(variant: str) -> None:
    csr = random_web(300, 2000, 12)
    rng = np.random.default_rng(1)
    structured = rng.random(300) < 0.3
    known = importance(csr)
    matrix = csr.toarray()
    degree = matrix.sum(axis=1, keepdims=True) if variant == "mean" else matrix.sum(axis=0, keepdims=True)
    back = np.divide(matrix, degree, out=np.zeros_like(matrix), where=degree > 0)
    expected = np.linalg.solve(np.eye(300) - 0.85 * back, 0.15 * np.where(structured, known, 0.0))
    together = rank(blocks(csr), structured, RankingRules(variant=variant))  # type: ignore[arg-type]
    assert np.abs(together.usefulness - expected).sum() < 1e-8
    assert np.abs(together.importance - known).sum() < 1e-8


def test_only_one_variant_rewards_many() -> None:
    """A hub with 50 data links among 100 against a page with one data link."""
    matrix = sparse.lil_array((153, 153))
    hub, single = 0, 1
    matrix[hub, 2:102] = 1.0  # 50 structured (2 … 51), 50 not
    matrix[single, 102] = 1.0
    structured = np.zeros(153, dtype=bool)
    structured[2:52] = structured[102] = True
    mean = rank(blocks(matrix.tocsr()), structured, RankingRules(variant="mean")).usefulness
    many = rank(blocks(matrix.tocsr()), structured, RankingRules(variant="many")).usefulness
    assert mean[hub] < mean[single]
    assert many[hub] > 5 * many[single]


def test_chi_sets_the_balance_of_kinds() -> None:
    csr = random_web(500, 4000, 2)
    structured = np.arange(500) % 4 == 0
    ranking = rank(blocks(csr), structured)
    for chi in (0.5, 1.0, 3.0):
        scaled = weights(ranking.importance, ranking.usefulness, structured, chi)
        assert scaled[~structured].mean() == pytest.approx(1.0)
        assert scaled[structured].mean() == pytest.approx(chi)
    nothing = np.zeros(500, dtype=bool)
    plain = weights(ranking.importance, np.zeros(500), nothing)
    np.testing.assert_allclose(plain, ranking.importance * 500)
