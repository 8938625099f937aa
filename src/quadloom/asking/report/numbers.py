"""The numbers of a warehouse: five counts, defined once, the same in terminal, site, API and documents.

Every place that shows one takes it from `numbers_of` and its name from `LABELS`; a test compares them all. Numbers of
things come from `quadloom.asking.things.counts`. docs/reference/numbers.md defines them for people.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import TextIndex
from quadloom.stores.statistics import statements_of

_WITHOUT_CONTENT = ("redirect", "unknown")
_MAX_COUNTED = 1_000_000  # statements of pages, up to which a server counts those about pages: .6 s a million


class WarehouseNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """`statements_about_pages`: None = not counted, because that would take seconds."""

    pages_visited: int
    pages_with_content: int
    documents_indexed: int
    statements_by_pages: int
    statements_about_pages: int | None


LABELS = {
    "pages_visited": "pages visited",
    "pages_with_content": "pages with content",
    "documents_indexed": "documents indexed",
    "statements_by_pages": "statements by pages",
    "statements_about_pages": "statements about pages",
}


def counts_of(counts: Mapping[str, int], group: str) -> dict[str, int]:
    """Those of the catalog's counts that are of one group: `outcome`, `kind` or `status`."""
    return {name.partition(":")[2]: count for name, count in counts.items() if name.startswith(f"{group}:")}


def numbers_of(catalog: Catalog, text: TextIndex, quads: QuadStore, *, patient: bool = True) -> WarehouseNumbers:
    """`patient`: count statements about pages however long it takes."""
    counts = catalog.counts()
    stated = statements_of(catalog, quads)
    return WarehouseNumbers(
        pages_visited=sum(counts_of(counts, "outcome").values()),
        pages_with_content=sum(n for kind, n in counts_of(counts, "kind").items() if kind not in _WITHOUT_CONTENT),
        documents_indexed=len(text),
        statements_by_pages=stated,
        statements_about_pages=len(quads) - stated if patient or stated <= _MAX_COUNTED else None,
    )


def labelled(numbers: WarehouseNumbers) -> list[tuple[str, int]]:
    """Each number with its name for people, without those that were not counted."""
    found = msgspec.structs.asdict(numbers)
    return [(label, found[name]) for name, label in LABELS.items() if found[name] is not None]
