"""Search engines of the simulated sites: real ones, each with habits that a topical crawler has to handle.

`all`     SQLite FTS5, every word must occur, ranked by BM25
`any`     SQLite FTS5, one word is enough, ranked by BM25
`tantivy` tantivy with its own parser: any word, BM25, title counts more
`newest`  naive substring of the whole query, newest first, as in home-made searches
`prefix`  SQLite FTS5, every word must be the beginning of one, ranked by BM25
`oldest`  every word must occur somewhere, in any order and within words, oldest first
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Literal, Protocol

import tantivy

EngineKind = Literal["all", "any", "tantivy", "newest", "prefix", "oldest"]
_WORD = re.compile(r"\w+")
_MOST = 1000


class Engine(Protocol):
    """Numbers of matching documents, best first."""

    def search(self, query: str) -> list[int]: ...


def make_engine(kind: EngineKind, documents: Sequence[tuple[str, str, int]]) -> Engine:
    """An engine over (title, body, day)."""
    if kind == "newest":
        return NewestEngine(documents)
    if kind == "tantivy":
        return TantivyEngine(documents)
    if kind == "oldest":
        return OldestEngine(documents)
    return Fts5Engine(documents, joint=" OR " if kind == "any" else " ", ending="*" if kind == "prefix" else "")


class Fts5Engine:
    def __init__(self, documents: Sequence[tuple[str, str, int]], joint: str, ending: str = "") -> None:
        self._joint = joint
        self._ending = ending
        self._database = sqlite3.connect(
            ":memory:", check_same_thread=False
        )  # servers call it from one thread at a time
        self._database.execute("CREATE VIRTUAL TABLE pages USING fts5(title, body)")
        self._database.executemany(
            "INSERT INTO pages(rowid, title, body) VALUES (?, ?, ?)",
            [(number, title, body) for number, (title, body, _) in enumerate(documents)],
        )

    def search(self, query: str) -> list[int]:
        words = [f'"{word}"{self._ending}' for word in _WORD.findall(query)]
        if not words:
            return []
        rows = self._database.execute(
            "SELECT rowid FROM pages WHERE pages MATCH ? ORDER BY rank LIMIT ?", (self._joint.join(words), _MOST)
        )
        return [number for (number,) in rows]


class TantivyEngine:
    def __init__(self, documents: Sequence[tuple[str, str, int]]) -> None:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("title")
        builder.add_text_field("body")
        builder.add_integer_field("number", stored=True)
        self._index = tantivy.Index(builder.build())
        writer = self._index.writer(heap_size=15_000_000, num_threads=1)
        for number, (title, body, _) in enumerate(documents):
            writer.add_document(tantivy.Document(title=title, body=body, number=number))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, query: str) -> list[int]:
        text = " ".join(_WORD.findall(query))
        if not text:
            return []
        parsed = self._index.parse_query(text, ["title", "body"], field_boosts={"title": 2.0})
        hits = self._searcher.search(parsed, _MOST).hits
        return [int(self._searcher.doc(address)["number"][0]) for _, address in hits]


class NewestEngine:
    def __init__(self, documents: Sequence[tuple[str, str, int]]) -> None:
        self._texts = [(day, number, f"{title} {body}".lower()) for number, (title, body, day) in enumerate(documents)]
        self._texts.sort(reverse=True)

    def search(self, query: str) -> list[int]:
        wanted = " ".join(query.lower().split())
        return [number for _, number, text in self._texts if wanted in text] if wanted else []


class OldestEngine:
    def __init__(self, documents: Sequence[tuple[str, str, int]]) -> None:
        self._texts = [(day, number, f"{title} {body}".lower()) for number, (title, body, day) in enumerate(documents)]
        self._texts.sort()

    def search(self, query: str) -> list[int]:
        words = query.lower().split()
        return [number for _, number, text in self._texts if words and all(word in text for word in words)]
