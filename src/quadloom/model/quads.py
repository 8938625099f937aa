"""Statements of one graph as N-Quads bytes."""

from __future__ import annotations

from array import array

import msgspec
from xxhash import xxh3_64_intdigest, xxh3_128_digest

MAX_LINES = 2000  # for a longer graph, lines are not remembered one by one


class Quads(msgspec.Struct, frozen=True, array_like=True):
    """`nquads`: sorted distinct lines, blank nodes already skolemised, every line in `graph`.

    Equal graphs give equal bytes, so comparing `digest` shows whether anything changed without reading the store.
    """

    graph: str
    nquads: bytes
    count: int
    digest: bytes

    @classmethod
    def of(cls, graph: str, nquads: bytes) -> Quads:
        """Wrap lines that are already canonical (`quadloom.syntaxes.rdf.blank_nodes.skolemise` makes them so)."""
        return cls(graph, nquads, nquads.count(b"\n"), xxh3_128_digest(nquads) if nquads else b"")


def line_fingerprints(nquads: bytes) -> bytes:
    """64 bits for each line, packed, to find which lines of the next version are new. Empty for a large graph."""
    lines = nquads.split(b"\n")
    if len(lines) > MAX_LINES:
        return b""
    return array("Q", [xxh3_64_intdigest(line) for line in lines if line]).tobytes()
