"""Statements of one graph as N-Quads bytes."""

from __future__ import annotations

import msgspec
from xxhash import xxh3_128_digest


class Quads(msgspec.Struct, frozen=True, array_like=True):
    """`nquads`: sorted distinct lines, blank nodes already skolemised, every line in `graph`.

    Equal graphs give equal bytes, so `digest` tells whether anything changed without reading the store.
    """

    graph: str
    nquads: bytes
    count: int
    digest: bytes

    @classmethod
    def of(cls, graph: str, nquads: bytes) -> Quads:
        """Wrap lines that are already canonical (`quadloom.syntaxes.blank_nodes.skolemise` makes them so)."""
        return cls(graph, nquads, nquads.count(b"\n"), xxh3_128_digest(nquads) if nquads else b"")
