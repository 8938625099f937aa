"""Plans of `quadloom.stores.text_queries.query_plan` as queries of PostgreSQL's full text.

The same pages match as in the embedded index. The score differs: `ts_rank` knows the fields' weights and how often a
word occurs, and the vocabulary says how rare it is; its four weights stand for all ways to match (`_RANKS`), and words
near each other gain nothing. The words of the index come from a sample of the documents that were fetched last
(`_SAMPLE`), so that a rare word may not be offered as a correction.
"""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from quadloom.stores.postgres.database import PostgresDatabase, plain
from quadloom.stores.protocols.text import ScorePart, SearchRequest
from quadloom.stores.sql.statements import SqlCondition
from quadloom.stores.text_queries.query_plan import FEW, Plan, SearchPlan, Way, WayField, Wish, rarity
from quadloom.stores.text_queries.text_query import Clause, ParsedText, site_names

MAX_HITS = 10_000
TIER = 200.0
FIELD_WEIGHTS = {
    "title": "A", "headings": "B", "description": "B", "literals": "C", "links": "C", "images": "C", "body": "D",
    "rest": "D", "address": "D",
}  # fmt: skip
LISTS = ("types", "vocabularies")
STEM, ENDING = "=", "<"  # before stems and endings in a vector
_SIGNS = {"words": "", "stems": STEM, "endings": ENDING}
_RANK = "'{0.33, 0.4, 0.6, 1.0}'"  # of D, C, B, A
_QUESTION_RANK = "'{0.3, 0.2, 0.1, 0.15}'"  # for many words: see `quadloom.stores.tantivy.search`
_TITLE_WORDS = 5
_RANKS = {
    "exact": 10.0,
    "form": 9.0,
    "kin": 6.0,
    "synonym": 7.0,
    "joined": 8.0,
    "prefix": 5.0,
    "compound": 5.0,
    "near": 3.0,
    "part": 6.0,
}
_BY_LENGTH = 1  # divides a rank by 1 + the logarithm of the number of words
_OPTIONAL = 0.2
_SAMPLE = 2000  # documents
_SAMPLE_SECONDS = 60.0
_LANGUAGES = 8
_START_PAGES = 4
_NAME_WORDS = 4
_COLUMNS = "id, title, excerpt, types, site, language, kind, fetched_at"


