"""The inner loops over links, compiled by numba where it is installed.

numba is optional (the `fast` extra). `kernels()` imports and compiles on first use, since the import alone takes a
second; without numba it returns None, and callers use scipy or numpy, which is correct and within a factor of three.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint32]
Vector = npt.NDArray[np.float64]
Partition = tuple[npt.NDArray[np.int64], Ids, Ids]


class Kernels(NamedTuple):
    """`forward`: gathered[target] += values[source]. `both`: the same, and backwards[source] += useful[target].
    `partition`: links grouped by target // width, as (offsets, sources, targets within their slice).
    `finish`: takes a finished block over into the vector."""

    forward: Callable[[Ids, Ids, Vector, Vector], None]
    both: Callable[[Ids, Ids, Vector, Vector, Vector, Vector], None]
    partition: Callable[[npt.NDArray[np.int64], npt.NDArray[np.integer], int, int], Partition]
    finish: Callable[[Vector, Vector, Vector, Vector, Vector, float, float], tuple[float, float]]


@lru_cache(maxsize=1)
def kernels() -> Kernels | None:
    if find_spec("numba") is None:
        return None
    import numba

    # nogil lets a monitor thread live through a long sweep; cache spares later processes the compilation.
    compiled = numba.njit(nogil=True, cache=True, boundscheck=False)
    return Kernels(
        forward=cast("Callable[..., None]", compiled(_forward)),
        both=cast("Callable[..., None]", compiled(_both)),
        partition=cast("Callable[..., Partition]", compiled(_partition)),
        finish=cast("Callable[..., tuple[float, float]]", compiled(_finish)),
    )


def _forward(sources: Ids, targets: Ids, values: Vector, gathered: Vector) -> None:
    for k in range(len(sources)):
        gathered[targets[k]] += values[sources[k]]


def _both(sources: Ids, targets: Ids, values: Vector, gathered: Vector, useful: Vector, backwards: Vector) -> None:
    for k in range(len(sources)):
        source, target = sources[k], targets[k]
        gathered[target] += values[source]
        backwards[source] += useful[target]


def _finish(
    gathered: Vector, current: Vector, values: Vector, share: Vector, jump: Vector, link_part: float, jump_part: float
) -> tuple[float, float]:
    """current = link_part · gathered + jump_part · jump, values = current · share.
    Returns the L1 change and the sum of the new values. One pass, since these vectors do not fit the cache either."""
    change = 0.0
    total = 0.0
    one = len(jump) == 1
    for i in range(len(gathered)):
        new = link_part * gathered[i] + jump_part * (jump[0] if one else jump[i])
        change += abs(new - current[i])
        total += new
        current[i] = new
        values[i] = new * share[i]
    return change, total


def _partition(indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.integer], width: int, count: int) -> Partition:
    offsets = np.zeros(count + 1, dtype=np.int64)
    for k in range(len(indices)):
        offsets[indices[k] // width + 1] += 1
    for number in range(count):
        offsets[number + 1] += offsets[number]
    place = offsets[:-1].copy()
    sources = np.empty(len(indices), dtype=np.uint32)
    targets = np.empty(len(indices), dtype=np.uint32)
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            number = indices[k] // width
            sources[place[number]] = row
            targets[place[number]] = indices[k] - number * width
            place[number] += 1
    return offsets, sources, targets
