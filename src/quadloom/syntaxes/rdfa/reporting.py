"""The processor graph: what the processor has to say about a document (RDFa Core 1.1, section 7.6)."""

from __future__ import annotations

from collections.abc import Callable

from quadloom.syntaxes.sink import Sink
from quadloom.syntaxes.terms import TYPE, iri, literal

RDFA = "http://www.w3.org/ns/rdfa#"

DOCUMENT_ERROR = "DocumentError"
VOCABULARY_ERROR = "VocabReferenceError"
UNRESOLVED_TERM = "UnresolvedTerm"
UNRESOLVED_CURIE = "UnresolvedCURIE"
PREFIX_REDEFINITION = "PrefixRedefinition"

Report = Callable[[str, str], None]
"""Takes the local name of a class of the RDFa vocabulary and a sentence."""

_PARENTS = {DOCUMENT_ERROR: "Error"}
# Hostile pages repeat one mistake a hundred thousand times; nobody reads the rest.
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
