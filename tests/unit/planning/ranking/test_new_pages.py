"""Ids of new pages: the same as a dict gives, in a tenth of its memory."""

from __future__ import annotations

import tracemalloc

import numpy as np

from quadloom.planning.ranking.new_pages import NewPages


def test_ids_are_those_of_a_dict() -> None:
    chance = np.random.default_rng(1)
    new, expected = NewPages(100, 20_000), dict[int, int]()
    for _ in range(60):
        keys = chance.integers(-12_000, 12_000, 1000)
        for key in keys.tolist():
            if len(expected) < 20_000:
                expected.setdefault(key, 100 + len(expected))
        assert new.add(keys).tolist() == [expected.get(key, -1) for key in keys.tolist()]
    assert new.is_full and len(new) == 20_000
    wanted = np.arange(-13_000, 13_000)
    assert new.find(wanted).tolist() == [expected.get(key, -1) for key in wanted.tolist()]
    assert new.add(np.empty(0, dtype=np.int64)).tolist() == []


def test_a_page_takes_few_bytes() -> None:
    keys = np.random.default_rng(2).integers(-(1 << 62), 1 << 62, 200_000)
    tracemalloc.start()
    new = NewPages(0, 300_000)
    for part in np.array_split(keys, 50):
        new.add(part)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held / len(new) < 16
