"""What extractors write statements to: an ordered, duplicate-free list of N-Triples bodies."""

from __future__ import annotations

import re

# A line of N-Quads as our parsers write it: subject and predicate without spaces, then the object, then maybe a graph.
# Only U+0020 ends a term: RFC 3987 allows other white space in an IRI, such as U+3000. Literals are read by possessive
# runs; one alternative per character took 140 bytes of memory for each, which a literal of 6 MB made a gigabyte.
_LINE = re.compile(
    r"([^ ]+ [^ ]+ (?:<[^<> ]*>|_:[^ ]+|"
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"(?:@[\w-]+|\^\^<[^>]*>)?|'
    r"<<\(.*\)>>))( (?:<[^<> ]*>|_:[^ ]+))? \."
)

# Characters of all statements with their graph. A page of 250 KB can state 100 KB of text by 10,000 names, or use a
# prefix of 100 KB as often, without exceeding the limit on statements. The largest body of ordinary RDF needs half.
MAX_CHARACTERS = 96 << 20


class Sink:
    """Collects `subject predicate object` strings, each term in N-Triples syntax (see `quadloom.syntaxes.terms`).

    One sink serves all syntaxes of a page, so blank node labels never clash. The order is that of the document.
    Statements of a document's own named graphs (TriG, N-Quads, JSON-LD) keep their graph; see `pour`.
    """

    __slots__ = ("_blanks", "_each", "_limit", "_lines", "_named", "_room", "overflow")

    def __init__(self, limit: int = 200_000, graph: str = "") -> None:
        self._lines: dict[str, None] = {}
        self._named: dict[str, None] = {}
        self._blanks = 0
        self._limit = limit
        self._room = MAX_CHARACTERS
        self._each = len(graph) + 8
        self.overflow = 0  # statements dropped because of the limit; the caller makes a Finding of it

    def add(self, subject: str, predicate: str, obj: str) -> None:
        size = len(subject) + len(predicate) + len(obj) + self._each
        if len(self._lines) < self._limit and size <= self._room:
            self._room -= size
            self._lines[f"{subject} {predicate} {obj}"] = None
        else:
            self.overflow += 1

    def pour(self, nquads: bytes) -> None:
        """Add the statements of a parsed RDF document. Its blank node labels must differ from those of `blank`."""
        for line in nquads.decode("utf-8").split("\n"):
            match = _LINE.match(line)
            if match is None:
                continue
            self._room -= len(line) + self._each
            if len(self) >= self._limit or self._room < 0:
                self.overflow += 1
            elif match.group(2):
                self._named[match.group(1) + match.group(2)] = None
            else:
                self._lines[match.group(1)] = None

    def blank(self) -> str:
        """A new blank node label, unique in this sink."""
        self._blanks += 1
        return f"_:b{self._blanks - 1}"

    @property
    def blanks(self) -> int:
        """How many blank nodes there are so far. `skip_blanks` of another sink makes both give the same labels."""
        return self._blanks

    def skip_blanks(self, count: int) -> None:
        self._blanks = count

    def __len__(self) -> int:
        return len(self._lines) + len(self._named)

    def __contains__(self, statement: str) -> bool:
        return statement in self._lines

    def statements(self) -> list[str]:
        """All statements without a graph of their own, then those with one (graph name last)."""
        return [*self._lines, *self._named]

    def nquads(self, graph: str = "") -> bytes:
        """N-Quads in `graph` (an IRI without brackets), or N-Triples if no graph is given."""
        end = f" <{graph}> .\n" if graph else " .\n"
        text = end.join(self._lines) + end if self._lines else ""
        if self._named:
            text += " .\n".join(self._named) + " .\n"
        return text.encode("utf-8", "replace")
