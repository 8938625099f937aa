"""Lookups in sorted arrays of keys, such as the fingerprints of pages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class KeyPlaces(NamedTuple):
    """`place`: the index of each key where `known`, else any index."""

    place: npt.NDArray[np.intp]
    known: npt.NDArray[np.bool_]


def positions(sorted_keys: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> KeyPlaces:
    """Where in `sorted_keys` each of the wanted keys is."""
    if not len(sorted_keys):
        return KeyPlaces(np.zeros(wanted.shape, dtype=np.intp), np.zeros(wanted.shape, dtype=bool))
    place = np.minimum(np.searchsorted(sorted_keys, wanted), len(sorted_keys) - 1)
    return KeyPlaces(place, np.asarray(sorted_keys[place] == wanted))
