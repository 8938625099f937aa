"""Keyword search: names of types and vocabularies become the IRIs that the text index knows.

What words mean is decided by the index (`quadloom.stores.text_queries`), the order of pages by
`quadloom.asking.result_order`. `quadloom.asking.sparql.text_patterns.as_sparql` writes a search as SPARQL."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TypedDict

from msgspec.structs import replace

from quadloom.asking.result_order import WINDOW, PageFact, PageSummaries, page_facts, ranked
from quadloom.asking.sparql.prefixes import local_name, nearest, shorten, type_iris, vocabulary_iris
from quadloom.errors import UsageError
from quadloom.settings import seconds
from quadloom.stores.protocols.text import Highlights, Hit, SearchAnswer, SearchRequest, TextIndex
from quadloom.stores.text_queries.snippets import offsets, snippet

MARKS = ("\x02", "\x03")  # around words of a snippet that matched
_FIRST_MOMENT = datetime.min.replace(tzinfo=UTC).timestamp()
LAST_MOMENT = datetime.max.replace(tzinfo=UTC).timestamp() - 1


class SearchFilters(TypedDict, total=False):
    """The arguments of `search_request`, for those who pass them on."""

    type: str | Sequence[str]
    vocabulary: str | Sequence[str]
    site: str | Sequence[str]
    language: str | Sequence[str]
    kind: str | Sequence[str]
    since: str | float
    until: str | float
    limit: int
    offset: int
    facets: bool
    exact: bool
    gone: bool
    explain: bool


def search_request(
    text: str = "",
    *,
    type: str | Sequence[str] = (),
    vocabulary: str | Sequence[str] = (),
    site: str | Sequence[str] = (),
    language: str | Sequence[str] = (),
    kind: str | Sequence[str] = (),
    since: str | float = 0.0,
    until: str | float = 0.0,
    limit: int = 10,
    offset: int = 0,
    facets: bool = False,
    exact: bool = False,
    gone: bool = False,
    explain: bool = False,
) -> SearchRequest:
    """The request that the library, the site and the command line all build from what a person gives.

    Types as `schema:Event`, `Event` or IRI; vocabularies as `schema` or IRI; times as unix seconds or ISO dates.
    `exact`: all words as they are written. `gone`: also pages that their server no longer has. `explain`: hits say what
    their score is made of.
    """
    return SearchRequest(
        text=text,
        types=_iris(type_iris(name) for name in several(type)),
        vocabularies=_iris(vocabulary_iris(name) for name in several(vocabulary)),
        sites=several(site),
        languages=tuple(name.lower().partition("-")[0] for name in several(language)),
        kinds=several(kind),
        since=moment(since),
        until=moment(until),
        limit=limit,
        offset=offset,
        facets=facets,
        exact=exact,
        gone=gone,
        explain=explain,
    )


def several(value: str | Sequence[str]) -> tuple[str, ...]:
    """One name or many, as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value)


def search(index: TextIndex, request: SearchRequest, catalog: PageSummaries | None = None) -> SearchAnswer:
    """Search, with facet values as people write them: `schema:Event` instead of its IRI. With `catalog`, importance
    counts and pages that are gone are left out."""
    started = time.perf_counter()
    end = request.offset + request.limit
    first = request.offset >= 0 and 0 < end <= WINDOW
    wanted = replace(request, offset=0, limit=WINDOW, excerpts=True) if first else request
    answer = index.search(wanted)
    facts = page_facts(catalog, answer.hits)
    hits = [hit for hit in answer.hits if request.gone or not _is_gone(facts.get(hit.id))]
    total = answer.total - (len(answer.hits) - len(hits))
    if first:
        if any(hit.score for hit in hits):
            hits = ranked(hits, facts, newest=answer.newest)
        hits = [_shown(hit, answer.highlights) for hit in hits[request.offset : end]]
    facets = {
        name: [(shorten(value) if name in ("types", "vocabularies") else value, count) for value, count in values]
        for name, values in answer.facets.items()
    }
    seconds = time.perf_counter() - started
    return replace(answer, hits=tuple(hits), total=total, facets=facets, seconds=seconds)


def _is_gone(fact: PageFact | None) -> bool:
    return fact is not None and fact.gone


def _shown(hit: Hit, marked: Highlights) -> Hit:
    return replace(hit, snippet=snippet(hit.excerpt, marked), excerpt="")


def for_json(hit: Hit) -> Hit:
    """With a snippet in plain text, and the places of its matches beside it."""
    text, marks = offsets(hit.snippet)
    return replace(hit, snippet=text, marks=marks)


_FACETS = {
    "site": "sites", "type": "types", "language": "languages", "kind": "kinds", "vocabulary": "vocabularies",
}  # fmt: skip


def why_nothing(index: TextIndex, request: SearchRequest) -> list[str]:
    """If a search found nothing: which filters no page passes, in words. Empty if it is not their fault."""
    filters = (
        ("site", request.sites, SearchRequest(sites=request.sites)),
        ("type", request.types, SearchRequest(types=request.types)),
        ("language", request.languages, SearchRequest(languages=request.languages)),
        ("kind", request.kinds, SearchRequest(kinds=request.kinds)),
        ("vocabulary", request.vocabularies, SearchRequest(vocabularies=request.vocabularies)),
    )
    wrong = [
        (name, values)
        for name, values, alone in filters
        if values and not index.search(replace(alone, limit=0, snippets=False)).total
    ]
    used = index.search(SearchRequest(limit=0, snippets=False, facets=True)).facets if wrong else {}
    return [_no_such(name, values, used.get(_FACETS[name], ())) for name, values in wrong]


def _no_such(name: str, values: Sequence[str], used: Sequence[tuple[str, int]]) -> str:
    """`no page has the type Bok; did you mean schema:Book?` A type without prefix is one word for many IRIs."""
    last_parts = {local_name(value) for value in values}
    one_word = len(values) > 1 and len(last_parts) == 1
    asked = last_parts.pop() if one_word else " or ".join(shorten(value) for value in values)
    near = nearest(asked, [value for value, _ in used])
    return f"no page has the {name} {asked}" + (f"; did you mean {near}?" if near else "")


def moment(value: str | float, now: float | None = None) -> float:
    """Unix time of `2026-01-31`, `2026-01-31T12:00:00Z`, `7d` (so long ago) or a number. A text must lie between the
    years 1 and 9999. Raises `UsageError`."""
    if isinstance(value, int | float):
        return float(value)
    if not value:
        return 0.0
    at = _unix_time(value, time.time() if now is None else now)
    if not _FIRST_MOMENT <= at <= LAST_MOMENT:  # also refuses what is not a number
        raise UsageError(f"not a date: {value[:50]!r}", hint="write 2026-01-31, 2026-01-31T12:00:00Z or 7d")
    return at


def _unix_time(value: str, now: float) -> float:
    try:
        return float(value)
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return _long_ago(value, now)
    try:
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except OverflowError:
        return math.nan


def _long_ago(value: str, now: float) -> float:
    try:
        return now - seconds(value)
    except ValueError:
        raise UsageError(f"not a date: {value!r}", hint="write 2026-01-31, 2026-01-31T12:00:00Z or 7d") from None


def _iris(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(iri for group in groups for iri in group))
