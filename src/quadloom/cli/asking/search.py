"""`quadloom search`: find pages by words, types and sites, also while a crawl runs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.padding import Padding
from rich.text import Text

from quadloom.asking.search import MARKS, as_sparql, search_request
from quadloom.asking.search import search as find
from quadloom.asking.sparql.prefixes import shorten
from quadloom.cli.asking.status import OUTDATED
from quadloom.cli.session import Session, harmless, session
from quadloom.errors import NothingFound
from quadloom.stores.protocols.text import Hit, SearchAnswer
from quadloom.warehouse import Warehouse

Flag = Annotated[bool, Parameter(negative="")]
_FEWER = "try fewer or shorter words, or light* to match the start of a word"


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
        words, "phrases", prefix*, field:word, -word to exclude
    type
        only pages about things of this type: schema:Event, Event or a full IRI
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
        number of hits to print
    offset
        number of hits to skip
    facets
        also count hits by type, vocabulary, site, language, kind and year
    as_query
        print the equivalent SPARQL query instead of searching
    fail_empty
        exit with code 4 if nothing is found
    """
    s = session()
    request = search_request(
        " ".join(words),
        types=type,
        vocabularies=vocabulary,
        sites=site,
        languages=language,
        kinds=kind,
        since=since,
        until=until,
        limit=limit,
        offset=offset,
        facets=facets or s.json,
    )
    if as_query:
        s.write(as_sparql(request))
        return
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
        answer = find(warehouse.stores.text, request)
        if warehouse.stores.text.is_outdated:
            s.say(OUTDATED)
    _print_hits(s, answer)
    if not answer.total and fail_empty:
        raise NothingFound("no page matches", hint=_FEWER)


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
    """Print title, address and snippet, as search engines do; the address is never wrapped."""
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
