"""N-Quads as text, for every quad store: lines, terms, and the canonical form of a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pyoxigraph as ox

from quadloom.errors import QuerySyntaxError

_IRI = re.compile(r'<[^\x00-\x20<>"{}|^`\\]+>')


def parse_term(text: str) -> ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple:
    """A term in N-Triples syntax. Raises `QuerySyntaxError`."""
    try:
        if _IRI.fullmatch(text):  # most terms; a parser for one term costs eight times as much
            return ox.NamedNode(text[1:-1])
        (triple,) = ox.parse(f"<x:s> <x:p> {text} .", ox.RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError) as error:
        raise QuerySyntaxError(
            f"not an RDF term: {text[:100]}", hint='write <iri>, "text", "text"@en or "text"^^<datatype>'
        ) from error
    term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple = triple.object
    return term


def lines_of(nquads: bytes) -> list[str]:
    """The lines of N-Quads. Not `splitlines`, which also breaks at U+0085 and U+2028, within a literal."""
    return [line for line in nquads.decode().split("\n") if line]


def as_stored(lines: set[str]) -> Iterator[str]:
    """The same statements as an engine writes them: numbers by value, canonical escapes. This also makes it safe to put
    them into an update: SPARQL replaces `\\u0022` before it looks for the end of a string, and canonical text never
    has that escape."""
    scratch = ox.Store()
    scratch.load(text_of(lines), ox.RdfFormat.N_QUADS, lenient=True)
    return (f"{quad} ." for quad in scratch)


def text_of(lines: Sequence[str] | set[str]) -> bytes:
    """N-Quads of these lines; empty for none."""
    return ("\n".join(lines) + "\n").encode() if lines else b""
