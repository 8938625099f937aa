"""N-Quads lines as text of SPARQL updates, such that no page can inject anything else into the text.

A line is copied only if both grammars read all of it alike; the check is one linear regular expression.
The backslash needs care. SPARQL replaces `\\u0022` by a quotation mark *before* it looks for the end of a
string (SPARQL 1.1 Query, 19.2), N-Quads after; and whether `\\\\u0022`, an escaped backslash before plain text, counts
as such an escape differs between servers. So escapes of a quotation mark, a backslash or a line break by number are not
copied, and an escaped backslash before `u` is followed by a `u` written by its number, which all servers read alike.
The long form is used throughout, because some take up to eight digits after `\\u` as well; and tabs, which some turn
into spaces, are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from quadloom.errors import StoreError
from quadloom.stores.quads.nquads import as_stored

_IRI = r'<[^\x00-\x20<>"{}|^`\\]*>'
_NUMBERED = r"\\u(?!00(?:22|5[cC]|0[aAdD]))[0-9A-Fa-f]{4}|\\U(?!000000(?:22|5[cC]|0[aAdD]))[0-9A-Fa-f]{8}"
_LITERAL = (
    rf'"[^"\\\r\n]*+(?:(?:\\[tbnrf"\\]|{_NUMBERED})[^"\\\r\n]*+)*+"'
    rf"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl))?|\^\^{_IRI})?"
)
_PLAIN = re.compile(rf"{_IRI} {_IRI} (?:{_IRI}|{_LITERAL}) \.")
_NESTED = re.compile(rf"({_IRI} {_IRI} )<<\( (.*) \)>> \.")  # a triple as object, RDF 1.2
_IS_IRI = re.compile(_IRI)
_ESCAPE = re.compile(r"\\\\([uU])|\\u([0-9A-Fa-f]{4})|\\.")
_DEPTH = 100


def is_name(graph: str) -> bool:
    """Whether there can be a graph of this name, or statements about it."""
    return _IS_IRI.fullmatch(f"<{graph}>") is not None


def graph_name(graph: str) -> str:
    """`<graph>`. Raises `StoreError` for a name that SPARQL cannot write."""
    if not is_name(graph):
        raise StoreError(f"a graph cannot be named {graph[:200]!r}", hint="graphs are named by absolute IRIs")
    return f"<{graph}>"


def term(text: str) -> str:
    """A term in canonical N-Triples syntax, safe within a query."""
    return _statement(f"<x:s> <x:p> {text} .")[len("<x:s> <x:p> ") : -2]


def triples(lines: Iterable[str], graph: str) -> str:
    """N-Quads lines of one graph as the inside of `GRAPH <graph> { … }`."""
    tail = len(graph) + 4  # "<graph> ."
    return "\n".join([_statement(f"{line[:-tail]}.") for line in lines])


def insertion(parts: Sequence[tuple[str, Sequence[str]]]) -> str:
    """One operation that fills graphs: (graph, N-Quads lines)."""
    inside = "\n".join(f"GRAPH {graph_name(graph)} {{\n{triples(lines, graph)}\n}}" for graph, lines in parts)
    return f"INSERT DATA {{\n{inside}\n}}"


def exchange(graph: str, removed: Sequence[str], added: Sequence[str]) -> str:
    """One operation that removes lines from a graph and adds others. Not two operations in a row: a request should be
    atomic (SPARQL 1.1 Update, 3), but if it is not, readers could see the graph between the two."""
    if not removed:
        return insertion([(graph, added)])
    name = graph_name(graph)
    delete, insert = (f"{{ GRAPH {name} {{\n{triples(lines, graph)}\n}} }}" for lines in (removed, added))
    return f"DELETE {delete}\nINSERT {insert}\nWHERE {{}}" if added else f"DELETE DATA {delete}"


def _statement(text: str) -> str:
    if not _is_safe(text):
        text = _canonical(text)
    if "\t" in text:
        text = text.replace("\t", "\\t")
    return _ESCAPE.sub(_numbered, text) if "\\u" in text or "\\U" in text else text


def _canonical(text: str) -> str:
    """The canonical text of a statement with other escapes, such as `\\u0022`. Raises `StoreError` if it is none."""
    try:
        (line,) = as_stored({f"{text[:-1]}<x:g> ."})
    except (SyntaxError, ValueError) as error:
        raise _refusal(text) from error
    text = f"{line[: -len('<x:g> .')]}."
    if not _is_safe(text):
        raise _refusal(text)
    return text


def _refusal(text: str) -> StoreError:
    return StoreError(f"not a statement that SPARQL can write: {text[:200]!r}", hint="run `quadloom verify`")


def _is_safe(text: str) -> bool:
    for _ in range(_DEPTH):
        if _PLAIN.fullmatch(text):
            return True
        outer = _NESTED.fullmatch(text)
        if outer is None:
            return False
        text = f"{outer.group(2)} ."
    return False


def _numbered(match: re.Match[str]) -> str:
    letter, digits = match.groups()
    if letter:
        return f"\\\\\\U{ord(letter):08X}"
    return f"\\U0000{digits}" if digits else match.group()
