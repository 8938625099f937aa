"""The text index: words to pages, what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec


class TextDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What the text index holds of a page."""

    id: str  # graph IRI = page URL
    title: str = ""
    body: str = ""
    literals: str = ""  # words of the data: names, descriptions …
    types: tuple[str, ...] = ()
    vocabularies: tuple[str, ...] = ()
    site: str = ""
    host: str = ""
    language: str = ""
    kind: str = ""
    fetched_at: float = 0.0


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    score: float
    title: str = ""
    snippet: str = ""  # plain text; the words that matched stand between \x02 and \x03
    types: tuple[str, ...] = ()
    site: str = ""
    language: str = ""
    kind: str = ""
    fetched_at: float = 0.0


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`text` may hold words, "phrases", prefix*, field:word, -not. Empty text with a filter lists by date."""

    text: str = ""
    types: tuple[str, ...] = ()
    vocabularies: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    since: float = 0.0
    until: float = 0.0
    limit: int = 10
    offset: int = 0
    facets: bool = False
    snippets: bool = True  # False: hits hold only id and score, a tenth of the cost


class SearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Iterating gives the hits, best first."""

    hits: tuple[Hit, ...] = ()
    total: int = 0
    facets: dict[str, list[tuple[str, int]]] = {}  # types, vocabularies, sites, languages, kinds, years
    seconds: float = 0.0

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)


class TextIndex(Protocol):
    """Words to pages. Changes become visible, and durable, at `commit`."""

    def put(self, documents: Sequence[TextDocument]) -> None:
        """Replace by id."""
        ...

    def remove(self, ids: Sequence[str]) -> None: ...

    def commit(self) -> None: ...

    def search(self, request: SearchRequest) -> SearchAnswer: ...

    def ids(self) -> Iterator[str]:
        """All ids, for verify."""
        ...

    def __len__(self) -> int: ...

    def close(self) -> None: ...
