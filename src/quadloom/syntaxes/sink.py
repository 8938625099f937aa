"""Where extractors put statements: an ordered, duplicate-free list of N-Triples bodies."""

from __future__ import annotations


class Sink:
    """Collects `subject predicate object` strings, each term in N-Triples syntax (see `quadloom.syntaxes.terms`).

    One sink serves all syntaxes of a page, so blank node labels never clash. The order is that of the document.
    """

    __slots__ = ("_blanks", "_limit", "_lines", "overflow")

    def __init__(self, limit: int = 200_000) -> None:
        self._lines: dict[str, None] = {}
        self._blanks = 0
        self._limit = limit
        self.overflow = 0  # statements dropped because of the limit; the caller makes a Finding of it

    def add(self, subject: str, predicate: str, obj: str) -> None:
        if len(self._lines) < self._limit:
            self._lines[f"{subject} {predicate} {obj}"] = None
        else:
            self.overflow += 1

    def blank(self) -> str:
        """A new blank node label, unique in this sink."""
        self._blanks += 1
        return f"_:b{self._blanks - 1}"

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, statement: str) -> bool:
        return statement in self._lines

    def statements(self) -> list[str]:
        return list(self._lines)

    def nquads(self, graph: str = "") -> bytes:
        """N-Quads in `graph` (an IRI without brackets), or N-Triples where no graph is given."""
        if not self._lines:
            return b""
        end = f" <{graph}> .\n" if graph else " .\n"
        return (end.join(self._lines) + end).encode("utf-8", "replace")
