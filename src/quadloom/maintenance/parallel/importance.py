"""Importance and usefulness of all pages in tasks: each does one part of one pass over the link matrix.

The matrix is on disk, cut into blocks by target (`quadloom.planning.ranking.link_blocks`). The task of a block sums
what its pages receive over their in-links, and what they collect over their out-links, from the values of all pages,
which are a file as well. The process that runs the job puts the sums together, writes the next values and begins the
next pass, until the fixpoint is reached: the one that a single process finds, to the same tolerance. A job that was
interrupted is resumed with the values of its last complete pass.

    <links>/importance.tasks/job        which matrix this is, and the number of complete passes
    <links>/importance.tasks/state.npz  importance and usefulness after them
    <links>/importance.tasks/values.npy what every page passes on in the current pass: forwards, backwards
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from quadloom.errors import UsageError
from quadloom.maintenance.parallel.jobs import warehouse_job
from quadloom.model.wire import decode, encode
from quadloom.planning.ranking.importance import ImportanceIteration
from quadloom.planning.ranking.link_blocks import LinkBlocks, Vector
from quadloom.planning.ranking.link_matrix import LinkMatrix, Manifest
from quadloom.planning.ranking.page_ranks import Mask
from quadloom.planning.ranking.usefulness import RankingRules, RankVectors, UsefulnessIteration
from quadloom.process.bulk_tasks import Runner
from quadloom.process.durable import make_folder, replacing, write_file
from quadloom.settings import Settings
from quadloom.stores.opened import Stores

_FOLDER = "importance.tasks"
_PASSES = 10_000


class _Argument(msgspec.Struct, frozen=True):
    """`directory`: of the link matrix. `number`: of the pass, so that the results of two are never confused."""

    directory: str
    generation: int
    width: int
    number: int


class _Begun(msgspec.Struct, frozen=True):
    generation: int
    pages: int
    links: int
    number: int = 0


class ParallelRanking:
    """A `quadloom.planning.ranking.ranker.Solver` that has the passes done by a runner. `progress` gets the number of
    complete passes and the estimated error."""

    def __init__(
        self,
        path: Path,
        settings: Settings,
        runner: Runner,
        *,
        resume: bool,
        progress: Callable[[int, float], None] = lambda _number, _error: None,
        width: int = 0,
    ) -> None:
        self._path = path
        self._settings = settings
        self._runner = runner
        self._resume = resume
        self._progress = progress
        self._width = width

    def __call__(
        self, matrix: LinkMatrix, structured: Mask, rules: RankingRules, start: RankVectors | None
    ) -> RankVectors:
        links = matrix.blocks(on_disk=True, width=self._width)
        folder = matrix.directory / _FOLDER
        begun, saved = self._begin(matrix.manifest, folder)
        last = saved if saved is not None else start
        known = last.importance if last else None
        forward = ImportanceIteration(links, rules.damping, rules.personalization, rules.dangling, known)
        useful = saved.usefulness if saved else None
        backward = UsefulnessIteration(links, structured, rules.variant, rules.damping, useful)
        number, error = begun.number, float("inf")
        while error > rules.tol and number < _PASSES:
            outgoing = self._pass(matrix, links, number, forward, backward)
            error = max(forward.end(), backward.end(outgoing, forward.current, forward.total))
            number += 1
            with replacing(folder / "state.npz") as stream:
                np.savez(stream, importance=forward.result(), usefulness=backward.current)
            write_file(folder / "job", encode(msgspec.structs.replace(begun, number=number)))
            self._progress(number, error)
        result = RankVectors(forward.result(), backward.current, number, error)
        shutil.rmtree(folder, ignore_errors=True)
        return result

    def _pass(
        self,
        matrix: LinkMatrix,
        links: LinkBlocks,
        number: int,
        forward: ImportanceIteration,
        backward: UsefulnessIteration,
    ) -> Vector:
        """Write the new importance; returns the sums over out-links."""
        with replacing(matrix.directory / _FOLDER / "values.npy") as stream:
            np.save(stream, np.stack([forward.values, backward.worth]))
        argument = _Argument(str(matrix.directory.absolute()), matrix.manifest.generation, links.width, number)
        job = warehouse_job("importance", self._path, self._settings, encode(argument))
        outgoing = np.empty(links.pages)
        for result in self._runner(job, [f"part-{part:05d}" for part in range(len(links))]):
            low = int(result.task.rpartition("-")[2]) * links.width
            high = min(low + links.width, links.pages)
            sums = np.frombuffer(result.data, dtype=np.float64).reshape(2, high - low)
            forward.settle(low, high, sums[0].copy())
            outgoing[low:high] = sums[1]
        return outgoing

    def _begin(self, manifest: Manifest, folder: Path) -> tuple[_Begun, RankVectors | None]:
        """The job, and where it was if it is resumed."""
        fresh = _Begun(manifest.generation, manifest.pages, manifest.links)
        if self._resume and (folder / "job").exists():
            begun = decode((folder / "job").read_bytes(), _Begun)
            if msgspec.structs.replace(begun, number=0) != fresh:
                raise UsageError(
                    "links were added since the ranking was interrupted", hint="leave --resume out to begin again"
                )
            if begun.number:
                with np.load(folder / "state.npz") as state:
                    return begun, RankVectors(state["importance"], state["usefulness"], begun.number, float("inf"))
        shutil.rmtree(folder, ignore_errors=True)
        make_folder(folder)
        return fresh, None


def sum_part(_stores: Stores, task: str, argument: bytes) -> bytes:
    """The task of one block: sums over the in-links of its pages, then over their out-links, as doubles."""
    given = decode(argument, _Argument)
    matrix = LinkMatrix(Path(given.directory))
    if matrix.manifest.generation != given.generation:
        raise UsageError("the links were merged meanwhile", hint="let one command at a time compute importance")
    links = matrix.blocks(on_disk=True, width=given.width)
    part = links.block(int(task.rpartition("-")[2]))
    forward, backward = np.load(matrix.directory / _FOLDER / "values.npy", mmap_mode="r")
    return np.concatenate([part.incoming(forward), links.outgoing(backward, part.low, part.high)]).tobytes()
