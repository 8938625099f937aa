"""Importance in tasks: the fixpoint of one process, also after an interruption, and taken up by the next crawl."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from quadloom.errors import SettingsError, UsageError
from quadloom.maintenance.parallel.importance import ParallelRanking, sum_part
from quadloom.planning.ranking.link_matrix import LinkMatrix
from quadloom.planning.ranking.page_ranks import PageRanks, Ranking
from quadloom.planning.ranking.ranker import PageRanker
from quadloom.planning.ranking.ranking_process import RankingInThread
from quadloom.planning.ranking.usefulness import RankingRules, RankVectors, Variant, rank
from quadloom.process.bulk_tasks import BulkJob, Runner, TaskResult, in_processes
from quadloom.settings import FreshnessSettings, Settings
from quadloom.stores.opened import Stores
from quadloom.warehouse import Warehouse

PAGES, WIDTH = 600, 140
TOLERANCE = 1e-6


def filled(folder: Path, pages: int = PAGES) -> LinkMatrix:
    """Pages with up to ten links each, one in six without any."""
    chance = np.random.default_rng(5)
    matrix = LinkMatrix(folder)
    for page in range(pages):
        if page % 6:
            targets = chance.integers(0, pages, int(chance.integers(1, 10))) ** 2 // pages  # some are popular
            matrix.append(page * 7919, [(int(target) * 7919, "plain") for target in targets])
    matrix.sync()
    matrix.rebuild()
    return matrix


def here(failing_after: int = -1) -> Runner:
    """Does the tasks in this process, in the reverse order. `failing_after`: so many passes."""
    passes = 0

    def runner(job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
        nonlocal passes
        if passes == failing_after:
            raise KeyboardInterrupt
        passes += 1
        stores: Stores = None  # type: ignore[assignment]
        for task in reversed(tasks):
            yield TaskResult(task, sum_part(stores, task, job.argument))

    return runner


def solved(folder: Path, runner: Runner, variant: Variant = "mean", *, resume: bool = False) -> RankVectors:
    matrix = LinkMatrix(folder)
    structured = np.arange(matrix.manifest.pages) % 11 == 0
    solve = ParallelRanking(folder, Settings(), runner, resume=resume, width=WIDTH)
    return solve(matrix, structured, RankingRules(variant=variant, tol=TOLERANCE), None)


@pytest.mark.parametrize("variant", ["mean", "many"])
def test_tasks_find_the_fixpoint_of_one_process(tmp_path: Path, variant: Variant) -> None:
    matrix = filled(tmp_path)
    expected = rank(
        matrix.blocks(), np.arange(matrix.manifest.pages) % 11 == 0, RankingRules(variant=variant, tol=TOLERANCE)
    )
    found = solved(tmp_path, here(), variant)
    assert np.abs(found.importance - expected.importance).sum() < 2 * TOLERANCE
    assert np.abs(found.usefulness - expected.usefulness).sum() < 2 * TOLERANCE
    assert found.usefulness.sum() > 0.01 and np.ptp(found.importance) > 0.001
    assert not (tmp_path / "importance.tasks").exists(), "nothing is left to resume"


def test_an_interrupted_ranking_goes_on_where_it_was(tmp_path: Path) -> None:
    filled(tmp_path)
    whole = solved(tmp_path, here())
    with pytest.raises(KeyboardInterrupt):
        solved(tmp_path, here(failing_after=10))
    passes = 0

    def counted(job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
        nonlocal passes
        passes += 1
        return run(job, tasks)

    run = here()
    found = solved(tmp_path, counted, resume=True)
    assert np.abs(found.importance - whole.importance).sum() < 2 * TOLERANCE
    assert np.abs(found.usefulness - whole.usefulness).sum() < 2 * TOLERANCE
    assert passes <= whole.iterations - 10 + 1
    with pytest.raises(KeyboardInterrupt):
        solved(tmp_path, here(failing_after=3))
    matrix = LinkMatrix(tmp_path)
    matrix.append(1, [(2, "plain")])
    matrix.close()
    matrix.rebuild()
    with pytest.raises(UsageError, match="links were added"):
        solved(tmp_path, here(), resume=True)


def test_the_next_ranking_of_a_crawl_takes_up_what_was_computed(tmp_path: Path) -> None:
    filled(tmp_path, 400).close()

    def ranker() -> PageRanker:
        return PageRanker(tmp_path, FreshnessSettings(), lambda: [0, 7919], list, runner=RankingInThread())

    first = ranker()
    assert first.run(save_to=str(tmp_path)).pages
    saved = Ranking.saved(tmp_path, 0.0)
    assert saved is not None
    ranking = saved[0]
    assert len(ranking.fingerprints) == len(np.unique(ranking.fingerprints))
    ranking._replace(importance=ranking.importance[::-1].copy()).save(tmp_path)
    assert len(PageRanks.load(tmp_path).table), "the site and `why` show it at once"
    at = (tmp_path / "ranking.npz").stat().st_mtime
    crawl = ranker()
    crawl.recompute(at + 1.0)
    given = crawl.weigh([int(ranking.fingerprints[3])], [False])[0]
    assert given is not None
    assert given.importance == pytest.approx(ranking.importance[-4] * len(ranking.fingerprints), rel=1e-4)
    moved = crawl.take_moved()
    assert moved is not None and len(moved), "the pages are described and scheduled anew"
    crawl.recompute(at + 2.0)
    own = crawl.weigh([int(ranking.fingerprints[3])], [False])[0]
    assert own is not None
    assert own.importance == pytest.approx(ranking.importance[3] * len(ranking.fingerprints), rel=0.11), "taken once"
    late = ranker()
    late.recompute(at + 1e6)
    found = late.weigh([int(ranking.fingerprints[3])], [False])[0]
    assert found is not None
    assert found.importance == pytest.approx(own.importance, rel=0.11), "a ranking of last week is not news"
    assert Ranking.saved(tmp_path / "nowhere", 0.0) is None


def test_a_warehouse_is_ranked_by_processes(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "w", settings=Settings()) as warehouse:
        assert warehouse.rank().pages == 0
        filled(warehouse.stores.places.links, 300).close()
        alone = Ranking.saved(warehouse.stores.places.links, 0.0)
        assert alone is None
        assert warehouse.rank().pages
        alone = Ranking.saved(warehouse.stores.places.links, 0.0)
        seen: list[int] = []
        (warehouse.stores.places.links / "vectors.npy").unlink()  # a start from them needs a single pass
        assert warehouse.rank(runner=in_processes(1), progress=lambda done, _error: seen.append(done)).pages
        together = Ranking.saved(warehouse.stores.places.links, 0.0)
    assert alone is not None and together is not None
    assert seen == list(range(1, len(seen) + 1)) and len(seen) > 3
    assert np.abs(alone[0].importance - together[0].importance).sum() < 3e-6


@pytest.mark.cluster
def test_a_cluster_must_share_its_links(tmp_path: Path) -> None:
    from postgres_server import postgres
    from quadloom.settings import StoreSettings

    stores = StoreSettings(
        frontier=postgres().url(), catalog="postgresql:", text="postgresql:", archive=f"warc://{tmp_path}/a"
    )
    with (
        Warehouse.open(tmp_path / "w", settings=Settings(stores=stores)) as warehouse,
        pytest.raises(SettingsError, match="links"),
    ):
        warehouse.rank()
