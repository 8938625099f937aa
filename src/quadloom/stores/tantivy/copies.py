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

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
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


_Key = str | tuple[str, str]  # a canonical address; or a title with a part of a fingerprint


class Copies:
    """The copies of an index with its uncommitted changes. `searcher`: of the last commit."""

    def __init__(self, index: tantivy.Index) -> None:
        self._index = index
        self.committed()

    def committed(self) -> None:
        """All changes are in the index now."""
        self._searcher = self._index.searcher()
        self._changed: dict[str, KnownPage | None] = {}  # None = removed
        # Changed pages by what they are found by, and by the page that is shown instead; both in the order of changes.
        self._by_key: dict[_Key, dict[str, None]] = defaultdict(dict)
        self._copies_of: dict[str, dict[str, None]] = defaultdict(dict)
        self._has_copies = self._searcher.doc_freq("copy_of", SHOWN) < self._searcher.num_docs

    def shown_for(self, document: TextDocument) -> str:
        """The page that is shown instead of this one; `SHOWN` if it is shown itself."""
        page = _known(document, SHOWN)
        if document.canonical:
            named = self._page(document.canonical)
            if named is not None and named.id != page.id and _is_variant(page, named):
                return named.copy_of if named.copy_of not in (SHOWN, page.id) else named.id
            for other in self._shown("canonical", [document.canonical], [document.canonical]):
                if other.id != page.id and _is_variant(page, other):
                    return other.id
        if page.fingerprint and document.main_text.count(" ") >= _FEWEST_WORDS:
            parts = parts_of(page.fingerprint)
            for other in self._shown("alike", parts, [(page.title, part) for part in parts]):
                if page.id not in (other.id, other.canonical) and _is_same(page, other):
                    return other.id
        return SHOWN

    def replaced(self, document: TextDocument, shown: str) -> list[TextDocument]:
        """Note that a page is indexed; returns pages that must be indexed again because of it."""
        page = _known(document, shown)
        again = self._copies(document.id)
        if again and shown == SHOWN:
            again = [copy for copy in again if not _is_variant(_known(copy, ""), page)]
        if shown == SHOWN:
            again += [
                other.document
                for other in self._shown("canonical", [document.id], [document.id])
                if other.id != document.id and other.document is not None
            ]
        self._changed[document.id] = page
        for part in parts_of(page.fingerprint) if page.fingerprint else ():
            self._by_key[page.title, part][document.id] = None
        if page.canonical:
            self._by_key[page.canonical][document.id] = None
        if shown != SHOWN:
            self._copies_of[shown][document.id] = None
        return again

    def removed(self, id: str) -> list[TextDocument]:
        """The same for a page that is removed."""
        again = self._copies(id)
        self._changed[id] = None
        return again

    def _page(self, id: str) -> KnownPage | None:
        if id in self._changed:
            return self._changed[id]
        return next(iter(self._stored("id", [id], 1)), None)

    def _shown(self, field: str, values: Sequence[str], keys: Sequence[_Key]) -> list[KnownPage]:
        """Pages that are shown: changed ones with one of these keys, then those of the last commit with one of these
        values. At most `_MOST` of each, so that no page is compared with all others."""
        found = [
            page
            for key in keys
            if key in self._by_key
            for id in islice(self._by_key[key], _MOST)
            if (page := self._changed[id]) is not None and page.copy_of == SHOWN
        ]
        stored = self._stored(field, values, _MOST)
        return found + [page for page in stored if page.id not in self._changed and page.copy_of == SHOWN]

    def _copies(self, id: str) -> list[TextDocument]:
        found = []
        if id in self._copies_of:
            changed = [self._changed[copy] for copy in self._copies_of[id]]
            found = [page for page in changed if page is not None and page.copy_of == id]
        if self._has_copies:
            found += [page for page in self._stored("copy_of", [id], _MOST_COPIES) if page.id not in self._changed]
        return [page.document for page in found if page.document is not None] if found else []

    def _stored(self, field: str, values: Sequence[str], most: int) -> list[KnownPage]:
        count = self._searcher.doc_freq
        present = [value for value in values if count(field, value)]
        if not present:
            return []
        query = Query.const_score_query(Query.term_set_query(self._index.schema, field, present), 1.0)
        hits = self._searcher.search(query, most, count=False).hits
        return [_stored_page(self._searcher.doc(address)) for _, address in hits]


def _stored_page(stored: tantivy.Document) -> KnownPage:
    document = page_of(stored)
    if document is not None:
        title, fingerprint = document.title, fingerprint_of(document)
    else:
        title, fingerprint = title_of(stored), int.from_bytes(bytes(stored.get_first("simhash") or b""), "big")
    return KnownPage(
        stored.get_first("id") or "",
        title,
        fingerprint,
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


def _is_same(page: KnownPage, other: KnownPage) -> bool:
    return page.title == other.title and distance(page.fingerprint, other.fingerprint) <= _NEAR
