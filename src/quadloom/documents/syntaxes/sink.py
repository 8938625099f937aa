"""What extractors write statements to: an ordered, duplicate-free list, in columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from quadloom.model.quads import NamedTriple, Triple, as_nquads
from quadloom.settings import LimitSettings

# A line of N-Quads as our parsers write it: subject and predicate without spaces, then the object, then maybe a graph.
# Only U+0020 ends a term: RFC 3987 allows other white space in an IRI, such as U+3000. Literals are read by possessive
# runs; one alternative per character took 140 bytes of memory for each, which a literal of 6 MB made a gigabyte.
_LINE = re.compile(
    r"([^ ]+) ([^ ]+) (<[^<> ]*>|_:[^ ]+|"
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"(?:@[\w-]+|\^\^<[^>]*>)?|'
    r"<<\(.*\)>>)(?: (<[^<> ]*>|_:[^ ]+))? \."
)

# Characters of all statements with their graph. A page of 250 KB can state 100 KB of text by 10,000 names, or use a
# prefix of 100 KB as often, without exceeding the limit on statements. The largest body of ordinary RDF needs half.
MAX_CHARACTERS = 96 << 20
# Below this, the size of the document does not matter: lists in Turtle grow a hundredfold, and are small.
_FREE_CHARACTERS = 8 << 20
_LONG = 1024  # characters of a term from which it counts as long: a store keeps each distinct one in full


class SinkLimits(NamedTuple):
    """What one page may state. `characters`: of all statements; `long_terms`: distinct terms above 1,024 characters;
    `iri`: characters of an IRI."""

    statements: int = 200_000
    characters: int = MAX_CHARACTERS
    long_terms: int = 5_000
    iri: int = 8_192


_DEFAULTS = SinkLimits()


def sink_limits(limits: LimitSettings, document_bytes: int) -> SinkLimits:
    """The limits for a document of this size."""
    by_size = max(_FREE_CHARACTERS, int(document_bytes * limits.amplification))
    characters = min(limits.quad_bytes_per_page, by_size)
    return SinkLimits(limits.quads_per_page, characters, limits.long_terms_per_page, limits.iri_chars)


class StatementsInPython:
    """Statements up to a limit of their number and of their characters (`room`); each takes `each` more than its terms
    have. If it takes more than `long_size`, `_takes` decides. As `quadloom.documents.native.terms.Statements`."""

    __slots__ = ("_each", "_limit", "_long_size", "_room", "_triples", "overflow")

    def __init__(self, limit: int, room: int, each: int, long_size: int) -> None:
        self._triples: dict[Triple, None] = {}
        self._limit = limit
        self._room = room
        self._each = each
        self._long_size = long_size
        self.overflow = 0  # statements that were left out; the caller makes a Finding of them

    def add(self, subject: str, predicate: str, obj: str) -> None:
        size = len(subject) + len(predicate) + len(obj) + self._each
        if len(self._triples) < self._limit and size <= self._room:
            triple = subject, predicate, obj
            if size > self._long_size and not self._takes(triple):
                return
            self._room -= size
            self._triples[triple] = None
        else:
            self.overflow += 1

    def _add_lines(self, ntriples: bytes, present: int, longest: int) -> bool:
        """Add lines of N-Triples if that is within the limits, `present` statements included, and no line has more than
        `longest` characters; else nothing is added, and the answer is False. Two spaces divide a line, whatever its
        object holds."""
        text = ntriples.decode("utf-8")
        lines = text.split("\n")
        size = len(text) + self._each * len(lines)
        if present + len(lines) > self._limit or size > self._room or max(map(len, lines)) > longest:
            return False
        self._room -= size
        triples = self._triples
        for line in lines:
            if line:
                subject, predicate, obj = line.split(" ", 2)
                triples[subject, predicate, obj[:-2]] = None
        return True

    def _takes(self, terms: Sequence[str]) -> bool:
        raise NotImplementedError


try:
    from quadloom.documents.native.terms import Statements
except ImportError:  # it was not built: there is no compiler
    Statements = StatementsInPython  # type: ignore[misc, assignment]


class Sink(Statements):
    """Collects statements, each term in N-Triples syntax (see `quadloom.documents.syntaxes.terms`).

    One sink serves all syntaxes of a page, so blank node labels never clash. The order is that of the document.
    Statements of a document's own named graphs (TriG, N-Quads, JSON-LD) keep their graph; see `pour`.
    """

    __slots__ = ("_limits", "_long", "_named", "blanks", "long_iris")

    def __init__(self, limits: SinkLimits = _DEFAULTS, graph: str = "") -> None:
        each = len(graph) + 8
        super().__init__(limits.statements, limits.characters, each, each + _LONG)
        self._named: dict[NamedTriple, None] = {}
        self.blanks = 0  # so far; a sink that begins with those of another one gives the same labels
        self._limits = limits
        self._long: set[int] = set()  # hashes of the long terms
        self.long_iris = 0  # statements that were left out; the caller makes a Finding of them

    def pour(self, nquads: bytes) -> None:
        """Add the statements of a parsed RDF document. Its blank node labels must differ from those of `blank`."""
        for line in nquads.decode("utf-8").split("\n"):
            match = _LINE.match(line)
            if match is None:
                continue
            subject, predicate, obj, graph = match.groups()
            if len(line) > _LONG and not self._takes((subject, predicate, obj)):
                continue
            self._room -= len(line) + self._each
            if len(self) >= self._limit or self._room < 0:
                self.overflow += 1
            elif graph:
                self._named[subject, predicate, obj, graph] = None
            else:
                self._triples[subject, predicate, obj] = None

    def pour_triples(self, ntriples: bytes) -> None:
        """The same for a document of a syntax without graphs, at a fraction of the cost if nothing of it is near a
        limit."""
        if not self._add_lines(ntriples, len(self), _LONG):
            self.pour(ntriples)

    def _takes(self, terms: Sequence[str]) -> bool:
        """Whether a statement with these terms is within the limits of long terms; if not, it is counted."""
        for term in terms:
            if len(term) > _LONG:
                if term[0] == "<" and len(term) - 2 > self._limits.iri:
                    self.long_iris += 1
                    return False
                self._long.add(hash(term))
                if len(self._long) > self._limits.long_terms:
                    self._long.discard(hash(term))
                    self.overflow += 1
                    return False
        return True

    def blank(self) -> str:
        """A new blank node label, unique in this sink."""
        self.blanks += 1
        return f"_:b{self.blanks - 1}"

    def __len__(self) -> int:
        return len(self._triples) + len(self._named)

    @property
    def triples(self) -> Collection[Triple]:
        """Statements without a graph of their own, in order."""
        return self._triples

    @property
    def named(self) -> Collection[NamedTriple]:
        """Statements with a graph of their own, in order."""
        return self._named

    def statements(self) -> list[str]:
        """All statements as text: those without a graph of their own, then those with one (graph name last)."""
        return [*map(" ".join, self._triples), *map(" ".join, self._named)]

    def nquads(self, graph: str = "") -> bytes:
        """N-Quads in `graph` (an IRI without brackets), or N-Triples if no graph is given."""
        return as_nquads(self._triples, self._named, graph)
