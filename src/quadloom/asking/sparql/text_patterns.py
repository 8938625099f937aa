"""Full-text search in a query: `?page ql:matches "solar eclipse"` joins the text index with triple patterns.

The pattern is replaced by its hits before the engine sees the query, in place, so that everything around it
(OPTIONAL, FILTER, GRAPH ?page { … }) works as usual::

    ?page ql:matches "solar eclipse" .                 VALUES ?page { <…> <…> } .
    (?page ?score) ql:matches ("solar eclipse" 50) .   VALUES (?page ?score) { (<…> 7.3) … } .

The object is the text that one would type into the search box, optionally with the number of hits (default 1,000).
`?page` is the page's URL, which is also the name of its graph.

This runs in the process that serves, which cannot be killed as a query process can. So the number of patterns, their
hits and the length of these are limited, time is checked after each search, and the cache of hits is bounded.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from quadloom.asking.sparql.checks import CheckedQuery, Token, place
from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.documents.syntaxes.terms import iri, literal
from quadloom.errors import QueryLimit, QueryRefused, QuerySyntaxError
from quadloom.settings import LimitSettings
from quadloom.stores.protocols.text import Hit, SearchRequest, TextIndex

MATCHES = PREFIXES["ql"] + "matches"
DEFAULT_HITS = 1000
MAX_HITS = 10_000
_MAX_DIGITS = 9
_CACHE_SECONDS = 2.0
_CACHE_SIZE = 64  # searches
_CACHE_BYTES = 4 * 1024 * 1024  # of the URLs of all cached hits
_HIT_BYTES = 200  # what a hit takes besides its URL
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class PatternHitCache:
    """A text index for patterns that caches the hits of the last few searches for `_CACHE_SECONDS`, in bounded memory.

    The addresses of a thousand hits cost 20 ms, and the user of an editor runs the same words again and again. A query
    sees quads of up to two seconds ago anyway, so the cache makes nothing older. Safe for many threads.
    """

    def __init__(self, text: TextIndex, clock: Callable[[], float] = time.monotonic) -> None:
        self._text = text
        self._clock = clock
        self._cache: OrderedDict[SearchRequest, _CachedHits] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def hits(self, request: SearchRequest) -> tuple[Hit, ...]:
        now = self._clock()
        with self._lock:
            cached = self._cache.get(request)
        if cached is not None and cached.until > now:
            return cached.hits
        found = self._text.search(request).hits
        size = sum(len(hit.id) + _HIT_BYTES for hit in found)
        with self._lock:
            self._remove(request)
            self._cache[request] = _CachedHits(now + _CACHE_SECONDS, found, size)
            self._bytes += size
            # The oldest entry is first, so what has expired goes before what has not.
            while self._cache and (len(self._cache) > _CACHE_SIZE or self._bytes > _CACHE_BYTES or self._expired(now)):
                self._remove(next(iter(self._cache)))
        return found

    @property
    def size(self) -> int:
        """Bytes of the cached hits, estimated."""
        return self._bytes

    def _expired(self, now: float) -> bool:
        return next(iter(self._cache.values())).until <= now

    def _remove(self, request: SearchRequest) -> None:
        entry = self._cache.pop(request, None)
        if entry is not None:
            self._bytes -= entry.size


class _CachedHits(NamedTuple):
    until: float
    hits: tuple[Hit, ...]
    size: int


def replace_text_patterns(
    checked: CheckedQuery,
    text: PatternHitCache | None,
    limits: LimitSettings,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """The query with each text pattern replaced by its hits.

    Raises `QuerySyntaxError` for a misplaced pattern, `QueryRefused` for too many patterns or hits, and `QueryLimit` if
    the searches take longer than the query may.
    """
    tokens = checked.tokens
    names = _names(tokens)
    patterns = [index for index, token in enumerate(tokens) if token.text in names]
    if len(patterns) > limits.query_patterns:
        raise QueryRefused(
            f"the query has {len(patterns)} text patterns, more than {limits.query_patterns}",
            hint="put several words into one pattern, ask in several queries, or raise limits.query_patterns",
        )
    budget = _HitBudget(limits, clock)
    parts: list[str] = []
    done = 0
    for index in patterns:
        start, subject = _subject(tokens, index, checked.text)
        words, limit, stop = _object(tokens, index + 1, checked.text)
        limit = min(limit, _enough(tokens, start, stop))
        hits = text.hits(SearchRequest(text=words, limit=limit, snippets=False)) if text is not None else ()
        budget.spend(hits)
        parts.append(checked.text[done : tokens[start].start])
        parts.append(_values(subject, hits))
        done = tokens[stop - 1].end
        if stop < len(tokens) and tokens[stop].text == ";":
            # The predicate list continues: repeat its subject.
            parts.append(f" {subject[0]}")
            done = tokens[stop].end
    parts.append(checked.text[done:])
    return "".join(parts)


class _HitBudget:
    """What all patterns of one query may spend together: hits, bytes of their URLs, and time."""

    def __init__(self, limits: LimitSettings, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._began = clock()
        self._hits = 0
        self._bytes = 0

    def spend(self, hits: Sequence[Hit]) -> None:
        limits = self._limits
        self._hits += len(hits)
        self._bytes += sum(len(hit.id) for hit in hits)
        if self._hits > limits.query_hits or self._bytes > limits.query_hit_bytes:
            raise QueryRefused(
                f"the text patterns have more than {limits.query_hits} hits or {limits.query_hit_bytes} bytes of URLs",
                hint='ask for fewer: ?page ql:matches ("words" 100); or raise limits.query_hits, query_hit_bytes',
            )
        if self._clock() - self._began > limits.query_seconds:
            raise QueryLimit(
                f"the text patterns of the query took more than {limits.query_seconds:g} seconds",
                hint="use fewer patterns or rarer words, or raise limits.query_seconds",
            )


def _names(tokens: Sequence[Token]) -> frozenset[str]:
    """All ways to write the predicate in this query: its IRI, and `x:matches` for each prefix x of its namespace."""
    names = {f"<{MATCHES}>"}
    prefixes = {"ql:": PREFIXES["ql"]}
    for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if first.kind == "word" and first.text.upper() == "PREFIX" and third.kind == "iri":
            prefixes[second.text] = third.text[1:-1]
    names.update(f"{prefix}matches" for prefix, iri in prefixes.items() if iri == PREFIXES["ql"])
    return frozenset(names)


def _subject(tokens: Sequence[Token], index: int, text: str) -> tuple[int, tuple[str, ...]]:
    """Index of the subject's first token, and its variables."""
    before = tokens[index - 1] if index else None
    variables: tuple[str, ...]
    if before is not None and before.kind == "variable":
        start, variables = index - 1, (before.text,)
    elif before is not None and before.text == ")" and index >= 4 and tokens[index - 4].text == "(":
        start, variables = index - 4, (tokens[index - 3].text, tokens[index - 2].text)
    else:
        raise _misplaced(tokens[index], text)
    opening = tokens[start - 1] if start else None
    if opening is None or not (opening.text in ("{", "}", ".") or opening.kind == "word"):
        raise _misplaced(tokens[index], text)
    if not all(variable[0] in "?$" for variable in variables):
        raise _misplaced(tokens[index], text)
    return start, variables