class PostgresVocabulary:
    """See `quadloom.stores.text_queries.query_plan.IndexVocabulary`."""

    def __init__(self, database: PostgresDatabase, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._until = -1.0
        self._words: list[str] = []
        self._counts: dict[str, int] = {}
        self._known: dict[str, int] = {}
        self._spoken: tuple[str, ...] = ()
        self.documents = 0

    def refresh(self) -> None:
        """Read the sample again if it is old."""
        if self._clock() < self._until:
            return
        rows = self._database.execute(
            "SELECT word, ndoc FROM ts_stat($$SELECT words FROM text_document ORDER BY fetched_at DESC LIMIT "
            f"{_SAMPLE}$$)"
        )
        self._counts = {word: int(count) for word, count in rows}
        self._words = sorted(self._counts)
        self._known = {}
        self.documents = int(self._database.execute("SELECT count(*) FROM text_document")[0][0])
        spoken = self._database.execute(
            "SELECT language FROM text_document WHERE language <> '' GROUP BY language ORDER BY count(*) DESC LIMIT %s",
            (_LANGUAGES,),
        )
        self._spoken = tuple(name for (name,) in spoken)
        self._until = self._clock() + (_SAMPLE_SECONDS if self.documents > _SAMPLE else 0.0)

    def frequency(self, token: str, field: WayField = "words") -> int:
        lexeme = _SIGNS[field] + token
        if lexeme in self._counts or self.documents <= _SAMPLE:
            return self._counts.get(lexeme, 0)
        found = self._known.get(lexeme)
        if found is None:
            query = "SELECT count(*) FROM (SELECT FROM text_document WHERE words @@ %s::tsquery LIMIT 100) AS some"
            found = self._known[lexeme] = int(self._database.execute(query, (f"'{plain(lexeme)}'",))[0][0])
        return found

    def starting_with(self, prefix: str, limit: int, field: WayField = "words") -> list[tuple[str, int]]:
        sign = _SIGNS[field]
        start = sign + prefix
        found = []
        for place in range(bisect.bisect_left(self._words, start), len(self._words)):
            word = self._words[place]
            if not word.startswith(start):
                break
            if sign or not word.startswith((STEM, ENDING, "@")):
                found.append((word.removeprefix(sign), self._counts[word]))
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def languages(self) -> tuple[str, ...]:
        return self._spoken


class PostgresHit(NamedTuple):
    """A row of the table; `excerpt` and the following are as in `TextDocument`."""

    id: str
    title: str
    excerpt: str
    types: list[str]
    site: str
    language: str
    kind: str
    fetched_at: float
    score: float
    tier: int = 0
    explanation: tuple[ScorePart, ...] = ()


class PostgresHits(msgspec.Struct, frozen=True):
    """See `quadloom.stores.text_queries.query_plan.StepHits`."""

    count: int
    rows: list[PostgresHit]
    counted: SqlCondition


class PostgresSearch:
    """One search: asks for the steps of its plan, and puts their rows in order."""

    def __init__(
        self, database: PostgresDatabase, vocabulary: PostgresVocabulary, parsed: ParsedText, request: SearchRequest
    ) -> None:
        self._database = database
        self._vocabulary = vocabulary
        self._parsed = parsed
        self._request = request
        self._filters = filters(parsed, request)
        self._offset = max(0, min(request.offset, MAX_HITS))
        self._limit = max(0, min(request.limit, MAX_HITS - self._offset))

    def ask(self, plan: Plan) -> PostgresHits:
        where = _both(self._filters, _matching(plan))
        score = self._score(plan)
        number = self._offset + self._limit + (3 * FEW if plan.wishes else 0)
        rows = self._database.execute(
            f"SELECT {_COLUMNS}, {score.sql} AS score FROM text_document WHERE {where.sql} "
            "ORDER BY score DESC, fetched_at DESC, id LIMIT %s",
            (*score.values, *where.values, number),
        )
        counted = [where]
        if plan.least > 1:
            counted.insert(0, _both(where, _most_words(plan)))
        for where in counted:
            count = int(
                self._database.execute(f"SELECT count(*) FROM text_document WHERE {where.sql}", where.values)[0][0]
            )
            if count:
                break
        return PostgresHits(count, [PostgresHit(*row) for row in rows], where)

    def _score(self, plan: Plan) -> SqlCondition:
        parts: list[str] = []
        values: list[object] = []
        for wish in (*plan.wishes, *plan.optional):
            share = (_OPTIONAL if wish in plan.optional else 1.0) * self._rarity(wish)
            ranks = []
            for kind, query in _by_kind(wish).items():
                ranks.append(f"{_RANKS[kind] * share} * ts_rank({_rank(plan)}, words, %s::tsquery, {_BY_LENGTH})")
                values.append(query)
            parts.append(f"greatest({', '.join(ranks)})" if len(ranks) > 1 else ranks[0])
        return SqlCondition(f"({' + '.join(parts)})" if parts else "0.0::float8", values)

    def _rarity(self, wish: Wish) -> float:
        counts = [
            min((self._vocabulary.frequency(token, way.field) for token in way.tokens), default=0) for way in wish.ways
        ]
        return rarity(max(counts, default=0), self._vocabulary.documents)

    def page(self, plan: SearchPlan[PostgresHits]) -> list[PostgresHit]:
        """The rows that the request asks for."""
        seen: dict[str, PostgresHit] = {}
        for row, tier, step in self._ranked(plan):
            if row.id not in seen:
                seen[row.id] = self._scored(row, tier, step)
        return list(seen.values())[self._offset : self._offset + self._limit]

    def _ranked(self, plan: SearchPlan[PostgresHits]) -> Iterator[tuple[PostgresHit, int, Plan]]:
        if not self._request.exact:
            for row in self._start_pages():
                yield row, len(plan.steps), plan.last
        for place, (step, found) in enumerate(plan.steps):
            for row in found.rows:
                yield row, len(plan.steps) - 1 - place, step

    def _start_pages(self) -> list[PostgresHit]:
        words = [clause.value.lower() for clause in self._parsed.words if not (clause.negated or clause.field)]
        if not 0 < len(words) <= _NAME_WORDS or len(words) != len(self._parsed.clauses):
            return []
        if not all(map(str.isalnum, words)):
            return []
        names = dict.fromkeys(("".join(words), "-".join(words)))
        hosts = [f"{prefix}{name}." for name in names for prefix in ("", "www.")]
        rows = self._database.execute(
            f"SELECT {_COLUMNS}, 0.0::float8 FROM text_document WHERE {self._filters.sql} AND id IN ('http://' || host "
            "|| '/', 'https://' || host || '/') AND EXISTS (SELECT FROM unnest(%s::text[]) AS name WHERE "
            "starts_with(host, name)) LIMIT %s",
            (*self._filters.values, [plain(host) for host in hosts], _START_PAGES),
        )
        return [PostgresHit(*row) for row in rows]

    def _scored(self, row: PostgresHit, tier: int, step: Plan) -> PostgresHit:
        scored = row._replace(score=row.score + tier * TIER, tier=tier)
        if not self._request.explain:
            return scored
        parts = []
        for wish in (*step.wishes, *step.optional):
            share = (_OPTIONAL if wish in step.optional else 1.0) * self._rarity(wish)
            for kind, query in _by_kind(wish).items():
                value = self._database.execute(
                    f"SELECT ts_rank({_rank(step)}, words, %s::tsquery, {_BY_LENGTH}) FROM text_document WHERE id = %s",
                    (query, row.id),
                )[0][0]
                if value:
                    parts.append(ScorePart(f"{wish.text}: {kind}", value * _RANKS[kind] * share))
        if tier:
            what = "some words" if step.partial else "all words"
            parts.append(ScorePart(f"better than {tier} more generous steps: {what}", tier * TIER))
        return scored._replace(explanation=tuple(parts))


def filters(parsed: ParsedText, request: SearchRequest) -> SqlCondition:
    """All that is not about words."""
    parts: list[str] = ["true"]
    values: list[object] = []
    for clause in parsed.filters:
        condition = _filter(clause)
        parts.append(f"{'NOT ' if clause.negated else ''}({condition.sql})")
        values += condition.values
    for part, wanted in (
        ("types && %s::text[]", request.types),
        ("vocabularies && %s::text[]", request.vocabularies),
        ("language = ANY(%s::text[])", request.languages),
        ("kind = ANY(%s::text[])", request.kinds),
    ):
        if wanted:
            parts.append(part)
            values.append([plain(value) for value in wanted])
    if request.sites:
        sites = [_site(site) for site in request.sites]
        parts.append(f"({' OR '.join(site.sql for site in sites)})")
        values += (value for site in sites for value in site.values)
    since, until = max(request.since, parsed.since), min(filter(None, (request.until, parsed.until)), default=0.0)
    for part, limit in (("fetched_at >= %s", since), ("fetched_at <= %s", until)):
        if limit:
            parts.append(part)
            values.append(limit)
    return SqlCondition(" AND ".join(parts), values)


def _filter(clause: Clause) -> SqlCondition:
    if clause.field in ("site", "host"):
        return _site(clause.value)
    if clause.field == "language":
        return SqlCondition("language = %s", [plain(clause.value.lower().partition("-")[0])])
    if clause.field in LISTS:
        named = "value = %s OR lower(regexp_replace(value, '^.*[#/]', '')) = %s"
        sql = f"EXISTS (SELECT FROM unnest({clause.field}) AS value WHERE {named})"
        return SqlCondition(sql, [plain(clause.value), plain(clause.value.lower())])
    return SqlCondition(f"{clause.field} = %s", [plain(clause.value)])


def _site(value: str) -> SqlCondition:
    """A registered domain or a host, with or without its port."""
    parts, values = [], []
    for name in site_names(value):
        for field in ("site", "host"):
            parts.append(f"{field} = %s")
            values.append(plain(name))
            if ":" not in name:
                parts.append(f"starts_with({field}, %s)")
                values.append(f"{plain(name)}:")
    return SqlCondition(f"({' OR '.join(parts)})", [*values])


def _matching(plan: Plan) -> SqlCondition:
    parts: list[str] = []
    values: list[object] = []
    for wish in plan.unwanted:
        parts.append("NOT words @@ %s::tsquery")
        values.append(_query(wish.ways, wish.field))
    queries = [_query(wish.ways, wish.field) for wish in plan.wishes]
    if plan.partial:
        required = [_query(wish.ways, wish.field) for wish in plan.wishes if wish.required]
        queries = [*required, " | ".join(queries)]
    parts += ["words @@ %s::tsquery"] * len(queries)
    values += queries
    return SqlCondition(" AND ".join(parts) or "true", values)


def _most_words(plan: Plan) -> SqlCondition:
    queries = [_query(wish.ways, wish.field) for wish in plan.wishes]
    counted = " + ".join(["(words @@ %s::tsquery)::int"] * len(queries))
    return SqlCondition(f"{counted} >= {plan.least}", queries)


def _rank(plan: Plan) -> str:
    return _QUESTION_RANK if plan.size > _TITLE_WORDS else _RANK


def _by_kind(wish: Wish) -> dict[str, str]:
    kinds: dict[str, list[Way]] = {}
    for way in wish.ways:
        kinds.setdefault(way.kind, []).append(way)
    return {kind: _query(ways, wish.field) for kind, ways in kinds.items()}


def _query(ways: Sequence[Way], field: str) -> str:
    """A `tsquery` for any of these ways; tokens consist of letters and digits, so nothing needs an escape."""
    weight = FIELD_WEIGHTS.get(field, "")
    return f"({' | '.join(_phrase(way, weight if way.field == 'words' else '') for way in ways)})"


def _phrase(way: Way, weight: str) -> str:
    *before, last = (plain(_SIGNS[way.field] + token) for token in way.tokens)
    suffix = f":*{weight}" if way.prefix else f":{weight}" if weight else ""
    inner = f":{weight}" if weight else ""
    return "(" + " <-> ".join([*(f"'{word}'{inner}" for word in before), f"'{last}'{suffix}"]) + ")"


def _both(one: SqlCondition, other: SqlCondition) -> SqlCondition:
    return SqlCondition(f"{one.sql} AND {other.sql}", [*one.values, *other.values])
