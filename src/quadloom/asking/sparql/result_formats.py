"""Result formats of SPARQL: names, media types, and writers that can stop after any row with a well-formed document.

The engine can serialise too, but it cannot stop at a row limit with a complete document; so rows are written here.
tests/unit/asking/sparql/test_result_formats.py reads every format back with the engine's own parsers.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec
import pyoxigraph as ox

Term = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple

ROW_MEDIA: dict[str, str] = {
    "json": "application/sparql-results+json",
    "xml": "application/sparql-results+xml",
    "csv": "text/csv; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
    "spreadsheet": "text/csv; charset=utf-8",
}
GRAPH_FORMATS: dict[str, ox.RdfFormat] = {
    "turtle": ox.RdfFormat.TURTLE,
    "nt": ox.RdfFormat.N_TRIPLES,
    "nq": ox.RdfFormat.N_QUADS,
    "trig": ox.RdfFormat.TRIG,
    "jsonld": ox.RdfFormat.JSON_LD,
    "rdfxml": ox.RdfFormat.RDF_XML,
}
GRAPH_MEDIA: dict[str, str] = {
    "turtle": "text/turtle; charset=utf-8",
    "nt": "application/n-triples",
    "nq": "application/n-quads",
    "trig": "application/trig",
    "jsonld": "application/ld+json",
    "rdfxml": "application/rdf+xml",
}
_XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
_SPARQL_XML = "http://www.w3.org/2005/sparql-results#"

Cell = str | dict[str, "Cell"]
_json = msgspec.json.Encoder()


class RowWriter(Protocol):
    """`row` is called once per solution, in order; `head` first and `tail` last make a complete document."""

    def head(self, variables: Sequence[str]) -> bytes: ...

    def row(self, values: Sequence[Term | None]) -> bytes: ...

    def tail(self) -> bytes: ...


def row_writer(format: str) -> RowWriter:
    writers: dict[str, Callable[[], RowWriter]] = {
        "json": _Json,
        "xml": _Xml,
        "csv": _Csv,
        "tsv": _Tsv,
        "spreadsheet": _Spreadsheet,
    }
    return writers[format]()


def boolean(value: bool, format: str) -> bytes:
    """The document for ASK."""
    word = "true" if value else "false"
    if format == "json":
        return b'{"head":{},"boolean":' + word.encode() + b"}"
    if format == "xml":
        document = f'<?xml version="1.0"?><sparql xmlns="{_SPARQL_XML}"><head/><boolean>{word}</boolean></sparql>'
        return document.encode()
    return word.encode()


def write_graph(
    items: Iterable[ox.Triple] | Iterable[ox.Quad],
    write: Callable[[bytes], object],
    format: str,
    prefixes: dict[str, str],
) -> None:
    """Write triples or quads in one of `GRAPH_FORMATS`, in pieces."""
    ox.serialize(items, _Sink(write), GRAPH_FORMATS[format], prefixes=prefixes)  # type: ignore[arg-type]  # it only calls write


class _Sink:
    """The part of a file that the engine's serialiser needs."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write

    def write(self, data: bytes) -> int:
        self._write(bytes(data))
        return len(data)

    def flush(self) -> None:
        return


class _Json:
    def __init__(self) -> None:
        self._names: list[str] = []
        self._rows = 0

    def head(self, variables: Sequence[str]) -> bytes:
        self._names = list(variables)
        return b'{"head":{"vars":' + _json.encode(self._names) + b'},"results":{"bindings":['

    def row(self, values: Sequence[Term | None]) -> bytes:
        cells = {name: cell(value) for name, value in zip(self._names, values, strict=True) if value is not None}
        self._rows += 1
        return (b",\n" if self._rows > 1 else b"\n") + _json.encode(cells)

    def tail(self) -> bytes:
        return b"\n]}}"


def cell(term: Term) -> Cell:
    """A term as SPARQL 1.1 Query Results JSON (and its 1.2 draft, for triples) writes it."""
    if isinstance(term, ox.NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, ox.Literal):
        value: dict[str, Cell] = {"type": "literal", "value": term.value}
        if term.language:
            value["xml:lang"] = term.language
        elif term.datatype.value != _XSD_STRING:
            value["datatype"] = term.datatype.value
        return value
    if isinstance(term, ox.BlankNode):
        return {"type": "bnode", "value": term.value}
    parts: dict[str, Cell] = {
        "subject": cell(term.subject),
        "predicate": cell(term.predicate),
        "object": cell(term.object),
    }
    return {"type": "triple", "value": parts}


