"""Counts of classes and properties, kept while a warehouse grows.

They are running sums over the statements that the indexer adds and removes, saved in the same transaction that
acknowledges the indexed pages, so a saved sum always covers exactly the acknowledged pages. A crash leaves quads in the
store that are not acknowledged yet. Therefore a crawl writes OPEN when it starts and removes it at its proper end; if
OPEN is there at the next start, the store is counted again (about a second per million quads).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from quadloom.stores.named_values import NamedValue
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.quads import Difference, QuadStore
from quadloom.stores.quads.json_results import rows_of

OPEN = NamedValue("statistics-open", str)

_TYPE = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
# Statements of pages: neither the warehouse's own descriptions nor the scores of topical crawls. The latter are
# excluded by their term, since comparing the start of every graph's name would take as long as counting.
_RECOUNT = """
SELECT ?term (COUNT(*) AS ?n) {{
  GRAPH ?g {{ {pattern} }} FILTER(?g != <urn:quadloom:pages> && ?term != <urn:quadloom:topicScore>)
}} GROUP BY ?term"""


class _Counts(msgspec.Struct, frozen=True):
    classes: dict[str, int]
    properties: dict[str, int]
    changes: dict[str, tuple[int, int]] = {}  # by kind: versions that changed the data, statements added and removed


STATISTICS = NamedValue("statistics", _Counts)


class Statistics:
    """Running counts of classes and properties. Only the indexer's thread changes them."""

    def __init__(self) -> None:
        self.classes: Counter[str] = Counter()
        self.properties: Counter[str] = Counter()
        self.changes: dict[str, tuple[int, int]] = {}

    @classmethod
    def resume(cls, catalog: Catalog, quads: QuadStore) -> Statistics:
        """The saved counts, or a new count of the store if the last crawl did not end properly."""
        if OPEN.get(catalog) is not None or (STATISTICS.get(catalog) is None and len(quads)):
            statistics = cls.recounted(quads, catalog)
            STATISTICS.put_encoded(catalog, statistics.encode())
        else:
            own = STATISTICS.get(catalog)
            statistics = cls._sum([own] if own is not None else [])
        OPEN.put(catalog, "1")
        return statistics

    @classmethod
    def begin(cls, stores: Stores) -> Statistics:
        """For a crawl. Of several workers on one quad store each sums up what it adds and removes, which may be less
        than nothing; the sums of all of them together are the counts. A worker that was killed has not counted the
        pages that were in progress: `rebuild` counts all pages again."""
        if stores.shards is None or stores.query_source.is_local:
            return cls.resume(stores.catalog, stores.quads)
        own = STATISTICS.get(stores.catalog)
        return cls._sum([own] if own is not None else [])

    @classmethod
    def saved(cls, catalog: Catalog) -> Statistics:
        """The counts as crawls saved them last, of all workers together; empty if none did."""
        return cls._sum(STATISTICS.get_all(catalog))

    @classmethod
    def _sum(cls, parts: Iterable[_Counts]) -> Statistics:
        statistics = cls()
        for counts in parts:
            statistics._add(counts)
        return statistics

    @classmethod
    def recounted(cls, quads: QuadStore, catalog: Catalog | None = None) -> Statistics:
        """Counts of all pages, made by the store's query engine. How much versions changed, the store cannot tell: that
        is as the catalog has it."""
        statistics = cls()
        if catalog is not None:
            statistics.changes = cls.saved(catalog).changes
        for counter, pattern in ((statistics.classes, "?s a ?term"), (statistics.properties, "?s ?term ?o")):
            for answer in quads.parts(_RECOUNT.format(pattern=pattern)):
                for row in rows_of(answer):
                    term = row.get("term")
                    if term is not None and term.type == "uri":
                        counter[str(term.value)] += int(str(row["n"].value))
        return statistics

    @property
    def statements(self) -> int:
        """The number of statements of pages: each has one property."""
        return sum(self.properties.values())

    def count(self, nquads: bytes, sign: int = 1) -> None:
        """Add (or subtract) all statements of these N-Quads. Splitting lines costs a tenth of a regular expression."""
        found: dict[bytes, int] = {}
        for line in nquads.split(b"\n"):
            parts = line.split(b" ", 3)
            if len(parts) == 4:
                predicate = parts[1]
                found[predicate] = found.get(predicate, 0) + 1
                if predicate == _TYPE and parts[2][:1] == b"<":
                    self.classes[parts[2][1:-1].decode()] += sign
        for predicate, number in found.items():
            self.properties[predicate[1:-1].decode()] += sign * number

    def apply(self, difference: Difference, kind: str = "") -> None:
        """Count a difference; `kind`: of the document of which it is a new version."""
        size = len(difference.added) + len(difference.removed)
        if kind and size:
            versions, statements = self.changes.get(kind, (0, 0))
            self.changes[kind] = (versions + 1, statements + size)
        if difference.added:
            self.count("\n".join(difference.added).encode())
        if difference.removed:
            self.count("\n".join(difference.removed).encode(), -1)

    def add(self, encoded: bytes) -> None:
        """Add the counts of other pages, as `encode` gives them."""
        self._add(STATISTICS.decode(encoded))

    def _add(self, counts: _Counts) -> None:
        self.classes.update(counts.classes)
        self.properties.update(counts.properties)
        self.changes.update(counts.changes)

    def encode(self) -> bytes:
        return STATISTICS.encode(_Counts(_counted(self.classes), _counted(self.properties), self.changes))


def _counted(counts: Counter[str]) -> dict[str, int]:
    """Without those of nothing. A worker's own may be less than nothing: another one added what it removed."""
    return {name: count for name, count in counts.items() if count}


def stored_spelling(catalog: Catalog, setting: str) -> str:
    """The scheme of schema.org's terms in the store: the setting's, unless a part was stored before it was set."""
    if setting == "as-written":
        return setting
    other = "http://schema.org/" if setting == "https" else "https://schema.org/"
    counts = Statistics.saved(catalog)
    mixed = any(iri.startswith(other) for iri in (*(+counts.properties), *(+counts.classes)))
    return "as-written" if mixed else setting


def mark_complete(catalog: Catalog) -> None:
    """Note that the last counts are saved, because a crawl has ended properly."""
    OPEN.put(catalog, None)


def statements_of(catalog: Catalog, quads: QuadStore) -> int:
    """The number of statements of pages, as last saved by a crawl: counting in the store takes 0.6 s per million."""
    counts = Statistics.saved(catalog)
    return counts.statements if counts.properties else len(quads)
