"""The inner loops over packed links (`link_slices`), compiled by numba if it is installed.

numba is optional (the `fast` extra). `kernels()` imports and compiles on first use, since the import alone takes a
second. Without numba it returns None, and sweeps use scipy instead, half as fast and with the matrix in memory.

All loops are limited by memory bandwidth, so bytes decide: 4 per link, 4 per source value while those are in single
precision (sums are always double), and random access only to what fits into the cache.
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
Values = npt.NDArray[np.float32 | np.float64]
Degrees = npt.NDArray[np.int32 | np.float64]
Packed = tuple[npt.NDArray[np.int64], Ids]
Finish = Callable[[Vector, Vector, Values, Degrees, Vector, float, float], tuple[float, float]]
"""(gathered, current, values, degrees, jump, link_part, jump_part) → (change, sum): current = link_part · gathered +
jump_part · jump, values = current / degrees (undefined if degrees is 0). `gathered` may be overwritten."""


class Kernels(NamedTuple):
    """`forward`: gathered[target] += values[source]; `gathered` has one element more than the slice, for fillers.
    `both`: the same, and backwards[source] += useful[target]. `pack`: groups the links of a CSR matrix by
    target // width and packs them, as (offsets, words). `finish`: writes the sums of a block into the vector."""

    forward: Callable[[Ids, int, Values, Vector], None]
    both: Callable[[Ids, int, Values, Vector, Vector, Vector], None]
    pack: Callable[[npt.NDArray[np.int64], npt.NDArray[np.integer], int, int, int, npt.NDArray[np.int64]], Packed]
    finish: Finish


@lru_cache(maxsize=1)
def kernels() -> Kernels | None:
    if find_spec("numba") is None:
        return None
    import numba

    # nogil lets other threads work on the next slices; cache saves later processes the compilation.
    compiled = numba.njit(nogil=True, cache=True, boundscheck=False)
    return Kernels(
        forward=cast("Callable[..., None]", compiled(_forward)),
        both=cast("Callable[..., None]", compiled(_both)),
        pack=cast("Callable[..., Packed]", compiled(_pack)),
        finish=cast("Finish", compiled(_finish)),
    )


def _forward(links: Ids, bits: int, values: Values, gathered: Vector) -> None:
    mask = np.uint32((1 << bits) - 1)
    shift = np.uint32(bits)
    source = np.uint32(0)
    for k in range(len(links)):
        word = links[k]
        source += word >> shift
        gathered[word & mask] += values[source]


def _both(links: Ids, bits: int, values: Values, gathered: Vector, useful: Vector, backwards: Vector) -> None:
    mask = np.uint32((1 << bits) - 1)
    shift = np.uint32(bits)
    pages = np.uint32(len(useful))
    source = np.uint32(0)
    for k in range(len(links)):
        word = links[k]
        source += word >> shift
        target = word & mask
        if target < pages:  # not a filler
            gathered[target] += values[source]
            backwards[source] += useful[target]


def _finish(
    gathered: Vector,
    current: Vector,
    values: Values,
    degrees: Degrees,
    jump: Vector,
    link_part: float,
    jump_part: float,
) -> tuple[float, float]:
    """L1 change and sum of the new values, in one pass because these vectors do not fit into the cache either."""
    change = 0.0
    total = 0.0
    one = len(jump) == 1
    for i in range(len(gathered)):
        new = link_part * gathered[i] + jump_part * (jump[0] if one else jump[i])
        change += abs(new - current[i])
        total += new
        current[i] = new
        values[i] = new / degrees[i] if degrees[i] > 0 else 0.0
    return change, total


def _pack(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.integer],
    first_row: int,
    width: int,
    bits: int,
    last: npt.NDArray[np.int64],
) -> Packed:
    """`last`: source of the last link of every slice so far; updated. Two passes: count, then write."""
    most = (1 << (32 - bits)) - 1
    count = len(last)
    offsets = np.zeros(count + 1, dtype=np.int64)
    before = last.copy()
    for row in range(len(indptr) - 1):
        source = first_row + row
        for k in range(indptr[row], indptr[row + 1]):
            number = indices[k] // width
            step = source - before[number]
            offsets[number + 1] += 1 if step <= most else 1 + (step - 1) // most
            before[number] = source
    for number in range(count):
        offsets[number + 1] += offsets[number]
    place = offsets[:-1].copy()
    words = np.empty(offsets[count], dtype=np.uint32)
    for row in range(len(indptr) - 1):
        source = first_row + row
        for k in range(indptr[row], indptr[row + 1]):
            number = indices[k] // width
            step = source - last[number]
            while step > most:
                words[place[number]] = (most << bits) | width
                place[number] += 1
                step -= most
            words[place[number]] = (step << bits) | (indices[k] - number * width)
            place[number] += 1
            last[number] = source
    return offsets, words