class _Xml:
    def __init__(self) -> None:
        self._names: list[str] = []

    def head(self, variables: Sequence[str]) -> bytes:
        self._names = [_attribute(name) for name in variables]
        names = "".join(f"<variable name={name}/>" for name in self._names)
        return f'<?xml version="1.0"?><sparql xmlns="{_SPARQL_XML}"><head>{names}</head><results>'.encode()

    def row(self, values: Sequence[Term | None]) -> bytes:
        cells = (
            f"<binding name={name}>{_xml(value)}</binding>"
            for name, value in zip(self._names, values, strict=True)
            if value is not None
        )
        return f"\n<result>{''.join(cells)}</result>".encode()

    def tail(self) -> bytes:
        return b"\n</results></sparql>"


# Characters that XML 1.0 cannot carry, not even escaped.
_NOT_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 65534, 65535), "�")


def _xml(term: Term) -> str:
    if isinstance(term, ox.NamedNode):
        return f"<uri>{_text(term.value)}</uri>"
    if isinstance(term, ox.BlankNode):
        return f"<bnode>{_text(term.value)}</bnode>"
    if isinstance(term, ox.Literal):
        mark = ""
        if term.language:
            mark = f" xml:lang={_attribute(term.language)}"
        elif term.datatype.value != _XSD_STRING:
            mark = f" datatype={_attribute(term.datatype.value)}"
        return f"<literal{mark}>{_text(term.value.translate(_NOT_XML))}</literal>"
    inner = f"<subject>{_xml(term.subject)}</subject><predicate>{_xml(term.predicate)}</predicate>"
    return f"<triple>{inner}<object>{_xml(term.object)}</object></triple>"


def _text(text: str) -> str:
    return html.escape(text, quote=False).replace("\r", "&#13;")


def _attribute(text: str) -> str:
    return f'"{html.escape(text)}"'


class _Csv:
    """Values only, in the format of RFC 4180: lines end in CR LF.

    SPARQL 1.1 demands the values as they are, so a value of a crawled page may be a formula to a spreadsheet.
    """

    def head(self, variables: Sequence[str]) -> bytes:
        return (",".join(variables) + "\r\n").encode()

    def row(self, values: Sequence[Term | None]) -> bytes:
        return (",".join("" if value is None else _quoted(_plain(value)) for value in values) + "\r\n").encode()

    def tail(self) -> bytes:
        return b""


def _plain(term: Term) -> str:
    if isinstance(term, ox.BlankNode | ox.Triple):
        return str(term)
    return term.value


def _quoted(text: str) -> str:
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


# What could start a formula: one of four characters, also in full width, at the start of a value or after anything that
# separates cells or rows in some locale.
_FORMULA = re.compile(r"""(\A|[;\t\r\n])("*)(?=[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|\t|\r)""")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class _Spreadsheet:
    """CSV whose cells no spreadsheet takes for formulas: an apostrophe before whatever could start one.

    Numbers stay numbers. Every cell is quoted, and a byte order mark makes Excel read UTF-8.
    """

    def head(self, variables: Sequence[str]) -> bytes:
        return ("\ufeff" + ",".join(f'"{name}"' for name in variables) + "\r\n").encode()

    def row(self, values: Sequence[Term | None]) -> bytes:
        return (",".join("" if value is None else _harmless(_plain(value)) for value in values) + "\r\n").encode()

    def tail(self) -> bytes:
        return b""


def without_formulas(text: str) -> str:
    """The text of a cell with an apostrophe before whatever a spreadsheet could take for a formula. Numbers stay."""
    return text if _NUMBER.fullmatch(text) else _FORMULA.sub(r"\1\2'", text)


def _harmless(text: str) -> str:
    return '"' + without_formulas(text).replace('"', '""') + '"'


class _Tsv:
    """Terms in Turtle's syntax: nothing is lost."""

    def head(self, variables: Sequence[str]) -> bytes:
        return ("\t".join(f"?{name}" for name in variables) + "\n").encode()

    def row(self, values: Sequence[Term | None]) -> bytes:
        return ("\t".join("" if value is None else str(value).replace("\t", "\\t") for value in values) + "\n").encode()

    def tail(self) -> bytes:
        return b""
