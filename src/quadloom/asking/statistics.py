"""Statistics of a warehouse for people: classes, properties, vocabularies, sites, kinds, sizes, change rates. Search
facets, completions and the VoID description use them; Xyleme planned to collect such numbers too.

Classes and properties are counted while the warehouse grows (`quadloom.stores.statistics`); kinds, outcomes and states
by the catalog within its own transactions; sites come from the hosts. Sizes and change rates come from a sample: the
catalog lists pages by a hash of their URL, so its first pages are a fair one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median

import msgspec

from quadloom.asking.report.numbers import counts_of
from quadloom.model.outcome import PageRow
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.quads.json_results import text_rows_of
from quadloom.stores.statistics import Statistics, statements_of

SAMPLE = 5_000

_XML_SHAPE = """
SELECT (COUNT(*) AS ?n) (SUM(?e) AS ?elements) (SUM(?d) AS ?depth) (MAX(?d) AS ?deepest) {
  GRAPH ?g { ?page <urn:quadloom:xml#elements> ?e ; <urn:quadloom:xml#depth> ?d }
}"""
_XML_NAMES = """
SELECT ?x (COUNT(*) AS ?n) { GRAPH ?g { ?page <urn:quadloom:xml#%s> ?x } } GROUP BY ?x ORDER BY DESC(?n) ?x LIMIT %d"""
_SIZES = (1 << 10, 10 << 10, 100 << 10, 1 << 20, 10 << 20)
_SIZE_NAMES = ("< 1 KiB", "< 10 KiB", "< 100 KiB", "< 1 MiB", "< 10 MiB", "larger")
_FASTEST = "several times a day"
_RATES = (("never seen changing", 0.0), ("yearly", 1 / 365), ("monthly", 1 / 30), ("weekly", 1 / 7), ("daily", 1.0))


class KindStatistics(msgspec.Struct, frozen=True):
    """Documents of one kind. Of `sampled` ones: median bytes and statements, mean changes per day. Of all: the mean of
    the statements that a version changes, over the `versions` that changed any."""

    kind: str
    sampled: int
    bytes: int
    quads: int
    changes_per_day: float
    versions: int = 0
    changed_statements: float = 0.0


class XmlStatistics(msgspec.Struct, frozen=True):
    """XML without a stylesheet of its own: what its documents are like. DTDs and namespaces by number of documents."""

    documents: int = 0
    elements: float = 0.0
    depth: float = 0.0
    deepest: int = 0
    dtds: tuple[tuple[str, int], ...] = ()
    namespaces: tuple[tuple[str, int], ...] = ()


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
    by_kind: tuple[KindStatistics, ...] = ()
    xml: XmlStatistics = XmlStatistics()


def summary(catalog: Catalog, frontier: Frontier, quads: QuadStore, *, limit: int = 50) -> Summary:
    """All statistics; `limit` is the length of the lists of classes, properties, vocabularies and sites."""
    from quadloom.documents.index import namespace  # here, because it brings the parsers along

    statistics = Statistics.saved(catalog)
    counts = catalog.counts()
    vocabularies: Counter[str] = Counter()
    for name, number in (+statistics.properties).items():
        vocabularies[namespace(name)] += number
    sites: Counter[str] = Counter()
    for host in frontier.hosts.rows(limit=1_000_000):
        sites[host.site] += host.pages
    pages = [row for row in catalog.scan(limit=SAMPLE) if row.changed_at]
    sizes, rates = _sampled(pages)
    sampled = len(pages)
    return Summary(
        pages=sum(counts_of(counts, "outcome").values()),
        quads=statements_of(catalog, quads),
        classes=_largest(+statistics.classes, limit),
        properties=_largest(+statistics.properties, limit),
        vocabularies=_largest(vocabularies, limit),
        sites=_largest(+sites, limit),
        kinds=_largest(counts_of(counts, "kind"), limit),
        outcomes=_largest(counts_of(counts, "outcome"), limit),
        sizes=_shares(sizes, _SIZE_NAMES, sampled),
        change_rates=_shares(rates, [name for name, _ in _RATES] + [_FASTEST], sampled),
        sampled=sampled,
        by_kind=_by_kind(pages, statistics.changes),
        xml=_xml(quads, limit) if "kind:xml" in counts else XmlStatistics(),
    )


def _by_kind(pages: Sequence[PageRow], changes: dict[str, tuple[int, int]]) -> tuple[KindStatistics, ...]:
    groups: dict[str, list[PageRow]] = {}
    for row in pages:
        groups.setdefault(row.kind, []).append(row)
    found = []
    for kind, rows in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        versions, statements = changes.get(kind, (0, 0))
        found.append(
            KindStatistics(
                kind,
                len(rows),
                round(median(row.body_bytes for row in rows)),
                round(median(row.quads for row in rows)),
                round(sum(map(_changes_per_day, rows)) / len(rows), 4),
                versions,
                round(statements / versions, 1) if versions else 0.0,
            )
        )
    return tuple(found)


def _changes_per_day(row: PageRow) -> float:
    return row.changes / (max(row.fetched_at - row.first_seen, 1.0) / 86400.0)


def _xml(quads: QuadStore, limit: int) -> XmlStatistics:
    """From the statements of the generic mapping (docs/reference/vocabulary.md)."""
    shape = [row for row in all_rows(quads.parts, _XML_SHAPE) if int(row["n"])]
    if not shape:
        return XmlStatistics()
    documents = sum(int(row["n"]) for row in shape)
    named: dict[str, Counter[str]] = {"dtd": Counter(), "namespace": Counter()}
    for name, counter in named.items():
        for row in all_rows(quads.parts, _XML_NAMES % (name, limit)):
            counter[row["x"]] += int(row["n"])
    return XmlStatistics(
        documents,
        round(sum(float(row["elements"]) for row in shape) / documents, 1),
        round(sum(float(row["depth"]) for row in shape) / documents, 1),
        max(int(row["deepest"]) for row in shape),
        *(tuple(sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]) for counter in named.values()),
    )


def all_rows(asked: Callable[[str], Iterator[bytes]], query: str) -> Iterator[dict[str, str]]:
    """The rows of all answers to a query. `asked`: `QuadStore.parts`, or what answers instead of it."""
    for answer in asked(query):
        yield from text_rows_of(answer)


def _sampled(pages: Sequence[PageRow]) -> tuple[Counter[str], Counter[str]]:
    """Pages by size and by rate of change."""
    sizes: Counter[str] = Counter()
    rates: Counter[str] = Counter()
    for row in pages:
        sizes[next((n for n, top in zip(_SIZE_NAMES, _SIZES, strict=False) if row.body_bytes < top), "larger")] += 1
        rate = _changes_per_day(row)
        rates[next((name for name, top in _RATES if rate <= top), _FASTEST)] += 1
    return sizes, rates


def _largest(counts: dict[str, int], limit: int) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit])


def _shares(counts: Counter[str], names: Iterable[str], total: int) -> tuple[tuple[str, float], ...]:
    return tuple((name, counts[name] / total) for name in names if counts[name])