def _object(tokens: Sequence[Token], index: int, text: str) -> tuple[str, int, int]:
    """Words, number of hits, and the index after the object."""
    found = tokens[index : index + 4]
    if found and found[0].kind == "string":
        return _unquoted(found[0].text), DEFAULT_HITS, index + 1
    shape = [token.kind if token.kind in ("string", "word") else token.text for token in found]
    if shape[:3] == ["(", "string", ")"]:
        return _unquoted(found[1].text), DEFAULT_HITS, index + 3
    if shape == ["(", "string", "word", ")"] and _is_number(found[2].text):
        return _unquoted(found[1].text), max(1, min(int(found[2].text), MAX_HITS)), index + 4
    raise _misplaced(tokens[index - 1], text)


def _is_number(text: str) -> bool:
    """Nine digits at most. `²` is a digit to Python too, but not a number; `int` refuses more than 4,300 digits."""
    return len(text) <= _MAX_DIGITS and text.isascii() and text.isdigit()


def _enough(tokens: Sequence[Token], start: int, stop: int) -> int:
    """How many hits `SELECT ?page { ?page ql:matches "words" } LIMIT 10` can show: ten, which saves reading a thousand.

    Only if the query has nothing but the pattern: anything else might drop hits or order them differently.
    """
    before = [token for token in tokens[:start] if token.text.upper() != "WHERE"]
    after = [token.text.upper() for token in tokens[stop:]]
    selects = [place for place, token in enumerate(before) if token.text.upper() == "SELECT"]
    shown = before[selects[0] + 1 :] if selects else []
    columns = [token.kind == "variable" or token.text == "*" for token in shown[:-1]]
    alone = bool(shown) and shown[-1].text == "{" and all(columns)
    match after[1:] if after[:1] == ["."] else after:
        case ["}", "LIMIT", number] if alone and _is_number(number):
            return max(1, int(number))
    return MAX_HITS


