"""The text index on PostgreSQL's full text: words to pages for a warehouse of many machines, up to some million pages.

Words are those of `quadloom.documents.words`, as in the embedded index, whatever the server's locale is; only counting,
matching and ranking are done by the server (`text_search`). A `tsvector` has four weights for all fields, so
`title:word` is a condition on a weight, and `headings:word` also finds a word of the description. Phrases need
positions, of which a vector holds 16,383; later words are still found one by one. Stems and endings have no positions
and a sign in front, so that no word is taken for one. As in the embedded index, an excerpt is stored instead of the
body.

What is put waits in memory until `commit`, which is one transaction; many workers may write at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from quadloom.documents.words.analysis import LONGEST, SCHEMA, analyse_fields, query_tokens, word_analyzer
from quadloom.documents.words.scripts import readable
from quadloom.model.text import AnalysedText, TextDocument
from quadloom.process.retry import retry_when_unavailable
from quadloom.stores.postgres.arrays import columns
from quadloom.stores.postgres.database import PostgresDatabase, plain
from quadloom.stores.postgres.text_search import (
    ENDING,
    FIELD_WEIGHTS,
    LISTS,
    STEM,
    PostgresHit,
    PostgresSearch,
    PostgresVocabulary,
)
from quadloom.stores.protocols.text import Highlights, Hit, SearchAnswer, SearchRequest
from quadloom.stores.sql.statements import SqlCondition
from quadloom.stores.text_queries import text_query
from quadloom.stores.text_queries.query_plan import plan_search
from quadloom.stores.text_queries.snippets import highlights_of, snippet
from quadloom.stores.text_queries.synonyms import NO_SYNONYMS, Synonyms

EXCERPT = 3000
_VERSION = f"@{SCHEMA}"  # a lexeme that every document of this version of the analysis has
_FACETS = {"types": "types", "vocabularies": "vocabularies", "sites": "site", "languages": "language", "kinds": "kind"}
_FACET_SIZE = 20
_POSITIONS, _PER_WORD = 16_383, 255  # limits of the type
_VECTOR_BYTES = 700_000  # of words; the type holds one megabyte with positions
_GAP = 10  # between fields, so that no phrase spans two
_BETWEEN = "\x01"  # separates values of a list: PostgreSQL's arrays of arrays must have equal lengths


class PostgresText:
    """See `quadloom.stores.protocols.text.TextIndex`."""

    def __init__(self, database: PostgresDatabase, synonyms: Synonyms = NO_SYNONYMS) -> None:
        self._database = database
        self._synonyms = synonyms
        self._vocabulary = PostgresVocabulary(database)
        self._pending: dict[str, TextDocument | None] = {}

    def put(self, documents: Sequence[TextDocument]) -> None:
        self._pending.update((document.id, document) for document in documents)

    def remove(self, ids: Sequence[str]) -> None:
        self._pending.update((id, None) for id in ids)

    def commit(self) -> None:
        if self._pending:
            retry_when_unavailable(self._write)
            self._pending.clear()

    def _write(self) -> None:
        fresh = sorted(_row(document) for document in self._pending.values() if document is not None)
        gone = sorted(plain(id) for id, document in self._pending.items() if document is None)
        with self._database.transaction():
            self._database.write("DELETE FROM text_document WHERE id = ANY(%s::text[])", (gone,))
            self._database.write(
                "INSERT INTO text_document SELECT id, title, excerpt, string_to_array(types, E'\\x01'), "
                "string_to_array(vocabularies, E'\\x01'), site, host, language, kind, fetched_at, year, "
                "words::tsvector FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], "
                "%s::text[], %s::text[], %s::text[], %s::float8[], %s::smallint[], %s::text[]) AS d(id, title, "
                "excerpt, types, vocabularies, site, host, language, kind, fetched_at, year, words) "
                "ON CONFLICT(id) DO UPDATE SET title=excluded.title, excerpt=excluded.excerpt, types=excluded.types, "
                "vocabularies=excluded.vocabularies, site=excluded.site, host=excluded.host, "
                "language=excluded.language, kind=excluded.kind, fetched_at=excluded.fetched_at, "
                "year=excluded.year, words=excluded.words",
                columns("sssssssssdhs", fresh),
            )

    def search(self, request: SearchRequest) -> SearchAnswer:
        started = time.perf_counter()
        parsed = text_query.parse(request.text)
        self._vocabulary.refresh()
        search = PostgresSearch(self._database, self._vocabulary, parsed, request)
        plan = plan_search(parsed, self._vocabulary, search.ask, synonyms=self._synonyms, exact=request.exact)
        marked = highlights_of(plan.last)
        found = search.page(plan)
        return SearchAnswer(
            hits=tuple(_hit(row, marked, request) for row in found),
            total=plan.counted.count,
            facets=self._facets(plan.counted.counted) if request.facets else {},
            seconds=time.perf_counter() - started,
            corrections=plan.corrections,
            missing=plan.missing,
            offers=plan.offers,
            most_words=plan.last.partial and any(row.tier == 0 for row in found),
            newest=parsed.newest,
            highlights=marked,
        )

    def words(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        self._vocabulary.refresh()
        tokens = query_tokens(prefix)
        found = self._vocabulary.starting_with(tokens[-1] if tokens else "", limit)
        return [(readable(word), count) for word, count in found]

    def _facets(self, where: SqlCondition) -> dict[str, list[tuple[str, int]]]:
        parts = [
            f"(SELECT '{name}', {f'unnest({field})' if field in LISTS else field} AS value, count(*) AS number "
            f"FROM found GROUP BY value ORDER BY number DESC, value LIMIT {_FACET_SIZE})"
            for name, field in {**_FACETS, "years": "year::text"}.items()
        ]
        rows = self._database.execute(
            "WITH found AS MATERIALIZED (SELECT types, vocabularies, site, language, kind, year FROM text_document "
            f"WHERE {where.sql}) {' UNION ALL '.join(parts)}",
            where.values,
        )
        facets: dict[str, list[tuple[str, int]]] = {name: [] for name in (*_FACETS, "years")}
        for name, value, number in rows:
            if value:
                facets[name].append((value, number))
        return facets

    def ids(self) -> Iterator[str]:
        last = ""
        while rows := self._database.execute(
            "SELECT id FROM text_document WHERE id > %s ORDER BY id LIMIT 5000", (last,)
        ):
            for (last,) in rows:
                yield last

    def __len__(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM text_document")[0][0])

    @property
    def is_outdated(self) -> bool:
        """By the document that was fetched first: as long as the index was not rebuilt, it is as it was."""
        rows = self._database.execute(
            "SELECT words @@ %s::tsquery FROM text_document ORDER BY fetched_at LIMIT 1", (f"'{_VERSION}'",)
        )
        return bool(rows) and not rows[0][0]

    def close(self) -> None:
        self._pending.clear()
        self._database.close()


def _row(document: TextDocument) -> tuple[object, ...]:
    texts = {name: plain(text) for name, text in document.texts.items()}
    analysed = document.analysed or analyse_fields(texts, document.language)
    return (
        plain(document.id),
        plain(document.title),
        plain((document.main_text or document.literals)[:EXCERPT]),
        plain(_BETWEEN.join(document.types)),
        plain(_BETWEEN.join(document.vocabularies)),
        plain(document.site),
        plain(document.host),
        plain(analysed.language),
        plain(document.kind),
        document.fetched_at,
        datetime.fromtimestamp(document.fetched_at, UTC).year,
        _vector(texts, analysed),
    )


def _vector(texts: dict[str, str], analysed: AnalysedText) -> str:
    """The words with positions and weights, in the syntax of a `tsvector`."""
    places: dict[str, list[str]] = {}
    position = room = 0
    split = word_analyzer().analyze
    for field, weight in FIELD_WEIGHTS.items():
        position += _GAP
        for word in split(plain(analysed.searched(field, texts.get(field, "")))):
            position += 1
            known = places.get(word)
            if known is None:
                room += len(word.encode())
                if room > _VECTOR_BYTES:
                    break
                places[word] = [f"{min(position, _POSITIONS)}{weight}"]
            elif len(known) < _PER_WORD and position < _POSITIONS:
                known.append(f"{position}{weight}")
    words = [f"'{word}':{','.join(where)}" for word, where in places.items()]
    stems = [f"'{STEM}{stem}'" for stem in analysed.stems.split() if len(stem) <= LONGEST]
    endings = [f"'{ENDING}{ending}'" for ending in analysed.endings.split() if len(ending) <= LONGEST]
    return " ".join((*words, *stems, *endings, f"'{_VERSION}'"))


def _hit(row: PostgresHit, marked: Highlights, request: SearchRequest) -> Hit:
    if not request.snippets:
        return Hit(id=row.id, score=row.score)
    return Hit(
        id=row.id,
        score=row.score,
        title=row.title,
        snippet="" if request.excerpts else snippet(row.excerpt, marked),
        types=tuple(row.types),
        site=row.site,
        language=row.language,
        kind=row.kind,
        fetched_at=row.fetched_at,
        excerpt=row.excerpt if request.excerpts else "",
        explanation=row.explanation,
        tier=row.tier,
    )
