"""The speed of the importance fixpoint, compared with scipy's sparse product: `quadloom bench importance`.

`compare` takes turns: one product by scipy, one step of a power iteration written with scipy, one sweep by Quadloom,
and so on; each figure is the best of its turns, because other programs on the machine can only add time. CPU seconds
count all threads; wall seconds are what a user waits. Uniformly random links are the worst case for any cache, and the
best one for the number of sweeps, which `count_sweeps` counts on a web of sites as well.

`under_limit` proves that the matrix need not fit into memory: one process cuts it into blocks on disk, another computes
the fixpoint from them, and may allocate, beyond what its libraries hold already, less than the matrix takes.
RLIMIT_DATA counts private memory, but not the blocks that are mapped from disk.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
from scipy import sparse

from quadloom.errors import InputError
from quadloom.planning.ranking.importance import ImportanceIteration
from quadloom.planning.ranking.link_blocks import Integers, LinkBlocks, LinkRows, Vector
from quadloom.planning.ranking.usefulness import RankingRules, rank

_MEBI = 1 << 20
_DAMPING = 0.85
_LINK_BYTES = 8  # of a link in a block
_PAGE_BYTES = 4 + 4 * 8 + 2  # the out-degree; importance, what it passes on, usefulness and its next values; masks
_ROOM = 64 * _MEBI  # under a limit: the weights of one product (32 MiB), masks and one-time temporaries
_HOME = 1000  # pages per site, in the web that counts sweeps


class SweepSeconds(msgspec.Struct, frozen=True):
    """The best of several turns."""

    cpu: float
    wall: float


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """`product`: scipy's alone; `power_step`: with the vector arithmetic of an iteration; `sweep`: Quadloom's. Memory
    in MiB."""

    pages: int
    links: int
    product: SweepSeconds
    power_step: SweepSeconds
    sweep: SweepSeconds
    cutting: float
    scipy_matrix: float
    own_matrix: float
    peak: float

    @property
    def cpu_ratio(self) -> float:
        return self.product.cpu / self.sweep.cpu

    @property
    def wall_ratio(self) -> float:
        return self.product.wall / self.sweep.wall


class SweepCounts(msgspec.Struct, frozen=True):
    """Sweeps to a tolerance: Jacobi's (one block) and block Gauss–Seidel's (64 blocks), on random and site-like links.
    Gauss–Seidel saves less if links stay within their block, because a block is computed at once."""

    tolerance: float
    random_jacobi: int
    random_blocks: int
    near_jacobi: int
    near_blocks: int


class LimitedFixpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A fixpoint in a process that may allocate `limit` MiB beyond its libraries, `whole` with them."""

    limit: float
    whole: float
    own_matrix: float
    scipy_matrix: float
    sweeps: int
    total: float
    seconds: float


