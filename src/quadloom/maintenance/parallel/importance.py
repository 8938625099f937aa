"""Importance and usefulness of all pages in tasks: each does one part of one pass over the link matrix.

The matrix is on disk, cut into slices by target (`quadloom.planning.ranking.link_slices`). The task of a slice sums
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
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from quadloom.errors import UsageError
from quadloom.maintenance.jobs import warehouse_job
from quadloom.model.wire import decode, encode
from quadloom.planning.ranking.importance import ImportanceIteration
from quadloom.planning.ranking.link_kernels import Degrees, Finish
from quadloom.planning.ranking.link_matrix import LinkMatrix
from quadloom.planning.ranking.link_slices import FileSlices, slice_width
from quadloom.planning.ranking.page_ranks import Mask, Vector
from quadloom.planning.ranking.sweeps import Block, Csr, Kind, finish
from quadloom.planning.ranking.usefulness import RankingRules, RankVectors, UsefulnessIteration
from quadloom.process.bulk_tasks import Runner
from quadloom.process.durable import make_folder, replacing, write_file
from quadloom.settings import Settings
from quadloom.stores.opened import Stores

_FOLDER = "importance.tasks"
_LINKS = 1 << 20  # unpacked at once
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
        directory: Path,
        path: Path,
        settings: Settings,
        runner: Runner,
        *,
        resume: bool,
        progress: Callable[[int, float], None] = lambda _number, _error: None,
        width: int = 0,
    ) -> None:
        self._directory = directory
        self._folder = directory / _FOLDER
        self._path = path
        self._settings = settings
        self._runner = runner
        self._resume = resume
        self._progress = progress
        self._width = width

    def __call__(
        self, links: Csr | FileSlices, structured: Mask, rules: RankingRules, start: RankVectors | None
    ) -> RankVectors:
        matrix = LinkMatrix(self._directory)
        width = self._width or slice_width(matrix.manifest.pages)
        sweeps = _TaskSweeps(matrix.slices(width), matrix)
        begun, saved = self._begin(matrix)
        last = saved if saved is not None else start
        known = last.importance if last else None
        forward = ImportanceIteration(sweeps, rules.damping, rules.personalization, rules.dangling, known)
        useful = saved.usefulness if saved else None
        backward = UsefulnessIteration(sweeps, structured, rules.variant, rules.damping, useful)
        number, error = begun.number, float("inf")
        while error > rules.tol and number < _PASSES:
            self._pass(matrix, width, number, forward, backward)
            error = max(forward.end(), backward.end(forward.current, forward.total))
            number += 1
            self._save(msgspec.structs.replace(begun, number=number), forward, backward)
            self._progress(number, error)
        result = RankVectors(forward.result(), backward.current, number, error)
        shutil.rmtree(self._folder, ignore_errors=True)
        return result

    def _pass(
        self,
        matrix: LinkMatrix,
        width: int,
        number: int,
        forward: ImportanceIteration,
        backward: UsefulnessIteration,
    ) -> None:
        with replacing(self._folder / "values.npy") as stream:
            np.save(stream, np.stack([forward.values, backward.worth]))
        argument = _Argument(str(self._directory.absolute()), matrix.manifest.generation, width, number)
        job = warehouse_job("importance", self._path, self._settings, encode(argument))
        pages = matrix.manifest.pages
        tasks = [f"part-{part:05d}" for part in range(-(-pages // width))]
        for result in self._runner(job, tasks):
            low = int(result.task.rpartition("-")[2]) * width
            high = min(low + width, pages)
            sums = np.frombuffer(result.data, dtype=np.float64).reshape(2, high - low)
            forward.settle(low, high, sums[0].copy())  # the iteration writes into it
            backward.backwards[low:high] = sums[1]

    def _begin(self, matrix: LinkMatrix) -> tuple[_Begun, RankVectors | None]:
        """The job, and where it was if it is resumed."""
        manifest = matrix.manifest
        fresh = _Begun(manifest.generation, manifest.pages, manifest.links)
        if self._resume and (self._folder / "job").exists():
            begun = decode((self._folder / "job").read_bytes(), _Begun)
            if msgspec.structs.replace(begun, number=0) != fresh:
                raise UsageError(
                    "links were added since the ranking was interrupted", hint="leave --resume out to begin again"
                )
            if begun.number:
                with np.load(self._folder / "state.npz") as state:
                    return begun, RankVectors(state["importance"], state["usefulness"], begun.number, float("inf"))
        shutil.rmtree(self._folder, ignore_errors=True)
        make_folder(self._folder)
        return fresh, None

    def _save(self, begun: _Begun, forward: ImportanceIteration, backward: UsefulnessIteration) -> None:
        with replacing(self._folder / "state.npz") as stream:
            np.savez(stream, importance=forward.result(), usefulness=backward.current)
        write_file(self._folder / "job", encode(begun))


def sum_part(_stores: Stores, task: str, argument: bytes) -> bytes:
    """The task of one slice: sums over the in-links of its pages, then over their out-links, as doubles."""
    given = decode(argument, _Argument)
    matrix = LinkMatrix(Path(given.directory))
    if matrix.manifest.generation != given.generation:
        raise UsageError("the links were merged meanwhile", hint="let one command at a time compute importance")
    part = matrix.slices(given.width).slice(int(task.rpartition("-")[2]))
    forward, backward = np.load(Path(given.directory) / _FOLDER / "values.npy", mmap_mode="r")
    sums = np.zeros((2, part.high - part.low))
    for sources, targets in part.chunks(_LINKS):
        sums[0] += np.bincount(targets, weights=forward[sources], minlength=part.high - part.low)
    for first, after, linked in matrix.rows(part.low, part.high, _LINKS):
        rows = np.repeat(np.arange(after - first), np.diff(matrix.starts(first, after)))
        sums[1, first - part.low : after - part.low] = np.bincount(
            rows, weights=backward[linked], minlength=after - first
        )
    return sums.tobytes()


class _TaskSweeps:
    """What the iterations ask of sweeps; the passes themselves are done by tasks."""

    def __init__(self, slices: FileSlices, matrix: LinkMatrix) -> None:
        self.pages = slices.pages
        self.degrees: Degrees = slices.outdegree
        self.dangling: npt.NDArray[np.intp] = np.flatnonzero(slices.outdegree == 0)
        self.threads = 1
        self.coarse: Kind = np.float64
        self.finish: Finish = finish
        self._matrix = matrix

    def blocks(self) -> Iterator[Block]:
        return iter(())

    def indegree(self) -> Vector:
        counts = np.zeros(self.pages)
        for links in self._matrix.rows(0, self.pages, _LINKS):
            counts += np.bincount(links.targets, minlength=self.pages)
        return counts
