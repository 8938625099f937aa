"""The quad store: named graphs, one for each page, and what a replacement changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from quadloom.model.quads import Quads


class Difference(msgspec.Struct, frozen=True):
    """What a replacement changed, as sorted N-Quads lines."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


class QuadStore(Protocol):
    """Named graphs of quads, all sixteen access patterns served by index."""

    def replace(self, quads: Quads, known: bytes = b"") -> Difference:
        """Make the graph hold exactly these quads. Atomic per graph; writes only the difference; returns it.

        `known`: `line_fingerprints` of what the graph holds now, which may spare reading it; empty = not known."""
        ...

    def difference(self, quads: Quads) -> Difference:
        """What `replace` would change, without changing it. Statements count by value: `1.0` and `1.00` are one."""
        ...

    def insert_new(self, batch: Sequence[Quads], about: bytes = b"") -> None:
        """Fill graphs that hold nothing yet, in one large write. Not atomic: a crash may leave a part, which the
        replay replaces. `about`: N-Quads about these graphs in the graph of descriptions, written with them."""
        ...

    def describe(self, graph: str, descriptions: Sequence[tuple[str, bytes]]) -> None:
        """Make `graph` say of each subject IRI exactly these N-Quads (none = nothing), in one atomic write."""
        ...

    def remove(self, graph: str) -> Difference: ...

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
        User queries go through `quadloom.asking.sparql.service`, which can be killed."""
        ...

    def graphs(self) -> Iterator[str]: ...

    def dump(self) -> Iterator[bytes]:
        """All quads as N-Quads, in chunks."""
        ...

    def __len__(self) -> int: ...

    def flush(self) -> None: ...

    def optimize(self) -> None: ...

    def close(self) -> None: ...
