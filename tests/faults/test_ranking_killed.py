"""A ranking and the compaction of its segments, killed for real (SIGKILL) before each operation on a file: links and
ranks are those of before or after, and the next run ends as if nothing had happened."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from quadloom.planning.ranking.link_matrix import RECORD, LinkMatrix
from quadloom.planning.ranking.page_ranks import PageRanks
from quadloom.planning.ranking.ranking_job import RankingOrder, run_ranking
from quadloom.planning.ranking.segment_compaction import compact_segments
from quadloom.settings import FreshnessSettings

PAGES = 40
SEGMENT = 300 * RECORD.itemsize
# Raised by the interpreter before the operation (PEP 578).
OPERATIONS = frozenset(("open", "os.rename", "os.remove", "os.truncate", "os.mkdir", "os.rmdir", "os.utime", "os.link"))

Links = dict[int, set[int]]


def opened(folder: Path) -> LinkMatrix:
    return LinkMatrix(folder, segment_bytes=SEGMENT)


def appended(folder: Path, rounds: int, seed: int) -> Links:
    """Pages that are read again and again; returns the links of the last readings."""
    matrix, chance = opened(folder), np.random.default_rng(seed)
    links: Links = {}
    for _ in range(rounds):
        for page in chance.permutation(PAGES).tolist():
            targets = set(chance.integers(0, PAGES, 5).tolist())
            matrix.append(page, [(target, "plain") for target in sorted(targets)])
            links[page] = targets
    matrix.sync()
    matrix.close()
    return links


def links_of(folder: Path) -> Links:
    matrix = opened(folder)
    rows, names = matrix.rows(), matrix.fingerprints()
    return {int(name): set(names[rows.of(row)].tolist()) for row, name in enumerate(names)}


def importance_of(folder: Path) -> npt.NDArray[np.float32]:
    """By fingerprint."""
    table = np.sort(PageRanks.load(folder).table, order="fingerprint")
    assert table["fingerprint"].tolist() == list(range(PAGES))
    return np.asarray(table["importance"])


def is_near(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> bool:
    """A ranking that was killed may leave the vectors at which the next one begins."""
    return bool(np.allclose(one, other, rtol=0.02))


def ranking(folder: Path) -> None:
    run_ranking(RankingOrder(directory=str(folder), freshness=FreshnessSettings(), data_weight=1.0))


def compaction(folder: Path) -> None:
    matrix = opened(folder)
    matrix.rebuild()
    while compact_segments(matrix, run_bytes=6 * SEGMENT):
        pass


def killed_before(operation: int, work: Callable[[Path], None], folder: Path) -> bool:
    """Do the work in a child process that is killed before its n-th operation on a file in the folder. False if it has
    fewer."""
    child = os.fork()
    if not child:
        done = 0

        def count(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal done
            if event in OPERATIONS and str(arguments[0]).startswith(str(folder)):
                done += 1
                if done == operation:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(count)
            work(folder)
        except BaseException:  # a child must not go on with the tests
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


@pytest.mark.parametrize(
    "stride", [pytest.param(1, marks=[pytest.mark.slow, pytest.mark.timeout(3000)]), 5], ids=["each", "some"]
)
@pytest.mark.parametrize("work", [ranking, compaction])
def test_killed_before_an_operation(tmp_path: Path, work: Callable[[Path], None], stride: int) -> None:
    source = tmp_path / "source"
    appended(source, 1, seed=1)
    ranking(source)
    before = importance_of(source)
    expected = appended(source, 9, seed=2)
    complete = shutil.copytree(source, tmp_path / "complete")
    ranking(complete)
    after = importance_of(complete)
    assert links_of(complete) == expected and not is_near(before, after)
    operation = 1
    while killed_before(operation, work, folder := shutil.copytree(source, tmp_path / str(operation))):
        assert any(is_near(importance_of(folder), ranks) for ranks in (before, after))
        work(folder)
        ranking(folder)
        assert links_of(folder) == expected, operation
        assert is_near(importance_of(folder), after), operation
        operation += stride
    assert operation > 20, "it has as many operations"
    if work is compaction:
        assert size(folder) < size(source)


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.edges"))
