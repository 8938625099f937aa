"""Seconds per iteration of the importance fixpoint beside scipy's sparse product, and under a memory limit.

    python tests/bench/bench_importance.py [PAGES] [LINKS_PER_PAGE] [--disk]

Default: 2,000,000 pages with 10 links each. 20,000,000 × 10 is the figure of the issue and needs about 5 GiB.
`--disk` cuts the matrix into slice files and runs the fixpoint in a process whose memory is limited (RLIMIT_DATA counts
private memory, not file mappings) to less than the size of the matrix.

CPU seconds count all threads, because the machine may be shared; wall seconds are what a user waits. scipy multiplies
the matrix of in-links, as a straightforward implementation would.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from quadloom.scheduling.importance import fixpoint, importance_of_slices
from quadloom.scheduling.link_sweeps import SliceSweeps
from quadloom.scheduling.usefulness import rank
from quadloom.stores.link_kernels import kernels
from quadloom.stores.link_slices import FileSlices, MemorySlices, slice_width, write_slices


def random_links(pages: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """CSR arrays of a random web: uniform targets are the worst case for any cache."""
    rng = np.random.default_rng(0)
    kind = np.int32 if pages * degree < 2**31 else np.int64
    return np.arange(0, pages * degree + 1, degree, dtype=kind), rng.integers(0, pages, pages * degree, dtype=np.int32)


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def scipy_seconds(indptr: np.ndarray, targets: np.ndarray, repeats: int = 4) -> tuple[float, float]:
    pages = len(indptr) - 1
    matrix = sparse.csr_array((np.ones(len(targets)), targets, indptr), shape=(pages, pages))
    vector = np.random.default_rng(1).random(pages)
    best = (float("inf"), float("inf"))
    for _ in range(repeats):
        began, wall = time.process_time(), time.perf_counter()
        matrix @ vector
        best = min(best[0], time.process_time() - began), min(best[1], time.perf_counter() - wall)
    return best


def in_memory(pages: int, degree: int) -> None:
    indptr, targets = random_links(pages, degree)
    product, product_wall = scipy_seconds(indptr, targets)
    print(f"{pages:,} pages × {degree} links; numba {'installed' if kernels() else 'not installed'}")
    print(f"scipy's product        {product:7.3f} s CPU {product_wall:7.3f} s wall")
    began = time.process_time()
    sweeps = SliceSweeps(MemorySlices(indptr, targets, slice_width(pages)))
    cut = time.process_time() - began
    del indptr, targets
    fixpoint(sweeps, max_iterations=1)  # compiles
    began, wall = time.process_time(), time.perf_counter()
    timed = fixpoint(sweeps, tol=1e-6)
    each = (time.process_time() - began) / timed.iterations
    wall = (time.perf_counter() - wall) / timed.iterations
    print(f"importance, a sweep    {each:7.3f} s CPU {wall:7.3f} s wall, {sweeps.threads} threads")
    print(f"  {product / each:.2f} × and {product_wall / wall:.2f} × as fast as scipy")
    print(f"  {timed.iterations} sweeps to 1e-6, cut into slices once in {cut:.1f} s")
    rank(MemorySlices(np.array([0, 1, 1]), np.array([1], dtype=np.int32), 2), np.array([True, False]))  # compiles
    began = time.process_time()
    both = rank(sweeps.slices, np.arange(pages) % 5 == 0, max_iterations=3, tol=0.0)
    print(f"with usefulness        {(time.process_time() - began) / both.iterations:7.3f} s")
    print(f"peak memory of the whole run, scipy's matrix included: {peak_mib():,.0f} MiB")


def on_disk(pages: int, degree: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        indptr, targets = random_links(pages, degree)
        began = time.process_time()
        slices = write_slices(Path(name), indptr, targets, 1 << 18)
        print(f"cutting to disk {time.process_time() - began:.1f} s")
        np.save(Path(name) / "outdegree.npy", slices.outdegree)
        matrix = slices.links * 8
        del indptr, targets
        # Three vectors, the out-degrees, and 200 MiB for one slice and the libraries (numpy, scipy, numba, LLVM).
        limit = pages * (8 * 3 + 4) + (200 << 20)
        print(f"matrix {matrix / 2**20:,.0f} MiB, limit {limit / 2**20:,.0f} MiB")
        if limit >= matrix:
            print("the limit is no smaller than the matrix: take more pages or more links")
        subprocess.run(
            [sys.executable, __file__, str(pages), str(degree), "--limited", name, "--limit", str(limit)],
            check=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # its second thread alone reserves 80 MiB
        )


def limited(pages: int, directory: Path, limit: int) -> None:
    importance_of_slices(MemorySlices(np.array([0, 1, 1]), np.array([1], dtype=np.int32), 2))  # load the libraries
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # counts what they hold as well
    slices = FileSlices(directory, pages, 1 << 18, np.load(directory / "outdegree.npy"))
    began, wall = time.process_time(), time.perf_counter()
    found = importance_of_slices(slices, tol=1e-6)
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    print(
        f"importance from disk under the limit: {found.iterations} sweeps, {seconds / found.iterations:.3f} s CPU and "
        f"{wall / found.iterations:.3f} s wall each, sum {found.vector.sum():.9f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="?", type=int, default=2_000_000)
    parser.add_argument("degree", nargs="?", type=int, default=10)
    parser.add_argument("--disk", action="store_true")
    parser.add_argument("--limited", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.limited is not None:
        limited(given.pages, given.limited, given.limit)
    elif given.disk:
        on_disk(given.pages, given.degree)
    else:
        in_memory(given.pages, given.degree)


if __name__ == "__main__":
    main()
