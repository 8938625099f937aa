"""Pages that are the same: one of them is shown, the others are kept as its copies, without words.

So what is found and counted needs no pass over the hits. A page is a copy of

* the page that it names as canonical, or of another page that names the same one, if their texts are alike: many sites
  name their start page on every page;
* a page with the same title and nearly the same main text: their fingerprints differ in at most `_NEAR`
  bits. A few words are not enough for that.

A copy is stored whole. When the page that is shown changes or is removed, its copies are indexed again, and when the
canonical page of a shown one comes, that one becomes a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tantivy
from tantivy import Query

from quadloom.documents.words.simhash import distance
from quadloom.model.text import TextDocument
from quadloom.stores.tantivy.documents import SHOWN, fingerprint_of, page_of, parts_of, title_of

_NEAR = 3  # bits; of two pages with the same title
_ALIKE = 16  # bits; of a page and its canonical one: sorted in another way, with another list of teasers
_FEWEST_WORDS = 20  # of a text; less may be the same by chance
_MOST = 50  # pages that are compared with a new one
_MOST_COPIES = 10_000  # of one page


class KnownPage(NamedTuple):
    """What is compared. `copy_of`: the page that is shown instead, or `SHOWN`."""

    id: str
    title: str
    fingerprint: int
    canonical: str
    copy_of: str
    document: TextDocument | None  # if it is stored: a copy, and a page that may become one


class Copies:
    """The copies of an index with its uncommitted changes. `searcher`: of the last commit."""

    def __init__(self, index: tantivy.Index) -> None:
        self._index = index
        self.committed()

    def committed(self) -> None:
        """All changes are in the index now."""
        self._searcher = self._index.searcher()
        self._changed: dict[str, KnownPage | None] = {}  # None = removed
        self._by_key: dict[str, set[str]] = {}  # what pages are found by → changed pages
        self._has_copies = self._searcher.doc_freq("copy_of", SHOWN) < self._searcher.num_docs

    def shown_for(self, document: TextDocument) -> str:
        """The page that is shown instead of this one; `SHOWN` if it is shown itself."""
        page = _known(document, SHOWN)
        if document.canonical:
            named = self._page(document.canonical)
            if named is not None and named.id != page.id and _is_variant(page, named):
                return named.copy_of if named.copy_of not in (SHOWN, page.id) else named.id
            for other in self._with_key("canonical", [document.canonical]):
                if other.id != page.id and _is_variant(page, other):
                    return other.id
        for other in self._with_key("alike", parts_of(page.fingerprint)):
            if page.id not in (other.id, other.canonical) and _is_same(page, other, document):
                return other.id
        return SHOWN

    def replaced(self, document: TextDocument, shown: str) -> list[TextDocument]:
        """Note that a page is indexed; returns pages that must be indexed again because of it."""
        again = [
            copy
            for copy in self._copies(document.id)
            if shown != SHOWN or not _is_variant(_known(copy, ""), _known(document, ""))
        ]
        if shown == SHOWN:
            again += (
                other.document
                for other in self._with_key("canonical", [document.id])
                if other.id != document.id and other.document is not None
            )
        page = _known(document, shown)
        self._changed[document.id] = page
        for key in (*parts_of(page.fingerprint), page.canonical, f"copy of {shown}"):
            self._by_key.setdefault(key, set()).add(document.id)
        return again

    def removed(self, id: str) -> list[TextDocument]:
        """The same for a page that is removed."""
        again = self._copies(id)
        self._changed[id] = None
        return again

    def _page(self, id: str) -> KnownPage | None:
        if id in self._changed:
            return self._changed[id]
        return next(self._stored("id", [id], 1), None)

    def _with_key(self, field: str, keys: Sequence[str]) -> Iterator[KnownPage]:
        """Pages that are shown, and have one of these keys."""
        changed = {id for key in keys for id in self._by_key.get(key, ())}
        for id in sorted(changed):
            page = self._changed.get(id)
            if page is not None and page.copy_of == SHOWN:
                yield page
        for page in self._stored(field, keys, _MOST) if keys else ():
            if page.id not in self._changed and page.copy_of == SHOWN:
                yield page

    def _copies(self, id: str) -> list[TextDocument]:
        changed = (self._changed.get(copy) for copy in self._by_key.get(f"copy of {id}", ()))
        found = [page for page in changed if page is not None and page.copy_of == id]
        if self._has_copies:
            found += (page for page in self._stored("copy_of", [id], _MOST_COPIES) if page.id not in self._changed)
        return [page.document for page in found if page.document is not None]

    def _stored(self, field: str, values: Sequence[str], most: int) -> Iterator[KnownPage]:
        if not any(self._searcher.doc_freq(field, value) for value in values):
            return
        query = Query.const_score_query(Query.term_set_query(self._index.schema, field, list(values)), 1.0)
        for _, address in self._searcher.search(query, most, count=False).hits:
            stored = self._searcher.doc(address)
            document = page_of(stored)
            yield KnownPage(
                stored.get_first("id") or "",
                document.title if document is not None else title_of(stored),
                fingerprint_of(document)
                if document is not None
                else int.from_bytes(bytes(stored.get_first("simhash") or b""), "big"),
                stored.get_first("canonical") or "",
                stored.get_first("copy_of") or SHOWN,
                document,
            )


def _known(document: TextDocument, shown: str) -> KnownPage:
    kept = document if document.canonical or shown != SHOWN else None
    return KnownPage(document.id, document.title, fingerprint_of(document), document.canonical, shown, kept)


def _is_variant(page: KnownPage, other: KnownPage) -> bool:
    if page.fingerprint and other.fingerprint:
        return distance(page.fingerprint, other.fingerprint) <= _ALIKE
    return page.title == other.title


def _is_same(page: KnownPage, other: KnownPage, document: TextDocument) -> bool:
    if not page.fingerprint or page.title != other.title:
        return False
    return document.main_text.count(" ") >= _FEWEST_WORDS and distance(page.fingerprint, other.fingerprint) <= _NEAR
