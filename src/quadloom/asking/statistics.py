"""Statistics of a warehouse, counted while it grows: classes, properties, vocabularies, sites, kinds, sizes, change
rates. Search facets, completions and the VoID description use them; Xyleme planned to collect such numbers too.

Classes and properties are running sums over the statements that the indexer adds and removes. They are saved in the
same transaction that acknowledges the indexed pages, so a saved sum always covers exactly the acknowledged pages. A
crash leaves quads in the store that are not acknowledged yet. Therefore a crawl writes OPEN when it starts and removes
it at its proper end; if OPEN is there at the next start, the store is counted again (about a second per million quads).

Kinds, outcomes and states are counted by the catalog within its own transactions; sites come from the hosts. Sizes and
change rates come from a sample: the catalog lists pages by a hash of their URL, so its first pages are a fair one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier
from quadloom.stores.protocols.quads import Difference, QuadStore
from quadloom.stores.stores import Stores
from quadloom.syntaxes.terms import TYPE

OPEN = NamedValue("statistics-open", str)
SAMPLE = 5_000

_TYPE = TYPE.encode()
# Statements of pages: neither the warehouse's own descriptions nor the scores of topical crawls. The latter are
# excluded by their term, since comparing the start of every graph's name would take as long as counting.
_RECOUNT = """
SELECT ?term (COUNT(*) AS ?n) {{
  GRAPH ?g {{ {pattern} }} FILTER(?g != <urn:quadloom:pages> && ?term != <urn:quadloom:topicScore>)
}} GROUP BY ?term"""
_SIZES = (1 << 10, 10 << 10, 100 << 10, 1 << 20, 10 << 20)
_SIZE_NAMES = ("< 1 KiB", "< 10 KiB", "< 100 KiB", "< 1 MiB", "< 10 MiB", "larger")
_RATES = (("never seen changing", 0.0), ("yearly", 1 / 365), ("monthly", 1 / 30), ("weekly", 1 / 7), ("daily", 1.0))


class _Counts(msgspec.Struct, frozen=True):
    classes: dict[str, int]
    properties: dict[str, int]


STATISTICS = NamedValue("statistics", _Counts)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Each list is sorted by count. `sizes` and `change_rates` are shares of `sampled` pages."""

    pages: int = 0
    quads: int = 0  # statements of pages, without the warehouse's own descriptions (`urn:quadloom:pages`)
    classes: tuple[tuple[str, int], ...] = ()
    properties: tuple[tuple[str, int], ...] = ()
    vocabularies: tuple[tuple[str, int], ...] = ()
    sites: tuple[tuple[str, int], ...] = ()
    kinds: tuple[tuple[str, int], ...] = ()
    outcomes: tuple[tuple[str, int], ...] = ()
    sizes: tuple[tuple[str, float], ...] = ()
    change_rates: tuple[tuple[str, float], ...] = ()
    sampled: int = 0


class Statistics:
    """Running counts of classes and properties. Only the indexer's thread changes them."""

    def __init__(self) -> None:
        self.classes: Counter[str] = Counter()
        self.properties: Counter[str] = Counter()

    @classmethod
    def resume(cls, catalog: Catalog, quads: QuadStore) -> Statistics:
        """The saved counts, or a new count of the store if the last crawl did not end properly."""
        if OPEN.get(catalog) is not None or (STATISTICS.get(catalog) is None and len(quads)):
            statistics = cls.recounted(quads)
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
        pages that were in progress: `rebuild` counts the store again."""
        if stores.shards is None or isinstance(stores.query_source, Path):
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
            statistics.classes.update(counts.classes)
            statistics.properties.update(counts.properties)
        return statistics

    @classmethod
    def recounted(cls, quads: QuadStore) -> Statistics:
        """Counts of all pages, made by the store's query engine."""
        statistics = cls()
        for counter, pattern in ((statistics.classes, "?s a ?term"), (statistics.properties, "?s ?term ?o")):
            table = msgspec.json.decode(quads.query(_RECOUNT.format(pattern=pattern)), type=_Table)
            for row in table.results.bindings:
                term = row.get("term")
                if term is not None and term.type == "uri":
                    counter[term.value] = int(row["n"].value)
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

    def apply(self, difference: Difference) -> None:
        if difference.added:
            self.count("\n".join(difference.added).encode())
        if difference.removed:
            self.count("\n".join(difference.removed).encode(), -1)

    def encode(self) -> bytes:
        changed = ({name: count for name, count in some.items() if count} for some in (self.classes, self.properties))
        return STATISTICS.encode(_Counts(*changed))


