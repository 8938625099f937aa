"""The state of the walk: evaluation contexts as frames, statements within limits, lists (RDFa Core 1.1, section 7.3).

A frame is what an element leaves to its children. Lists belong to a subject, and a subject begins with a frame:
`lists` collects for the frame's parent object, `own_lists` for the element's subject if that is another one.
`ProcessorGraph` collects what the processor has to say about a document (section 7.6).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from quadloom.documents.syntaxes.iri import BaseIri
from quadloom.documents.syntaxes.sink import Sink
from quadloom.documents.syntaxes.terms import RDF, TYPE, iri, literal

Triple = tuple[str, str, str]
Lists = dict[str, list[str]]
Undo = list[tuple[str, str | None]]
"""Prefixes that an element declared, each with the namespace it had before."""

Incomplete = list[tuple[str, str | list[str]]]
"""Predicate with "rel" or "rev", or with the list that the subjects found below go into."""

FIRST, REST, NIL = f"<{RDF}first>", f"<{RDF}rest>", f"<{RDF}nil>"

# Nested literals repeat their content once per level; with these limits the cost stays linear in the page. Text is
# collected by the parser itself, markup is written here (4 µs an element), hence two depths.
MAX_TEXT_DEPTH = 64
MAX_MARKUP_DEPTH = 4
MAX_CHARACTERS = 32 * 1024 * 1024
MAX_TRIPLES = 200_000


class Frame(msgspec.Struct, eq=False):
    subject: str
    object: str
    base: BaseIri
    language: str
    vocabulary: str = ""
    incomplete: Incomplete = []
    lists: Lists | None = None
    own_lists: Lists | None = None
    list_frame: Frame | None = None  # the frame that keeps the lists; None = this one, without a cycle
    undo: Undo | None = None
    text_depth: int = 0
    markup_depth: int = 0
    muted: bool = False

    def child(self) -> Frame:
        """A copy in which nothing is the child's own yet."""
        return msgspec.structs.replace(
            self, lists=None, own_lists=None, list_frame=self.list_frame or self, undo=None, muted=False
        )


class Triples:
    """Statements of one document. `full`: a limit is reached, the processor stops and drops the rest."""

    def __init__(self) -> None:
        self.found: list[Triple] = []
        self.full = False
        self._room = MAX_CHARACTERS

    def add(self, subject: str, predicate: str, value: str) -> None:
        self._room -= len(subject) + len(predicate) + len(value)
        if self._room < 0 or len(self.found) >= MAX_TRIPLES:
            self.full = True
            return
        self.found.append((subject, predicate, value))

    def add_list(self, subject: str, predicate: str, values: list[str], blanks: list[str]) -> None:
        """`values` as an RDF collection; `blanks` are as many new blank nodes."""
        nodes = [*blanks, NIL]
        self.add(subject, predicate, nodes[0])
        for position, value in enumerate(values):
            self.add(nodes[position], FIRST, value)
            self.add(nodes[position], REST, nodes[position + 1])


RDFA = "http://www.w3.org/ns/rdfa#"

DOCUMENT_ERROR = "DocumentError"
VOCABULARY_ERROR = "VocabReferenceError"
UNRESOLVED_TERM = "UnresolvedTerm"
UNRESOLVED_CURIE = "UnresolvedCURIE"
PREFIX_REDEFINITION = "PrefixRedefinition"

Report = Callable[[str, str], None]
"""Takes the local name of a class of the RDFa vocabulary and a sentence."""

_PARENTS = {DOCUMENT_ERROR: "Error"}
# Hostile pages repeat one mistake a hundred thousand times; a thousand messages are enough.
_MAX_MESSAGES = 1000


class ProcessorGraph:
    """Collects messages and writes each as a blank node with its class, its superclass and a description."""

    def __init__(self, document: str) -> None:
        self._document = iri(document)
        self._messages: dict[tuple[str, str], None] = {}

    def report(self, kind: str, message: str) -> None:
        if len(self._messages) < _MAX_MESSAGES:
            self._messages[kind, message] = None

    def write(self, sink: Sink) -> None:
        for kind, message in self._messages:
            node = sink.blank()
            sink.add(node, TYPE, f"<{RDFA}{kind}>")
            sink.add(node, TYPE, f"<{RDFA}{_PARENTS.get(kind, 'Warning')}>")
            sink.add(node, "<http://purl.org/dc/terms/description>", literal(message))
            if self._document:
                sink.add(node, f"<{RDFA}context>", self._document)