def _values(variables: tuple[str, ...], hits: Sequence[Hit]) -> str:
    """The hits as VALUES. A URL may contain characters that an IRI may not (`|`, `^`); such a page has no graph to join
    with and would break the query, so it is left out."""
    found = [(term, hit.score) for hit in hits if (term := iri(hit.id)) is not None]
    if len(variables) == 1:
        return f"VALUES {variables[0]} {{ {' '.join(term for term, _ in found)} }}"
    rows = " ".join(f"({term} {score:.4f})" for term, score in found)
    return f"VALUES ({' '.join(variables)}) {{ {rows} }}"


def _unquoted(text: str) -> str:
    width = 3 if text[:3] in ('"""', "'''") else 1
    return _ESCAPE.sub(lambda match: _SIMPLE.get(match.group(1), match.group(1)), text[width:-width])


def _misplaced(token: Token, text: str) -> QuerySyntaxError:
    line, column = place(text, token.start)
    return QuerySyntaxError(
        f"{token.text} at line {line}, column {column} must come first after its subject, before words in quotes",
        hint='write ?page ql:matches "words" or (?page ?score) ql:matches ("words" 50)',
        line=line,
        column=column,
    )


def as_sparql(request: SearchRequest) -> str:
    """The SPARQL query that is equivalent to a search: the same pages, with titles."""
    lines = ["SELECT DISTINCT ?page ?score ?title WHERE {"]
    if request.text:
        lines.append(f"  (?page ?score) ql:matches ({literal(request.text)} {MAX_HITS}) .")
    lines += _patterns("a", "type", request.types)
    lines += _vocabulary_pattern(request.vocabularies)
    for what, values in (("site", request.sites), ("kind", request.kinds)):
        if values:
            listed = " ".join(literal(value) for value in values)
            lines.append(f"  GRAPH ql:pages {{ ?page ql:{what} ?{what} . VALUES ?{what} {{ {listed} }} }}")
    if request.languages:
        tests = " || ".join(f"LANGMATCHES(?language, {literal(language)})" for language in request.languages)
        lines.append(f"  GRAPH ?page {{ ?page dcterms:language ?language . FILTER({tests}) }}")
    lines.append("  OPTIONAL { GRAPH ql:pages { ?page dcterms:title ?title } }")
    lines.append("}")
    lines.append(
        f"ORDER BY DESC(?score) LIMIT {request.limit}" + (f" OFFSET {request.offset}" if request.offset else "")
    )
    return "\n".join(lines)


def _patterns(predicate: str, name: str, iris: Sequence[str]) -> list[str]:
    if not iris:
        return []
    listed = " ".join(term for name in iris if (term := iri(name)) is not None)
    return [f"  GRAPH ?page {{ ?thing {predicate} ?{name} . VALUES ?{name} {{ {listed} }} }}"]


def _vocabulary_pattern(spaces: Sequence[str]) -> list[str]:
    if not spaces:
        return []
    tests = " || ".join(f"STRSTARTS(STR(?term), {literal(space)})" for space in dict.fromkeys(spaces))
    return [f"  GRAPH ?page {{ ?any ?term ?value . FILTER({tests}) }}"]
