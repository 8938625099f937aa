"""What writes one term or one statement, in C. Each function is bound to its implementation in Python and asks it
in rare cases: a lone surrogate, an unusual language, an IRI that is not plain."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from quadloom.model.quads import Triple

F = TypeVar("F", bound=Callable[..., str | None])

def literal_with(implementation: F, /) -> F:
    """`literal` of `quadloom.documents.syntaxes.terms`."""

def iri_with(implementation: F, /) -> F:
    """`iri` of `quadloom.documents.syntaxes.terms`."""

def fold_with(implementation: F, /) -> F:
    """`fold` of `quadloom.documents.syntaxes.html.text`."""

class Statements:
    """`StatementsInPython` of `quadloom.documents.syntaxes.sink`."""

    _triples: dict[Triple, None]
    _limit: int
    _room: int
    _each: int
    overflow: int

    def __init__(self, limit: int, room: int, each: int, long_size: int, /) -> None: ...
    def add(self, subject: str, predicate: str, obj: str, /) -> None: ...
    def _add_lines(self, ntriples: bytes, present: int, longest: int, /) -> bool: ...
    def _takes(self, terms: Sequence[str], /) -> bool: ...
