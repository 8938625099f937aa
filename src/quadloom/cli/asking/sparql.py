"""`quadloom sparql`: ask the graph in SPARQL, also while a crawl runs."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from quadloom.asking.sparql.service import QueryResult, form_of
from quadloom.cli.files import text_of
from quadloom.cli.options import FailEmpty
from quadloom.cli.session import Session, harmless, session
from quadloom.errors import NothingFound, UsageError


def sparql(
    query: str = "",
    *,
    file: Annotated[Path | None, Parameter(name=["--file", "-f"])] = None,
    format: str = "",
    default_graph: tuple[str, ...] = (),
    named_graph: tuple[str, ...] = (),
    timing: bool = False,
    fail_empty: FailEmpty = False,
) -> None:
    """Ask in SPARQL 1.1. Common prefixes need no PREFIX line; all pages together are the default graph.

    For --fail-empty, the answer false to an ASK is empty.

    Parameters
    ----------
    query
        the query; `-` reads it from standard input
    file
        read the query from a file
    format
        json, xml, csv, tsv, spreadsheet (safe CSV) for rows; turtle, nt, nq, trig, jsonld, rdfxml for graphs
    default_graph
        graph IRIs (pages) that make up the default graph
    named_graph
        graph IRIs that GRAPH may name
    timing
        print on standard error how long parsing and evaluation took
    """
    s = session()
    text = _query_text(query, file)
    shown = format or ("json" if s.json else "")
    with s.read() as warehouse:
        table = not shown and sys.stdout.isatty()
        answer = warehouse.ask.queries.ask(
            text, format=shown or _default_format(text, s), default_graphs=default_graph, named_graphs=named_graph
        )
        with answer:
            s.table(answer.variables, answer.values()) if table and answer.form == "select" else _copy(answer)
    ended = answer.ended
    if ended is None:
        return
    if answer.truncated:
        s.say(
            f"the result was truncated at its {ended.truncated} limit; to raise it, set limits.query_{ended.truncated}"
        )
    if timing:
        s.say(
            f"parsed and planned in {ended.parse_seconds * 1000:.1f} ms, evaluated in "
            f"{ended.evaluate_seconds * 1000:.1f} ms, {ended.rows} rows, {ended.bytes} bytes"
        )
    if fail_empty and not ended.rows:
        raise NothingFound("no rows", hint="to see some of the data: `SELECT * { ?s ?p ?o } LIMIT 10`")


def _query_text(query: str, file: Path | None) -> str:
    if file is not None:
        return text_of(file, "give a file with a SPARQL query, or the query itself")
    if query == "-":
        return sys.stdin.read()
    if not query:
        hint = "write `quadloom sparql 'SELECT …'`, -f query.rq, or - for standard input"
        raise UsageError("no query is given", hint=hint)
    if query.endswith((".rq", ".sparql")) and not query.split()[1:]:
        raise UsageError(f"{query!r} is the name of a file, not a query", hint=f"write `quadloom sparql -f {query}`")
    return query


def _default_format(text: str, s: Session) -> str:
    """Turtle for graphs; for rows, JSON if a table is printed from it, else tab-separated values."""
    form = form_of(text, s.settings.limits)
    if form == "graph":
        return "turtle"
    return "json" if sys.stdout.isatty() and form == "select" else "tsv"


def _copy(answer: QueryResult) -> None:
    last = b"\n"
    for chunk in _harmless_chunks(answer) if sys.stdout.isatty() else answer:
        sys.stdout.buffer.write(chunk)
        last = chunk[-1:] or last
    if last != b"\n":
        sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def _harmless_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """For a terminal. A character may begin in one chunk and end in the next, and so may the end of a line."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), translate=True)
    for chunk in chunks:
        yield harmless(decoder.decode(chunk)).encode()
    yield harmless(decoder.decode(b"", final=True)).encode()
