"""Defects that only several pages together show: one @id with different facts, and data that points to dead pages."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from quadloom.asking.audit.report import PageFindings
from quadloom.errors import UrlError
from quadloom.model.finding import Finding
from quadloom.model.outcome import Outcome, PageRow
from quadloom.model.url import Url, belongs_to
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.quads import QuadStore

_MOST = 2000
_FACTS = "name price priceCurrency startDate endDate birthDate telephone isbn gtin13 sku datePublished foundingDate"
_LINKS = "image logo url sameAs contentUrl thumbnailUrl mainEntityOfPage"
_CONFLICTS = """SELECT ?s ?p (MIN(STR(?o)) AS ?one) (MAX(STR(?o)) AS ?other) (MIN(STR(?g)) AS ?page)
  (COUNT(DISTINCT ?g) AS ?pages)
WHERE {{ VALUES ?p {{ {terms} }} GRAPH ?g {{ ?s ?p ?o }} FILTER(isIRI(?s) && isLiteral(?o)) }}
GROUP BY ?s ?p HAVING (COUNT(DISTINCT STR(?o)) > 1 && COUNT(DISTINCT ?g) > 1) LIMIT {most}"""
_POINTED = """SELECT ?g ?s ?p ?o
WHERE {{ VALUES ?p {{ {terms} }} GRAPH ?g {{ ?s ?p ?o }} FILTER(isIRI(?o)) }} LIMIT {most}"""
_DEAD = frozenset((Outcome.GONE, Outcome.FAILED))


class _Cell(msgspec.Struct, frozen=True):
    value: str


class _Bindings(msgspec.Struct, frozen=True):
    bindings: list[dict[str, _Cell]]


class _Table(msgspec.Struct, frozen=True):
    results: _Bindings


def across_pages(quads: QuadStore, catalog: Catalog, sites: frozenset[str]) -> list[PageFindings]:
    """Findings by page. A store that cannot answer SPARQL in this form gives none."""
    found: dict[str, list[Finding]] = {}
    for row in _rows(quads, _CONFLICTS.format(terms=_terms(_FACTS), most=_MOST)):
        subject, name = row["s"].value, row["p"].value.rpartition("/")[2]
        finding = Finding(
            "id-conflict",
            f"{subject} has different values of {name} on {row['pages'].value} pages",
            "warning",
            "index",
            advice="give each thing its own @id, or state the same everywhere",
            path=f"@id › {name}",
            found=row["one"].value[:80],
            expected=f"one value, not also {row['other'].value[:80]}",
        )
        found.setdefault(row["page"].value, []).append(finding)
    for row in _rows(quads, _POINTED.format(terms=_terms(_LINKS), most=50 * _MOST)):
        target = _page(catalog, row["o"].value)
        if target is not None and target.outcome in _DEAD and target.href != row["g"].value:
            name = row["p"].value.rpartition("/")[2]
            finding = Finding(
                "broken-data-link",
                f"{name} leads to {target.href}, which is {target.outcome.value}: {target.reason[:60]}",
                "warning",
                "index",
                advice="correct the address, or bring the page back",
                path=name,
                found=target.href[:200],
                expected="an address that answers",
            )
            found.setdefault(row["g"].value, []).append(finding)
    pages = [(_page(catalog, url), findings) for url, findings in found.items()]
    return [
        PageFindings(row, tuple(findings)) for row, findings in pages if row is not None and belongs_to(row.host, sites)
    ]


def _terms(names: str) -> str:
    return " ".join(f"<{scheme}://schema.org/{name}>" for name in names.split() for scheme in ("http", "https"))


def _rows(quads: QuadStore, query: str) -> Iterator[dict[str, _Cell]]:
    """Pages of one site are in one part of the store; what pages of different parts say is not compared."""
    for answer in quads.parts(query):
        yield from msgspec.json.decode(answer, type=_Table).results.bindings


def _page(catalog: Catalog, url: str) -> PageRow | None:
    try:
        return catalog.page(Url.parse(url).fingerprint)
    except UrlError:
        return None