def stored_spelling(catalog: Catalog, setting: str) -> str:
    """The scheme of schema.org's terms in the store: the setting's, unless a part was stored before it was set."""
    if setting == "as-written":
        return setting
    other = "http://schema.org/" if setting == "https" else "https://schema.org/"
    counts = Statistics.saved(catalog)
    mixed = any(iri.startswith(other) for iri in (*(+counts.properties), *(+counts.classes)))
    return "as-written" if mixed else setting


def ended(catalog: Catalog) -> None:
    """Note that the crawl has ended properly and its last counts are saved."""
    OPEN.put(catalog, None)


def summary(catalog: Catalog, frontier: Frontier, quads: QuadStore, *, limit: int = 50) -> Summary:
    """All statistics; `limit` is the length of the lists of classes, properties, vocabularies and sites."""
    from quadloom.phases.index import namespace  # here, because it brings the parsers along

    statistics = Statistics.saved(catalog)
    counts = catalog.counts()
    vocabularies: Counter[str] = Counter()
    for name, number in (+statistics.properties).items():
        vocabularies[namespace(name)] += number
    sites: Counter[str] = Counter()
    for host in frontier.hosts(limit=1_000_000):
        sites[host.site] += host.pages
    sizes, rates, sampled = _sampled(catalog)
    return Summary(
        pages=sum(number for name, number in counts.items() if name.startswith("outcome:")),
        quads=statements_of(catalog, quads),
        classes=_largest(+statistics.classes, limit),
        properties=_largest(+statistics.properties, limit),
        vocabularies=_largest(vocabularies, limit),
        sites=_largest(+sites, limit),
        kinds=_largest(dict(_prefixed(counts, "kind:")), limit),
        outcomes=_largest(dict(_prefixed(counts, "outcome:")), limit),
        sizes=_shares(sizes, _SIZE_NAMES, sampled),
        change_rates=_shares(rates, [name for name, _ in _RATES] + ["more often"], sampled),
        sampled=sampled,
    )


def statements_of(catalog: Catalog, quads: QuadStore) -> int:
    """The number of statements of pages, as last saved by a crawl: counting in the store takes 0.6 s per million."""
    counts = Statistics.saved(catalog)
    return counts.statements if counts.properties else len(quads)


class _Cell(msgspec.Struct):
    type: str
    value: str


class _Bindings(msgspec.Struct):
    bindings: list[dict[str, _Cell]]


class _Table(msgspec.Struct):
    results: _Bindings


def _sampled(catalog: Catalog) -> tuple[Counter[str], Counter[str], int]:
    sizes: Counter[str] = Counter()
    rates: Counter[str] = Counter()
    pages = [row for row in catalog.scan(limit=SAMPLE) if row.changed_at]
    for row in pages:
        sizes[next((n for n, top in zip(_SIZE_NAMES, _SIZES, strict=False) if row.body_bytes < top), "larger")] += 1
        days = max(row.fetched_at - row.first_seen, 1.0) / 86400.0
        rate = row.changes / days
        rates[next((name for name, top in _RATES if rate <= top), "more often")] += 1
    return sizes, rates, len(pages)


def _largest(counts: dict[str, int], limit: int) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit])


def _shares(counts: Counter[str], names: Iterable[str], total: int) -> tuple[tuple[str, float], ...]:
    return tuple((name, counts[name] / total) for name in names if counts[name])


def _prefixed(counts: dict[str, int], prefix: str) -> Iterator[tuple[str, int]]:
    return ((name.removeprefix(prefix), number) for name, number in counts.items() if name.startswith(prefix))
