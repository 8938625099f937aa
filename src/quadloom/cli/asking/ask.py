"""`quadloom search`, `sparql`, `show` and `stats`: questions to a warehouse, also while a crawl fills it."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.padding import Padding
from rich.text import Text

from quadloom.asking.search import MARKS, as_sparql, search_request
from quadloom.asking.search import search as find
from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.sparql.service import QueryResult, form_of
from quadloom.cli.asking.page import show_page
from quadloom.cli.session import Session, harmless, session
from quadloom.errors import NothingFound, UsageError
from quadloom.stores.protocols.text import Hit, SearchAnswer
from quadloom.warehouse import Warehouse

_TERMINAL_CODES = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # in UTF-8 never a part of another character
Flag = Annotated[bool, Parameter(negative="")]
_FEWER = "try fewer or shorter words, or a prefix such as lightho*"


def search(
    *words: str,
    type: tuple[str, ...] = (),
    vocabulary: tuple[str, ...] = (),
    site: tuple[str, ...] = (),
    language: tuple[str, ...] = (),
    kind: tuple[str, ...] = (),
    since: str = "",
    until: str = "",
    limit: int = 10,
    offset: int = 0,
    facets: Flag = False,
    as_query: Annotated[bool, Parameter(name="--as-sparql", negative="")] = False,
    fail_empty: Flag = False,
) -> None:
    """Find pages by words: `opera "open air" concert* title:gala -cancelled`.

    Parameters
    ----------
    words
        words, "phrases", prefix*, field:word, -not
    type
        only pages about such things: schema:Event, Event or a full IRI
    vocabulary
        only pages that use this ontology: schema, foaf or a namespace
    site
        only pages of this registered domain
    language
        only pages in this language
    kind
        only documents of this kind: html, rss, turtle …
    since
        fetched on this date or later
    until
        fetched on this date or before
    limit
        hits printed
    offset
        hits left out before the first
    facets
        also count hits by type, vocabulary, site, language, kind and year
    as_query
        print the equal SPARQL query instead of asking
    fail_empty
        exit with 4 when nothing is found
    """
    s = session()
    request = search_request(
        " ".join(words), types=type, vocabularies=vocabulary, sites=site, languages=language, kinds=kind, since=since,
        until=until, limit=limit, offset=offset, facets=facets or s.json,
    )  # fmt: skip
    if as_query:
        s.write(as_sparql(request))
        return
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
        answer = find(warehouse.stores.text, request)
    _print_hits(s, answer)
    if not answer.total and fail_empty:
        raise NothingFound("nothing found", hint=_FEWER)


def sparql(
    query: str = "",
    *,
    file: Annotated[Path | None, Parameter(name=["--file", "-f"])] = None,
    format: str = "",
    default_graph: tuple[str, ...] = (),
    named_graph: tuple[str, ...] = (),
    timing: Flag = False,
    fail_empty: Flag = False,
) -> None:
    """Ask in SPARQL 1.1. Common prefixes need no PREFIX line; all pages together are the default graph.

    Parameters
    ----------
    query
        the query; `-` reads it from standard input
    file
        read the query from a file
    format
        json, xml, csv, tsv for rows; turtle, nt, nq, trig, jsonld, rdfxml for graphs
    default_graph
        pages (graph IRIs) that make up the default graph
    named_graph
        pages that GRAPH may name
    timing
        say on standard error how long parsing and evaluation took
    fail_empty
        exit with 4 when there are no rows, or the verdict is no
    """
    s = session()
    text = _query_text(query, file)
    shown = format or ("json" if s.json else "")
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
        table = not shown and sys.stdout.isatty()
        answer = warehouse.ask.queries.ask(
            text, format=shown or _default_format(text, s), default_graphs=default_graph, named_graphs=named_graph
        )
        with answer:
            _print_table(s, answer) if table and answer.form == "select" else _copy(answer)
    ended = answer.ended
    if ended is None:
        return
    if answer.truncated:
        s.say(f"the result was cut at its {ended.truncated} limit; limits.query_{ended.truncated} raises it")
    if timing:
        s.say(
            f"parsed and planned in {ended.parse_seconds * 1000:.1f} ms, evaluated in "
            f"{ended.evaluate_seconds * 1000:.1f} ms, {ended.rows} rows, {ended.bytes} bytes"
        )
    if fail_empty and not ended.rows:
        raise NothingFound("no rows", hint="`SELECT * { ?s ?p ?o } LIMIT 10` shows what is there")


def show(
    *names: str,
    history: Flag = False,
    at: str = "",
    since: str = "",
    until: str = "",
    consolidate: bool | None = None,
    limit: int = 200,
) -> None:
    """Show all that is known of a thing, with the pages that say so; or, with `show page URL`, a page through time.

    Parameters
    ----------
    names
        an IRI or a prefixed name such as dbr:Vienna; or `page` and a URL
    history
        list a page's visits, newest first
    at
        print a page's graph as it was at this time
    since
        print which statements of a page were added (+) and removed (-) since this time
    until
        end of that time [default: the last visit]
    consolidate
        gather names joined by owl:sameAs or a shared identifier
    limit
        lines printed
    """
    s = session()
    if len(names) == 2 and names[0] == "page":
        with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
            show_page(s, warehouse, names[1], history=history, at=at, since=since, until=until)
        return
    if len(names) != 1:
        raise UsageError("show takes one IRI, or `page` and a URL", hint="quadloom show https://example.org/#me")
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
        entity = warehouse.ask.entity(names[0], consolidate=consolidate)
    if s.json:
        s.emit(entity)
        return
    s.write(f"{entity.label or entity.iri}\t{' '.join(shorten(name) for name in entity.types)}")
    lines = 0
    for found in entity.properties:
        for statement in found.statements:
            if lines < limit:
                mark = "≠" if found.contradicted else " "
                value = statement.value.text + (f"@{statement.value.language}" if statement.value.language else "")
                s.write(f"{mark} {shorten(found.iri)}\t{_one_line(value)}\t{' '.join(statement.sources)}")
            lines += 1
    for inverse in entity.inverse[: max(0, limit - lines)]:
        s.write(f"← {shorten(inverse.predicate)}\t{inverse.subject}\t{' '.join(inverse.sources)}")
    if lines + len(entity.inverse) > limit:
        s.say(f"{lines + len(entity.inverse)} lines; --limit shows more")


def stats(*, limit: int = 20) -> None:
    """Count what the warehouse holds: classes, properties, vocabularies, sites, kinds, sizes, change rates.

    Parameters
    ----------
    limit
        lines of each list
    """
    s = session()
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
        numbers = warehouse.ask.statistics(limit=limit)
    if s.json:
        s.emit(numbers)
        return
    s.write(f"pages\t{numbers.pages}\nquads\t{numbers.quads}")
    for name in ("classes", "properties", "vocabularies"):
        for value, count in getattr(numbers, name):
            s.write(f"{name}\t{shorten(value)}\t{count}")
    for name in ("sites", "kinds", "outcomes"):
        for value, count in getattr(numbers, name):
            s.write(f"{name}\t{value}\t{count}")
    for name in ("sizes", "change_rates"):
        for value, share in getattr(numbers, name):
            s.write(f"{name}\t{value}\t{share:.1%}")


def _query_text(query: str, file: Path | None) -> str:
    if file is not None:
        return file.read_text(encoding="utf-8")
    if query == "-":
        return sys.stdin.read()
    if not query:
        raise UsageError("no query given", hint="quadloom sparql 'SELECT …', -f query.rq, or - for standard input")
    return query


def _default_format(text: str, s: Session) -> str:
    """Tab-separated rows for pipes, Turtle for graphs, JSON where it becomes a table."""
    form = form_of(text, s.settings.limits)
    if form == "graph":
        return "turtle"
    return "json" if sys.stdout.isatty() and form == "select" else "tsv"


def _copy(answer: QueryResult) -> None:
    last = b"\n"
    to_terminal = sys.stdout.isatty()
    for chunk in answer:
        sys.stdout.buffer.write(_TERMINAL_CODES.sub(b"?", chunk) if to_terminal else chunk)
        last = chunk[-1:]
    if last != b"\n":
        sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def _print_table(s: Session, answer: QueryResult) -> None:
    s.table(answer.variables, answer.values())


def _print_hits(s: Session, answer: SearchAnswer) -> None:
    if s.json:
        hits = [{**msgspec.structs.asdict(hit), "snippet": _plain(hit.snippet)} for hit in answer.hits]
        s.emit(
            {"ok": True, "total": answer.total, "took_ms": answer.seconds * 1000, "hits": hits, "facets": answer.facets}
        )
        return
    if s.is_terminal:
        for hit in answer.hits:
            _print_hit(s, hit)
    else:
        s.table(["title", "type", "site", "date", "page"], [_hit_row(hit) for hit in answer.hits])
    for name, values in answer.facets.items():
        if values:
            s.say(f"{name}: " + ", ".join(f"{value} {count}" for value, count in values[:8]))
    s.say(f"{answer.total} found in {answer.seconds * 1000:.0f} ms")
    if not answer.total:
        s.say(f"hint: {_FEWER}")


def _hit_row(hit: Hit) -> tuple[str, str, str, str, str]:
    types = " ".join(shorten(name) for name in hit.types[:2])
    date = datetime.fromtimestamp(hit.fetched_at, UTC).date().isoformat()
    return hit.title or hit.id, types, hit.site, date, hit.id


def _print_hit(s: Session, hit: Hit) -> None:
    """Title, address and the words around what was found, as search pages have it; the address stays in one piece."""
    title, types, _site, date, page = _hit_row(hit)
    s.out.print(Text(harmless(title), "bold"), Text(f"  {harmless(types)}  {date}", "dim"))
    s.out.print(Text("  " + harmless(page), "cyan"), soft_wrap=True)
    if hit.snippet:
        opening, closing = MARKS
        text = Text()
        for index, part in enumerate(re.split(f"[{opening}{closing}]", hit.snippet)):
            text.append(harmless(part.replace("\n", " ")), "bold yellow" if index % 2 else "")
        s.out.print(Padding(text, (0, 0, 0, 2)))


def _plain(snippet: str) -> str:
    for mark in MARKS:
        snippet = snippet.replace(mark, "")
    return snippet


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:199] + "…"
