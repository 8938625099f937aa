"""The text index: words to pages, what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from quadloom.model.text import TextDocument


class ScorePart(msgspec.Struct, frozen=True):
    """One line of the explanation of a score: `value` is added to the sum, or multiplies it if `factor`."""

    what: str
    value: float
    factor: bool = False


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    score: float
    title: str = ""
    snippet: str = ""  # plain text; the words that matched are between \x02 and \x03
    marks: tuple[tuple[int, int], ...] = ()  # in JSON, whose snippet is plain text: begin and end of each such word
    types: tuple[str, ...] = ()
    site: str = ""
    language: str = ""
    kind: str = ""
    fetched_at: float = 0.0
    excerpt: str = ""  # instead of a snippet, if the request asks for it
    also_at: tuple[str, ...] = ()  # URLs of the same content: duplicates, its feed, its data file
    gone: bool = False  # the server said 404 or 410 at the last visit
    explanation: tuple[ScorePart, ...] = ()
    lacks: tuple[str, ...] = ()  # words of a question of up to twelve that this page lacks, besides those that all lack
    tier: int = 0  # steps of the search that this page satisfies beyond the last one: a higher tier is always better


class Highlights(msgspec.Struct, frozen=True):
    """What a snippet marks: whole words, words that begin so, words that begin with a stem and end soon, and runs of
    characters anywhere. All are folded as `quadloom.stores.text_queries.snippets.aligned` folds."""

    words: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    stems: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()


class Correction(msgspec.Struct, frozen=True):
    """A word of the question that occurs nowhere, and the one that was searched for instead."""

    asked: str
    used: str


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
    excerpts: bool = False  # hits hold the excerpt, of which the caller makes snippets
    exact: bool = False  # only pages with all words as they are written
    explain: bool = False
    gone: bool = False  # also pages that their server no longer has


class SearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Iterating gives the hits, best first."""

    hits: tuple[Hit, ...] = ()
    total: int = 0  # pages with all words of the question, else with half of them or more, else with any
    facets: dict[str, list[tuple[str, int]]] = {}  # types, vocabularies, sites, languages, kinds, years
    seconds: float = 0.0
    corrections: tuple[Correction, ...] = ()
    missing: tuple[str, ...] = ()  # words of the question that no page has
    offers: tuple[Correction, ...] = ()  # what could be meant by missing words of an exact search
    newest: bool = False  # the question asks for what is new
    most_words: bool = False  # some hits have only some of the words; they do not count if others have all
    highlights: Highlights = Highlights()

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)


class TextWriter(Protocol):
    """The part of a `TextIndex` that takes documents."""

    def put(self, documents: Sequence[TextDocument]) -> None:
        """Add documents, or replace those with the same id."""
        ...

    def remove(self, ids: Sequence[str]) -> None:
        """Unknown ids are no error."""
        ...

    def commit(self) -> None: ...

    def close(self) -> None: ...


class FreshTextShards(TextWriter, Protocol):
    """Text indexes of shards that begin empty. Readers see the former ones until `publish`."""

    def publish(self, shards: Iterable[int] = ...) -> None:
        """Show these shards to readers, those without documents too; all of them by default."""
        ...


class TextIndex(TextWriter, Protocol):
    """Words to pages. Guarantees: changes become visible and durable at `commit`, all of them together; a crash leaves
    the last commit."""

    def search(self, request: SearchRequest) -> SearchAnswer:
        """Hits among what was committed, best first. Every text is a query: what has no syntax counts as words. How
        generously words are taken is said in `quadloom.stores.text_queries.query_plan`."""
        ...

    def words(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Words of the index that begin so, with the number of documents, the most frequent first."""
        ...

    def ids(self) -> Iterator[str]:
        """All ids, for verify."""
        ...

    def __len__(self) -> int:
        """Number of documents."""
        ...

    @property
    def is_outdated(self) -> bool:
        """Whether an older version of Quadloom analysed the documents: questions miss some until they are rebuilt."""
        ...

    def close(self) -> None:
        """What was not committed is given up, as after a crash."""
        ...
