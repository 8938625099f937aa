"""Every result format is read back by the engine's own parsers: nothing is lost, nothing is invalid."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from xml.etree import ElementTree

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadloom.asking.sparql.result_formats import GRAPH_FORMATS, boolean, row_writer, write_graph

TERMS: list[ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple | None] = [
    ox.NamedNode("http://x.example/a?b&c"),
    ox.BlankNode("b0"),
    ox.Literal('tab\t quote" \\ new\nline\rcr <&>'),
    ox.Literal("schön", language="de"),
    ox.Literal("7", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer")),
    None,
]
ENGINE = {
    "json": ox.QueryResultsFormat.JSON,
    "xml": ox.QueryResultsFormat.XML,
    "tsv": ox.QueryResultsFormat.TSV,
}


def document(
    format: str, rows: Sequence[Sequence[ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple | None]]
) -> bytes:
    writer = row_writer(format)
    return writer.head(["a", "b"]) + b"".join(writer.row(row) for row in rows) + writer.tail()


@pytest.mark.parametrize("format", ENGINE)
def test_rows_come_back(format: str) -> None:
    rows = [[first, second] for first in TERMS for second in TERMS]
    parsed = ox.parse_query_results(document(format, rows), ENGINE[format])
    assert isinstance(parsed, ox.QuerySolutions)
    assert [list(solution) for solution in parsed] == rows


@given(
    st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20), max_size=5)
)
def test_any_text_comes_back(texts: list[str]) -> None:
    rows: list[list[ox.Literal | None]] = [
        [ox.Literal(text), None] for text in texts if not set(text) & {"\ufffe", "\uffff"}
    ]
    for format in ("json", "tsv"):
        parsed = ox.parse_query_results(document(format, rows), ENGINE[format])
        assert isinstance(parsed, ox.QuerySolutions)
        assert [list(solution) for solution in parsed] == rows
    # The engine's XML reader trims literals, so XML is read by an XML parser.
    literals = ElementTree.fromstring(document("xml", rows)).iter("{http://www.w3.org/2005/sparql-results#}literal")
    assert [literal.text or "" for literal in literals] == [str(row[0].value) for row in rows if row[0] is not None]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-2-3", "'-2-3"),
        ("＝1+1", "'＝1+1"),
        ("\t=1", "'\t'=1"),
        ("\r\n=1", "'\r\n'=1"),
        ("a;=1", "a;'=1"),
        ('a\n"=1', "a\n\"'=1"),
        ("-17.5e-3", "-17.5e-3"),
        ("+5", "+5"),
        ("well-known a=b, c@d", "well-known a=b, c@d"),
        ("", ""),
    ],
)
def test_a_spreadsheet_gets_no_formulas(value: str, cell: str) -> None:
    written = document("spreadsheet", [[ox.Literal(value), None]]).decode("utf-8-sig")
    assert list(csv.reader(io.StringIO(written, newline="")))[1] == [cell, ""]
    assert ox.Literal(value).value in document("csv", [[ox.Literal(value), None]]).decode().replace('""', '"'), "raw"


@given(st.lists(st.text(alphabet="=+-@\t\r\n;,\"' a1", max_size=12), max_size=5))
def test_no_locale_of_a_spreadsheet_sees_a_formula(texts: list[str]) -> None:
    written = document("spreadsheet", [[ox.Literal(text), ox.Literal(text)] for text in texts]).decode("utf-8-sig")
    for separator in ",;\t":
        for row in csv.reader(io.StringIO(written, newline=""), delimiter=separator):
            for cell in row:
                is_number = re.match(r"[+-]\d+(,|$)", cell)  # with another separator, the next cell follows
                assert not re.match(r"[=+\-@]", cell) or is_number, (separator, cell)


def test_csv_quotes_what_needs_it() -> None:
    lines = document("csv", [[TERMS[2], TERMS[3]], [ox.Literal("a,b"), None]])
    assert lines == 'a,b\r\n"tab\t quote"" \\ new\nline\rcr <&>",schön\r\n"a,b",\r\n'.encode()


@pytest.mark.parametrize("format", ENGINE)
def test_no_rows(format: str) -> None:
    parsed = ox.parse_query_results(document(format, []), ENGINE[format])
    assert isinstance(parsed, ox.QuerySolutions)
    assert list(parsed) == []


@pytest.mark.parametrize("format", ["json", "xml", "tsv"])
@pytest.mark.parametrize("value", [True, False])
def test_verdicts(format: str, value: bool) -> None:
    parsed = ox.parse_query_results(boolean(value, format), ENGINE[format])
    assert isinstance(parsed, ox.QueryBoolean)
    assert bool(parsed) is value


@pytest.mark.parametrize("format", GRAPH_FORMATS)
def test_graphs_come_back(format: str) -> None:
    triples = [
        ox.Triple(ox.NamedNode("http://x.example/s"), ox.NamedNode("http://x.example/p"), term)
        for term in TERMS
        if isinstance(term, ox.NamedNode | ox.Literal)
    ]
    parts: list[bytes] = []
    write_graph(triples, parts.append, format, {"x": "http://x.example/"})
    parsed = {quad.triple for quad in ox.parse(b"".join(parts), GRAPH_FORMATS[format])}
    assert parsed == set(triples)
