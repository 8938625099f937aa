"""Statements in columns, and those of one graph as N-Quads bytes.

Extractors know the terms of what they state: subject, predicate and object, in N-Triples syntax. Terms stay apart until
the page's graph is written, so that links, types, words and names of blank nodes are read from columns and no line is
parsed again.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator

import msgspec
from isal import isal_zlib
from xxhash import xxh3_64_intdigest, xxh3_128_digest

Triple = tuple[str, str, str]
NamedTriple = tuple[str, str, str, str]
"""A statement with a graph of its own, which comes last (TriG, N-Quads, JSON-LD)."""

MAX_LINES = 2000  # for a longer graph, lines are not remembered one by one
_LARGE = 1 << 20  # bytes of lines from which on a graph is packed
_BLOCK = 1 << 20  # bytes that are unpacked at once


class Quads(msgspec.Struct, frozen=True, array_like=True):
    """`nquads`: sorted distinct lines, blank nodes already skolemised, every line in `graph`.

    Equal graphs give equal bytes, so comparing `digest` shows whether anything changed without reading the store.

    A large graph may be packed while it waits to be written. The lines of a sitemap with 50,000 URLs take 26 MB, and
    0.5 MB when they are packed, for 6 ms.
    """

    graph: str
    data: bytes  # the lines, or what they are packed into
    count: int
    digest: bytes
    unpacked: int = 0  # bytes of the lines if `data` is packed

    @classmethod
    def of(cls, graph: str, nquads: bytes) -> Quads:
        """Wrap lines that are already canonical (`quadloom.documents.syntaxes.rdf.blank_nodes.skolemise` makes them
        so)."""
        return cls.counted(graph, nquads, nquads.count(b"\n"))

    @classmethod
    def counted(cls, graph: str, nquads: bytes, count: int) -> Quads:
        """The same if the number of lines is known."""
        return cls(graph, nquads, count, xxh3_128_digest(nquads) if nquads else b"")

    @property
    def nquads(self) -> bytes:
        """All lines. Those of a packed graph are unpacked for each call; `blocks` needs less memory."""
        return isal_zlib.decompress(self.data, bufsize=self.unpacked) if self.unpacked else self.data

    @property
    def size(self) -> int:
        """Bytes of the lines."""
        return self.unpacked or len(self.data)

    def packed(self) -> Quads:
        """The same in less memory, if the graph is large."""
        if self.unpacked or len(self.data) < _LARGE:
            return self
        return Quads(self.graph, isal_zlib.compress(self.data, 1), self.count, self.digest, len(self.data))

    def blocks(self) -> Iterator[bytes]:
        """The lines in parts that end with a line: of a packed graph about `_BLOCK` bytes at a time, else all."""
        if not self.unpacked:
            yield self.data
            return
        unpacker = isal_zlib.decompressobj()
        rest, packed = b"", self.data
        while not unpacker.eof:
            rest += unpacker.decompress(packed, _BLOCK)
            packed = unpacker.unconsumed_tail
            end = rest.rfind(b"\n") + 1
            if end:
                yield rest[:end]
                rest = rest[end:]
        if rest:
            yield rest


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
