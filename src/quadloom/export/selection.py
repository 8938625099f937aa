"""The pages of an export: by site, by type of the things they describe, by time of their last change."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from quadloom.model.outcome import PageRow
from quadloom.model.url import site_of
from quadloom.phases.descriptions import PAGES
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.quads import QuadStore
from quadloom.syntaxes.terms import TYPE

_BATCH = 500


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Empty = all. `types` are IRIs; times are unix seconds, 0 = no limit."""

    sites: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    since: float = 0.0
    until: float = 0.0


class PageGraph(msgspec.Struct, frozen=True):
    """A page and its statements; `about` describes it in the graph `urn:quadloom:pages`. Both are sorted N-Quads."""

    page: PageRow
    nquads: bytes
    about: bytes


def selected_pages(catalog: Catalog, selection: Selection) -> Iterator[PageRow]:
    """Indexed pages by site and time, in the order of their fingerprints, which is the same for equal warehouses."""
    after = -(1 << 63)
    while rows := catalog.scan(after=after, limit=_BATCH):
        after = rows[-1].fingerprint
        for row in rows:
            if (row.quads_digest or row.text_digest) and _is_wanted(row, selection):
                yield row


def selected_graphs(catalog: Catalog, quads: QuadStore, selection: Selection) -> Iterator[PageGraph]:
    """The same pages with their statements, selected by type too."""
    for row in selected_pages(catalog, selection):
        graph = row.graph
        if selection.types and not _has_type(quads, graph, selection.types):
            continue
        about = sorted(quads.match(f"<{graph}>", None, None, f"<{PAGES}>"))
        yield PageGraph(row, quads.graph(graph), "".join(f"{line}\n" for line in about).encode())


def _is_wanted(row: PageRow, selection: Selection) -> bool:
    if selection.sites and site_of(row.host) not in selection.sites:
        return False
    if selection.since and row.changed_at < selection.since:
        return False
    return not (selection.until and row.changed_at > selection.until)


def _has_type(quads: QuadStore, graph: str, types: tuple[str, ...]) -> bool:
    return any(next(iter(quads.match(None, TYPE, f"<{name}>", f"<{graph}>", 1)), None) is not None for name in types)
