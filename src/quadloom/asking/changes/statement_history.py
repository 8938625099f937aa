"""How the statements about a thing changed: since when each page states it, and what it stated before.

The quad store has the present only. The archive has every version of a page that was fetched, so earlier graphs are
made again from it, in a process that can be killed. That takes some milliseconds a version, so the number of pages and
versions is limited, and only who asks for the history pays for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyoxigraph as ox

from quadloom.asking.changes.history import graph_after
from quadloom.asking.changes.versions import VersionReader
from quadloom.asking.entity import Entity, Value, value_of_term
from quadloom.asking.urls import page_of
from quadloom.errors import ArchiveDamaged, NothingFound, StoreError, UsageError
from quadloom.model.outcome import PageRow
from quadloom.stores.protocols.catalog import Catalog, VisitRow

PAGES = 8
VERSIONS = 8


class StatementSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One page states this from `first_seen` to `last_seen` (visits that saw it). `present`: it still does."""

    property: str
    value: Value
    source: str
    first_seen: float
    last_seen: float
    present: bool


class StatementHistory(msgspec.Struct, frozen=True):
    """`partial`: pages or versions were left out, or could not be read."""

    spans: tuple[StatementSpan, ...]
    partial: bool


def statement_history(catalog: Catalog, versions: VersionReader, entity: Entity) -> StatementHistory:
    spans: list[StatementSpan] = []
    partial = len(entity.sources) > PAGES
    for source in entity.sources[:PAGES]:
        row = page_of(catalog, source)
        if row is None:
            partial = True
            continue
        found, whole = _of_page(catalog, versions, row, frozenset(entity.names))
        spans += found
        partial |= not whole
    return StatementHistory(tuple(sorted(spans, key=lambda span: (span.property, span.first_seen))), partial)


def _of_page(
    catalog: Catalog, reader: VersionReader, row: PageRow, names: frozenset[str]
) -> tuple[list[StatementSpan], bool]:
    visits = catalog.visits.of(row.fingerprint)[::-1]
    versions = _versions(visits)
    whole = len(versions) <= VERSIONS
    seen: dict[tuple[str, Value], list[float]] = {}
    last = 0.0
    for version, until in versions[-VERSIONS:]:
        try:
            nquads = graph_after(reader, row, version).nquads
        except (NothingFound, UsageError, StoreError, ArchiveDamaged):
            whole = False
            continue
        last = until
        for key in _stated(nquads, names):
            seen.setdefault(key, [version.fetched_at, until])[1] = until
    spans = [
        StatementSpan(
            property=property, value=value, source=row.href, first_seen=first, last_seen=until, present=until == last
        )
        for (property, value), (first, until) in seen.items()
    ]
    return spans, whole


def _versions(visits: Sequence[VisitRow]) -> list[tuple[VisitRow, float]]:
    """The first visit of each version of the graph, oldest first, with the time of the last visit that saw it."""
    found: list[tuple[VisitRow, float]] = []
    for visit in visits:
        if not 200 <= visit.status < 400:
            continue
        if found and (found[-1][0].quads_digest == visit.quads_digest or visit.archive is None):
            found[-1] = (found[-1][0], visit.fetched_at)
        elif visit.archive is not None:
            found.append((visit, visit.fetched_at))
    return found


def _stated(nquads: bytes, names: frozenset[str]) -> set[tuple[str, Value]]:
    return {
        (quad.predicate.value, value_of_term(quad.object))
        for quad in ox.parse(nquads, ox.RdfFormat.N_QUADS, lenient=True)
        if isinstance(quad.subject, ox.NamedNode) and quad.subject.value in names
    }
