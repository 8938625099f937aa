"""Answers in the SPARQL 1.1 Query Results JSON Format, as records."""

from __future__ import annotations

import msgspec


class Binding(msgspec.Struct, frozen=True, rename={"language": "xml:lang"}):
    """A term of a result: `type` uri, literal, bnode or triple (its `value` then has subject, predicate, object)."""

    type: str
    value: str | dict[str, object]
    language: str = ""
    datatype: str = ""


Row = dict[str, Binding]


class _Bindings(msgspec.Struct):
    bindings: list[Row]


class _Table(msgspec.Struct):
    results: _Bindings


class _Text(msgspec.Struct):
    value: str


class _Texts(msgspec.Struct):
    bindings: list[dict[str, _Text]]


class _TextTable(msgspec.Struct):
    results: _Texts


class _Boolean(msgspec.Struct):
    boolean: bool


def rows_of(document: bytes) -> list[Row]:
    """The solutions of a SELECT: name → `Binding`; a variable without a value is missing."""
    return msgspec.json.decode(document, type=_Table).results.bindings


def text_rows_of(document: bytes) -> list[dict[str, str]]:
    """The same with the values only, for queries whose variables are never bound to a triple."""
    rows = msgspec.json.decode(document, type=_TextTable).results.bindings
    return [{name: text.value for name, text in row.items()} for row in rows]


def boolean_of(document: bytes) -> bool:
    """The answer to an ASK."""
    return msgspec.json.decode(document, type=_Boolean).boolean
