"""Keyword search: what a person means by a type or vocabulary, turned into what the text index knows.

Ranking, phrases, prefixes, fields, facets and snippets are the index's (`quadloom.stores.text_query` has the syntax);
here names become IRIs, and every search can be shown as the SPARQL query that it equals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from quadloom.asking.sparql.prefixes import shorten, type_iris, vocabulary_iris
from quadloom.asking.sparql.text_patterns import as_sparql
from quadloom.errors import UsageError
from quadloom.stores.protocols.text import SearchAnswer, SearchRequest, TextIndex

MARKS = ("\x02", "\x03")  # around words of a snippet that matched


def search_request(
    text: str = "",
    *,
    types: Sequence[str] = (),
    vocabularies: Sequence[str] = (),
    sites: Sequence[str] = (),
    languages: Sequence[str] = (),
    kinds: Sequence[str] = (),
    since: str | float = 0.0,
    until: str | float = 0.0,
    limit: int = 10,
    offset: int = 0,
    facets: bool = False,
) -> SearchRequest:
    """Types as `schema:Event`, `Event` or IRI; vocabularies as `schema` or IRI; times as unix seconds or ISO dates."""
    return SearchRequest(
        text=text,
        types=_iris(type_iris(name) for name in types),
        vocabularies=_iris(vocabulary_iris(name) for name in vocabularies),
        sites=tuple(sites),
        languages=tuple(language.lower().partition("-")[0] for language in languages),
        kinds=tuple(kinds),
        since=moment(since),
        until=moment(until),
        limit=limit,
        offset=offset,
        facets=facets,
    )


def search(index: TextIndex, request: SearchRequest) -> SearchAnswer:
    """Ask, with facet values as people write them: `schema:Event` instead of its IRI."""
    answer = index.search(request)
    if not answer.facets:
        return answer
    facets = {
        name: [(shorten(value) if name in ("types", "vocabularies") else value, count) for value, count in values]
        for name, values in answer.facets.items()
    }
    return msgspec.structs.replace(answer, facets=facets)


def moment(value: str | float) -> float:
    """Unix time of `2026-01-31`, `2026-01-31T12:00:00Z` or a number. Raises `UsageError`."""
    if isinstance(value, int | float):
        return float(value)
    if not value:
        return 0.0
    try:
        return float(value)
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        raise UsageError(f"not a date: {value!r}", hint="write 2026-01-31 or 2026-01-31T12:00:00Z") from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _iris(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(iri for group in groups for iri in group))


__all__ = ["MARKS", "as_sparql", "moment", "search", "search_request"]
