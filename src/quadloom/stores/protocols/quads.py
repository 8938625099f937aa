"""The quad store: named graphs, one for each page, and what a replacement changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from quadloom.model.quads import Quads

BULK_QUADS = 8000
"""New statements from which on `insert_new` may write in bulk: sorted files, which need no compaction."""


class Difference(msgspec.Struct, frozen=True):
    """What a replacement changed, as sorted N-Quads lines."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


class QuadStore(Protocol):
    """Named graphs of quads; all sixteen access patterns are served by an index.

    Guarantees: what was written before a `flush` that returned survives a crash; a graph is replaced as one operation,
    as atomic as the engine's operations are.
    """

    def replace(self, quads: Quads, known: bytes = b"") -> Difference:
        """Make the graph hold exactly these quads. Atomic per graph; writes only the difference, and returns it.

        `known`: `line_fingerprints` of what the graph holds now, which may save reading it; empty = not known."""
        ...

    def difference(self, quads: Quads) -> Difference:
        """What `replace` would change, without changing it. Statements count by value: `1.0` and `1.00` are one."""
        ...

    def insert_new(self, batch: Sequence[Quads], about: bytes = b"") -> None:
        """Fill graphs that hold nothing yet, in one large write. Not atomic: a crash may leave a part, which the
        replay replaces. `about`: N-Quads of the graph of descriptions about these graphs, written with them."""
        ...

    def describe(self, graph: str, descriptions: Sequence[tuple[str, bytes]]) -> None:
        """Make `graph` hold exactly these N-Quads about each (subject IRI, N-Quads); empty removes the subject. One
        atomic write."""
        ...

    def remove(self, graph: str) -> Difference:
        """Drop a graph. An empty difference = there was no such graph."""
        ...

    def graph(self, graph: str) -> bytes:
        """Sorted N-Quads of one graph; empty = there is no such graph."""
        ...

    def match(
        self, subject: str | None, predicate: str | None, object: str | None, graph: str | None, limit: int = 0
    ) -> Iterator[str]:
        """N-Quads lines matching a pattern; terms in N-Triples syntax, None = any."""
        ...

    def query(self, sparql: str) -> bytes:
        """A trusted query, union default graph; results as SPARQL JSON, or N-Triples for graphs.
        User queries go through `quadloom.asking.sparql.service`, which can be killed. Raises `QueryRefused` if the
        store has its graphs on several servers."""
        ...

    def parts(self, sparql: str) -> Iterator[bytes]:
        """The answers of all parts of the store to a trusted query, one for each. A page's graph is in one part as a
        whole, so counts within graphs can be added up. Most stores have one part."""
        ...

    def graphs(self) -> Iterator[str]:
        """Names of all graphs, in no order."""
        ...

    def dump(self) -> Iterator[bytes]:
        """All quads as N-Quads, in chunks."""
        ...

    def __len__(self) -> int:
        """All quads. May take .6 s a million."""
        ...

    def flush(self) -> None:
        """Return when everything written is durable."""
        ...

    def release_memory(self) -> None:
        """Give back the memory of caches that reading has filled. Only the writer calls this, between two writes."""
        ...

    def optimize(self) -> None:
        """Compact the files, if the store has any. May take minutes."""
        ...

    def close(self) -> None: ...


class RefilledQuadStore(QuadStore, Protocol):
    """A store that is rebuilt in place: readers see each graph before or after, never missing. There is no second
    store to fill, so pages are replaced one by one. A rebuild that ends before `finish` is simply repeated."""

    def written_elsewhere(self, graph: str, subjects: Iterable[str]) -> None:
        """Other processes have written these pages, which the graph of descriptions describes."""
        ...

    def finish(self) -> None:
        """Remove pages that are described and were not written again, with their descriptions."""
        ...
