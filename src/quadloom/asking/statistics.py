"""What a warehouse holds, counted while it grows: classes, properties, vocabularies, sites, kinds, sizes, change rates.

Xyleme planned to gather these numbers; search facets, completions and the VoID description use them.

Classes and properties are running sums over what the indexer adds and removes. They are saved in the same transaction
as the marks of the pages they count, so a saved sum is always that of the marked pages. A crash leaves quads in the
store that no mark covers yet; therefore a crawl writes OPEN when it starts and removes it at its proper end, and
whoever finds OPEN at the start counts the store anew (about a second per million quads).

Kinds, outcomes and states are counted by the catalog within its own transactions; sites come from the hosts. Sizes and
change rates are read from a sample: the catalog lists pages by a hash of their URL, so its beginning is a fair one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from quadloom.phases.index import namespace
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier
from quadloom.stores.protocols.quads import Difference, QuadStore

OPEN = NamedValue("statistics-open", str)
SAMPLE = 5_000

_TYPE = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
# Statements of pages: neither what the warehouse says of them nor how topical crawls scored them. By the term, since
# comparing the beginnings of all graphs' names would take as long as counting.
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
    """Each list is sorted by count. `sampled`: pages behind `sizes` and `change_rates`, whose numbers are shares."""

    pages: int = 0
    quads: int = 0  # statements of pages; what the warehouse itself says of them (`urn:quadloom:pages`) comes on top
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
        """The saved counts; counted anew from the store where the last crawl did not end properly."""
        if OPEN.get(catalog) is not None or (STATISTICS.get(catalog) is None and len(quads)):
            statistics = cls.recounted(quads)
            STATISTICS.put_encoded(catalog, statistics.encode())
        else:
            statistics = cls.saved(catalog)
        OPEN.put(catalog, "1")
        return statistics

    @classmethod
    def saved(cls, catalog: Catalog) -> Statistics:
        """The counts as a crawl saved them last; empty if none did."""
        statistics = cls()
        counts = STATISTICS.get(catalog)
        if counts is not None:
            statistics.classes.update(counts.classes)
            statistics.properties.update(counts.properties)
        return statistics

    @classmethod
    def recounted(cls, quads: QuadStore) -> Statistics:
        """Counted by the engine itself, over all pages."""
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
        """All statements of pages: each has one property."""
        return sum(self.properties.values())

    def count(self, nquads: bytes, sign: int = 1) -> None:
        """Add (or take away) all statements of these N-Quads. Splitting lines costs a tenth of a regular expression."""
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
        return STATISTICS.encode(_Counts(dict(+self.classes), dict(+self.properties)))


def ended(catalog: Catalog) -> None:
    """The crawl has ended properly and its last counts are saved."""
    OPEN.put(catalog, None)


def summary(catalog: Catalog, frontier: Frontier, quads: QuadStore, *, limit: int = 50) -> Summary:
    """All numbers; `limit` cuts the lists of classes, properties, vocabularies and sites."""
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
        classes=_most(+statistics.classes, limit),
        properties=_most(+statistics.properties, limit),
        vocabularies=_most(vocabularies, limit),
        sites=_most(+sites, limit),
        kinds=_most(dict(_prefixed(counts, "kind:")), limit),
        outcomes=_most(dict(_prefixed(counts, "outcome:")), limit),
        sizes=_shares(sizes, _SIZE_NAMES, sampled),
        change_rates=_shares(rates, [name for name, _ in _RATES] + ["more often"], sampled),
        sampled=sampled,
    )


def statements_of(catalog: Catalog, quads: QuadStore) -> int:
    """How many statements pages make, as last saved by a crawl: the store itself would count .6 s for each million."""
    return Statistics.saved(catalog).statements if STATISTICS.get(catalog) is not None else len(quads)


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


def _most(counts: dict[str, int], limit: int) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit])


def _shares(counts: Counter[str], names: Iterable[str], total: int) -> tuple[tuple[str, float], ...]:
    return tuple((name, counts[name] / total) for name in names if counts[name])


def _prefixed(counts: dict[str, int], prefix: str) -> Iterator[tuple[str, int]]:
    return ((name.removeprefix(prefix), number) for name, number in counts.items() if name.startswith(prefix))
