"""The engines that are compared: Quadloom's own index, SQLite FTS5 with two tokenizers, and tantivy as it comes.

All get the same texts, title and body of the same pages as Quadloom's transform gives them. FTS5 and tantivy are used
the way their manuals show: the title weighs five times, FTS5 asks for all words and, if nothing is found, for any.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import tantivy

from quadloom.asking.search import search, search_request
from quadloom.model.text import TextDocument
from quadloom.stores.tantivy.index import TantivyText

_WORD = re.compile(r"\w[\w\u0300-\u036f\u0900-\u0dff\u0e31-\u0e4e]*")
_TRIGRAM = 3


class Engine(Protocol):
    name: str

    def fill(self, documents: Sequence[TextDocument]) -> None: ...

    def ask(self, text: str, limit: int) -> list[str]:
        """Ids, best first."""
        ...

    def close(self) -> None: ...


class QuadloomEngine:
    name = "quadloom"

    def __init__(self, folder: Path) -> None:
        self._index = TantivyText(folder)

    def fill(self, documents: Sequence[TextDocument]) -> None:
        self._index.put(documents)
        self._index.commit()

    def ask(self, text: str, limit: int) -> list[str]:
        return [hit.id for hit in search(self._index, search_request(text, limit=limit)).hits]

    def close(self) -> None:
        self._index.close()


class Fts5Engine:
    def __init__(self, folder: Path, tokenizer: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = f"fts5 {tokenizer}"
        self._shortest = _TRIGRAM if tokenizer == "trigram" else 1
        options = "trigram" if tokenizer == "trigram" else f"{tokenizer} remove_diacritics 2"
        self._database = sqlite3.connect(folder / "fts.db", isolation_level=None)
        self._database.execute(f"CREATE VIRTUAL TABLE page USING fts5(id UNINDEXED, title, body, tokenize='{options}')")

    def fill(self, documents: Sequence[TextDocument]) -> None:
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO page VALUES (?, ?, ?)", [(d.id, d.title, d.body) for d in documents])
        self._database.execute("COMMIT")
        self._database.execute("INSERT INTO page(page) VALUES ('optimize')")

    def ask(self, text: str, limit: int) -> list[str]:
        words = [f'"{word}"' for word in _WORD.findall(text) if len(word) >= self._shortest]
        return (words and (self._match(" AND ".join(words), limit) or self._match(" OR ".join(words), limit))) or []

    def _match(self, query: str, limit: int) -> list[str]:
        rows = self._database.execute(
            "SELECT id FROM page WHERE page MATCH ? ORDER BY bm25(page, 0.0, 5.0, 1.0) LIMIT ?", (query, limit)
        )
        return [id for (id,) in rows]

    def close(self) -> None:
        self._database.close()


class Fts5AnyWord(Fts5Engine):
    """For questions: any of the words, stems by Porter, title and text alike."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "porter unicode61")
        self.name = "fts5 porter"

    def ask(self, text: str, limit: int) -> list[str]:
        words = [f'"{word}"' for word in _WORD.findall(text)]
        rows = self._database.execute(
            "SELECT id FROM page WHERE page MATCH ? ORDER BY bm25(page) LIMIT ?", (" OR ".join(words), limit)
        )
        return [id for (id,) in rows] if words else []


class PlainTantivy:
    name = "tantivy"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw")
        builder.add_text_field("title", stored=True)
        builder.add_text_field("body")
        self._index = tantivy.Index(builder.build(), path=str(folder))

    def fill(self, documents: Sequence[TextDocument]) -> None:
        writer = self._index.writer(64 << 20, 1)
        for document in documents:
            made = tantivy.Document()
            for field in ("id", "title", "body"):
                made.add_text(field, getattr(document, field))
            writer.add_document(made)
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def ask(self, text: str, limit: int) -> list[str]:
        query, _ = self._index.parse_query_lenient(text, ["title", "body"], field_boosts={"title": 5.0})
        searcher = self._index.searcher()
        return [searcher.doc(address).get_first("id") or "" for _, address in searcher.search(query, limit).hits]

    def close(self) -> None:
        pass


def engines(folder: Path) -> list[Engine]:
    return [
        QuadloomEngine(folder / "quadloom"),
        Fts5Engine(folder / "unicode61", "unicode61"),
        Fts5Engine(folder / "trigram", "trigram"),
        PlainTantivy(folder / "tantivy"),
    ]
