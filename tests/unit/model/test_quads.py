"""Graphs that are packed while they wait."""

from __future__ import annotations

import random

import pytest

from quadloom.model import wire
from quadloom.model.quads import Quads


@pytest.mark.parametrize(("lines", "length"), [(20_000, 100), (30_000, 400), (3, 1_500_000), (1, 4 << 20)])
def test_a_packed_graph_has_the_same_lines(lines: int, length: int) -> None:
    chance = random.Random(lines)
    nquads = b"".join(
        b'<x:s> <x:p> "%s%s" <x:g> .\n' % (chance.randbytes(length // 4).hex().encode(), b"a" * (length // 2))
        for _ in range(lines)
    )
    quads = Quads.of("x:g", nquads)
    packed = wire.decode(wire.encode(quads.packed()), Quads)
    blocks = list(packed.blocks())
    assert packed.nquads == b"".join(blocks) == nquads
    assert all(block.endswith(b"\n") for block in blocks)
    assert (packed.size, packed.count, packed.digest) == (len(nquads), lines, quads.digest)
    assert len(packed.data) < len(nquads) // 2
    assert packed.packed() is packed
    longest = max(map(len, nquads.splitlines()))
    assert max(map(len, blocks)) <= (1 << 20) + longest + 1


def test_a_small_graph_stays_as_it_is() -> None:
    quads = Quads.of("x:g", b'<x:s> <x:p> "o" <x:g> .\n' * 100)
    assert quads.packed() is quads
    assert list(quads.blocks()) == [quads.nquads]