def compare(pages: int, degree: int, *, turns: int = 4) -> Comparison:
    """Time a sweep over `pages` × `degree` random links, and scipy's product over the same links."""
    csr = random_links(pages, degree)
    began = time.process_time()
    links = LinkBlocks(LinkRows(csr.indptr, csr.indices))
    cutting = time.process_time() - began
    # The links are random, so the matrix itself is as good as its transpose, which would cost another copy of it.
    vector = np.full(pages, 1.0 / pages)
    iteration = ImportanceIteration(links, _DAMPING, None, "normalize", None)
    times: dict[str, list[SweepSeconds]] = {"product": [], "power": [], "sweep": []}
    iteration.sweep()
    for _ in range(turns):
        times["product"].append(_timed(lambda: csr @ vector))
        times["power"].append(_timed(lambda: _power_step(csr, vector, degree)))
        times["sweep"].append(_timed(iteration.sweep))
    best = {name: SweepSeconds(min(t.cpu for t in all_), min(t.wall for t in all_)) for name, all_ in times.items()}
    return Comparison(
        pages=pages,
        links=pages * degree,
        product=best["product"],
        power_step=best["power"],
        sweep=best["sweep"],
        cutting=cutting,
        scipy_matrix=_scipy_bytes(pages, degree) / _MEBI,
        own_matrix=pages * degree * _LINK_BYTES / _MEBI,
        peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def count_sweeps(pages: int, degree: int, tolerance: float = 1e-9) -> SweepCounts:
    """Gauss–Seidel over blocks against Jacobi, by the paper's rule, on random links and on a web with nine of ten links
    within a site."""
    rng = np.random.default_rng(2)
    sources = np.repeat(np.arange(pages), degree)
    home = sources // _HOME * _HOME + rng.integers(0, _HOME, len(sources))
    anywhere = rng.integers(0, pages, len(sources))
    near = np.where(rng.random(len(sources)) < 0.9, home, anywhere) % pages
    indptr = np.arange(0, pages * degree + 1, degree)

    def sweeps(targets: Integers, width: int) -> int:
        links = LinkBlocks(LinkRows(indptr, targets.astype(np.int32)), width=width)
        return rank(links, np.zeros(pages, dtype=bool), RankingRules(dangling="normalize", tol=tolerance)).iterations

    found = [sweeps(targets, width) for targets in (anywhere, near) for width in (pages, max(pages // 64, 1))]
    return SweepCounts(tolerance, *found)


def under_limit(pages: int, degree: int, tolerance: float = 1e-6) -> LimitedFixpoint:
    """Compute the fixpoint from disk, in a process that may not allocate as much as the matrix takes."""
    with tempfile.TemporaryDirectory(prefix="quadloom-bench-") as name:
        csr = random_links(pages, degree)
        np.save(Path(name) / "starts.npy", csr.indptr)
        np.save(Path(name) / "targets.npy", csr.indices)
        LinkBlocks(LinkRows(csr.indptr, csr.indices), folder=Path(name) / "blocks")
        limit = pages * _PAGE_BYTES + _ROOM
        matrix = pages * degree * _LINK_BYTES
        if limit >= matrix:
            raise InputError(
                f"the limit, {limit >> 20} MiB, is no smaller than the matrix", hint="take more pages or more links"
            )
        given = [name, str(limit), str(tolerance)]
        done = subprocess.run(
            [sys.executable, "-m", "quadloom_lab.scheduling.importance_speed", *given],
            check=True,
            stdout=subprocess.PIPE,
        )
    whole, sweeps, total, seconds = msgspec.json.decode(done.stdout, type=tuple[float, int, float, float])
    return LimitedFixpoint(
        limit=limit / _MEBI,
        whole=whole / _MEBI,
        own_matrix=matrix / _MEBI,
        scipy_matrix=_scipy_bytes(pages, degree) / _MEBI,
        sweeps=sweeps,
        total=total,
        seconds=seconds,
    )


def random_links(pages: int, degree: int) -> sparse.csr_array:
    """A web of uniformly random links, `degree` per page; all have weight 1."""
    rng = np.random.default_rng(0)
    kind = np.int32 if pages * degree < 2**31 else np.int64
    indptr = np.arange(0, pages * degree + 1, degree, dtype=kind)
    targets = rng.integers(0, pages, pages * degree, dtype=np.int32)
    return sparse.csr_array((np.ones(len(targets)), targets, indptr), shape=(pages, pages))


def _power_step(csr: sparse.csr_array, vector: Vector, degree: int) -> float:
    """The obvious code with scipy: the new vector, normalised, and its change."""
    new = _DAMPING * (csr @ (vector / degree)) + (1.0 - _DAMPING) / len(vector)
    new /= new.sum()
    return float(np.abs(new - vector).sum())


def _timed(work: Callable[[], object]) -> SweepSeconds:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return SweepSeconds(time.process_time() - cpu, time.perf_counter() - wall)


def _scipy_bytes(pages: int, degree: int) -> int:
    return pages * degree * (8 + 4) + (pages + 1) * 4


def _private_bytes() -> int:
    """What RLIMIT_DATA counts: VmData of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    raise InputError("this system does not tell how much memory a process holds", hint="Linux does")


def _limited(directory: Path, limit: int, tolerance: float) -> tuple[float, int, float, float]:
    # Load everything first, so that the memory in use now belongs to the libraries.
    rank(LinkBlocks(LinkRows(np.array([0, 1, 1]), np.array([1], dtype=np.int32))), np.zeros(2, dtype=bool))
    whole = _private_bytes() + limit
    resource.setrlimit(resource.RLIMIT_DATA, (whole, whole))
    starts, targets = (np.asarray(np.load(directory / f"{name}.npy", mmap_mode="r")) for name in ("starts", "targets"))
    links = LinkBlocks(LinkRows(starts, targets), folder=directory / "blocks")
    began = time.process_time()
    found = rank(links, np.zeros(links.pages, dtype=bool), RankingRules(tol=tolerance))
    seconds = (time.process_time() - began) / found.iterations
    return whole, found.iterations, float(found.importance.sum()), seconds


if __name__ == "__main__":
    answer = _limited(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
    sys.stdout.buffer.write(msgspec.json.encode(answer))
