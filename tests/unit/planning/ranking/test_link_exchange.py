"""Importance over the links of several workers is the importance that one machine computes from all of them."""

from __future__ import annotations

import os
from array import array
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from quadloom.model.url import fingerprint
from quadloom.planning.ranking.link_exchange import LinkExchange
from quadloom.planning.ranking.link_matrix import RECORD, LinkMatrix
from quadloom.planning.ranking.ranker import PageRanker
from quadloom.planning.ranking.ranking_process import RankingInThread
from quadloom.settings import FreshnessSettings

NOW = 1_000_000.0
PAGES = 400
KEYS = [fingerprint(f"https://a.example/{n}") for n in range(PAGES)]


def graph(seed: int) -> dict[int, list[int]]:
    """A web with popular pages, and some pages without links."""
    chance = np.random.default_rng(seed)
    targets = (chance.pareto(1.0, (PAGES, 8)) * 5).astype(int) % PAGES
    return {n: sorted(set(targets[n].tolist()) - {n}) for n in range(PAGES) if n % 11}


def ranker(folder: Path, exchange: LinkExchange | None = None, memory: int = 1 << 30) -> PageRanker:
    settings = FreshnessSettings(importance_memory=memory)
    return PageRanker(folder, settings, lambda: KEYS[::9], lambda: (), exchange=exchange, runner=RankingInThread())


def read(ranking: PageRanker, page: int, links: list[int]) -> None:
    ranking.append(KEYS[page], array("q", [KEYS[n] for n in links]).tobytes())


def importance(ranking: PageRanker) -> npt.NDArray[np.float64]:
    """The last fixpoint, by page. What is published leaves out small moves since the one before."""
    vector, _ = np.load(ranking._directory / "vectors.npy")
    ids = LinkMatrix(ranking._directory).ids(KEYS)
    return np.where(ids >= 0, vector[ids], 0.0)


def alone(folder: Path, links: dict[int, list[int]]) -> npt.NDArray[np.float64]:
    ranking = ranker(folder)
    for page, targets in links.items():
        read(ranking, page, targets)
    ranking.flush()
    ranking.recompute(NOW)
    ranking.close()
    return importance(ranking)


@pytest.mark.parametrize("memory", [1 << 30, 100])  # in memory, and from slices on disk
def test_workers_rank_as_one_machine_does(tmp_path: Path, memory: int) -> None:
    links = graph(1)
    workers = [ranker(tmp_path / f"w{n}", LinkExchange(tmp_path / "shared", f"w{n}"), memory=memory) for n in range(3)]
    for page, targets in links.items():
        read(workers[page % 3], page, targets)
    for _ in range(2):  # the first of them sees no links of the others yet
        for worker in workers:
            worker.flush()
            worker.recompute(NOW)
    single = alone(tmp_path / "single", links)
    assert single.sum() == pytest.approx(1.0)
    for worker in workers:
        assert np.abs(importance(worker) - single).max() < 1e-4
        worker.close()


def test_a_page_that_moved_has_the_links_of_its_last_reading(tmp_path: Path) -> None:
    first, second = (ranker(tmp_path / name, LinkExchange(tmp_path / "shared", name)) for name in ("a", "b"))
    read(first, 0, [1, 2])
    read(first, 5, [6])
    first.flush()
    first.recompute(NOW)
    first.close()
    for path in (*(tmp_path / "a").glob("*.edges"), *(tmp_path / "shared").rglob("*.edges")):
        os.utime(path, (1000, 1000))
    read(second, 0, [3])
    second.flush()
    second.recompute(NOW)
    matrix = LinkMatrix(tmp_path / "b")
    (row,) = matrix.ids([KEYS[0]])
    targets = matrix.fingerprints()[matrix.rows().of(row)]
    assert targets.tolist() == [KEYS[3]]
    second.close()


def test_a_copy_is_continued_and_a_torn_record_is_ignored(tmp_path: Path) -> None:
    own = LinkMatrix(tmp_path / "own", exchange=LinkExchange(tmp_path / "shared", "own"))
    other = LinkMatrix(tmp_path / "other", exchange=LinkExchange(tmp_path / "shared", "other"))
    own.append(1, [(2, "plain"), (3, "plain")])
    own.sync()
    own.publish()
    (copy,) = (tmp_path / "shared").rglob("*.edges")
    whole = copy.read_bytes()
    copy.write_bytes(whole[: RECORD.itemsize * 2 + 5])  # a crash in the middle of the copy
    assert other.rebuild().links == 1
    own.append(4, [(1, "plain")])
    own.sync()
    own.publish()
    assert copy.read_bytes()[: len(whole)] == whole
    assert other.rebuild().links == 3
    assert other.rebuild().generation == other.manifest.generation  # nothing is new


def test_a_directory_that_is_away_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "shared").write_text("a file in the way")
    ranking = ranker(tmp_path / "w", LinkExchange(tmp_path / "shared", "w"))
    read(ranking, 0, [1])
    ranking.flush()
    ranking.recompute(NOW)
    assert importance(ranking)[1] > 0
    ranking.close()
