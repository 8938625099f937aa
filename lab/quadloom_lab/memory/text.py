"""The text index as a dictionary: the reference of the contract suite and a test double.

Scans every document for every query and ranks by weighted word counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from quadloom.analysis.words import FIELDS, tokens_of
from quadloom.stores import text_query
from quadloom.stores.protocols.text import Hit, SearchAnswer, SearchRequest, TextDocument
from quadloom.stores.text_query import Clause


class MemoryText:
    is_outdated = False

    def __init__(self) -> None:
        self._pending: dict[str, TextDocument | None] = {}
        self._documents: dict[str, TextDocument] = {}

    def put(self, documents: Sequence[TextDocument]) -> None:
        self._pending.update((document.id, document) for document in documents)

    def remove(self, ids: Sequence[str]) -> None:
        self._pending.update((id, None) for id in ids)

    def commit(self) -> None:
        for id, document in self._pending.items():
            self._documents.pop(id, None)
            if document is not None:
                self._documents[id] = document
        self._pending.clear()

    def search(self, request: SearchRequest) -> SearchAnswer:
        clauses = text_query.parse(request.text)
        found = [
            (sum(_count(document, clause) for clause in clauses if not clause.negated), document)
            for document in self._documents.values()
            if _passes(document, request) and all((_count(document, c) > 0) != c.negated for c in clauses)
        ]
        found.sort(key=lambda pair: (pair[0], pair[1].fetched_at), reverse=True)
        page = found[request.offset : request.offset + request.limit]
        return SearchAnswer(
            hits=tuple(
                _hit(score, document, clauses) if request.snippets else Hit(id=document.id, score=score)
                for score, document in page
            ),
            total=len(found),
            facets=_facets([document for _, document in found]) if request.facets else {},
        )

    def ids(self) -> Iterator[str]:
        yield from list(self._documents)

    def __len__(self) -> int:
        return len(self._documents)

    def close(self) -> None:
        self._pending.clear()


def _count(document: TextDocument, clause: Clause) -> float:
    if clause.field and clause.field not in text_query.WORD_FIELDS:
        value: str | tuple[str, ...] = getattr(document, clause.field)
        values = (value,) if isinstance(value, str) else value
        short = clause.field in ("types", "vocabularies") and clause.value.isalnum()
        ends = (f"/{clause.value}", f"#{clause.value}") if short else ()
        return float(any(text == clause.value or text.endswith(ends) for text in values))
    fields = (clause.field,) if clause.field else text_query.WORD_FIELDS
    return sum(FIELDS[field] * _matches(tokens_of(getattr(document, field)), clause) for field in fields)


def _matches(words: list[str], clause: Clause) -> int:
    *before, last = clause.words
    size = len(clause.words)
    runs = (words[start : start + size] for start in range(len(words) - size + 1))
    return sum(run[:-1] == before and (run[-1].startswith(last) if clause.prefix else run[-1] == last) for run in runs)


def _passes(document: TextDocument, request: SearchRequest) -> bool:
    return (
        (not request.types or bool(set(request.types) & set(document.types)))
        and (not request.vocabularies or bool(set(request.vocabularies) & set(document.vocabularies)))
        and (not request.sites or document.site in request.sites)
        and (not request.languages or document.language in request.languages)
        and (not request.kinds or document.kind in request.kinds)
        and (not request.since or document.fetched_at >= request.since)
        and (not request.until or document.fetched_at <= request.until)
    )


def _hit(score: float, document: TextDocument, clauses: tuple[Clause, ...]) -> Hit:
    return Hit(
        id=document.id,
        score=score,
        title=document.title,
        snippet=text_query.snippet(document.body or document.literals, clauses),
        types=document.types,
        site=document.site,
        language=document.language,
        kind=document.kind,
        fetched_at=document.fetched_at,
    )


def _facets(documents: Sequence[TextDocument]) -> dict[str, list[tuple[str, int]]]:
    values: dict[str, Counter[str]] = {
        "types": Counter(value for document in documents for value in document.types),
        "vocabularies": Counter(value for document in documents for value in document.vocabularies),
        "sites": Counter(document.site for document in documents if document.site),
        "languages": Counter(document.language for document in documents if document.language),
        "kinds": Counter(document.kind for document in documents if document.kind),
        "years": Counter(str(datetime.fromtimestamp(d.fetched_at, UTC).year) for d in documents),
    }
    return {name: counter.most_common(20) for name, counter in values.items()}
