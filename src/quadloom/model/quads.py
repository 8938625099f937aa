"""Statements in columns, and those of one graph as N-Quads bytes.

Extractors know the terms of what they state: subject, predicate and object, in N-Triples syntax. Terms stay apart until
the page's graph is written, so that links, types, words and names of blank nodes are read from columns and no line is
parsed again.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection

import msgspec
from xxhash import xxh3_64_intdigest, xxh3_128_digest

Triple = tuple[str, str, str]
NamedTriple = tuple[str, str, str, str]
"""A statement with a graph of its own, which comes last (TriG, N-Quads, JSON-LD)."""

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
        return cls.counted(graph, nquads, nquads.count(b"\n"))

    @classmethod
    def counted(cls, graph: str, nquads: bytes, count: int) -> Quads:
        """The same if the number of lines is known."""
        return cls(graph, nquads, count, xxh3_128_digest(nquads) if nquads else b"")


def line_fingerprints(nquads: bytes) -> bytes:
    """64 bits for each line, packed, to find which lines of the next version are new. Empty for a large graph."""
    lines = nquads.split(b"\n")
    if len(lines) > MAX_LINES:
        return b""
    lines.pop()  # what follows the last line is empty
    return array("Q", map(xxh3_64_intdigest, lines)).tobytes()


def as_nquads(triples: Collection[Triple], named: Collection[NamedTriple] = (), graph: str = "") -> bytes:
    """Lines in this order; `triples` in `graph` (an IRI without brackets), or as N-Triples if none is given."""
    end = f" <{graph}> .\n" if graph else " .\n"
    text = end.join(map(" ".join, triples)) + end if triples else ""
    if named:
        text += " .\n".join(map(" ".join, named)) + " .\n"
    return text.encode("utf-8", "replace")
