"""The numbers of a warehouse: five counts, defined once, the same in terminal, site, API and documents.

Every place that shows one takes it from `numbers_of` and its name from `LABELS`; a test compares them all. Numbers of
things come from `quadloom.asking.things.counts`. docs/reference/numbers.md defines them for people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from quadloom.process.threads import answers_within
from quadloom.stores.backends import local_indexes
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import TextIndex
from quadloom.stores.statistics import Statistics, statements_of

_WITHOUT_CONTENT = ("redirect", "unknown")
_PATIENCE = 2.0  # seconds for a server that is asked how much it has
_MAX_COUNTED = 1_000_000  # statements of pages, up to which a server counts those about pages: .6 s a million


class WarehouseNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """None = not counted: statements about pages because that would take seconds, others because a server is away."""

    pages_visited: int
    pages_with_content: int
    documents_indexed: int | None
    statements_by_pages: int | None
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
    stated = statements_of(catalog, quads)
    return numbers_from(catalog, len(text), len(quads) if patient or stated <= _MAX_COUNTED else None, stated)


def numbers_from(
    catalog: Catalog, documents: int | None, statements: int | None, stated: int | None = None
) -> WarehouseNumbers:
    """From what the text index and the quad store have. `stated` by pages: None = as the catalog has it."""
    counts = catalog.counts()
    if stated is None:
        saved = Statistics.saved(catalog)
        stated = saved.statements if saved.properties else statements
    return WarehouseNumbers(
        pages_visited=sum(counts_of(counts, "outcome").values()),
        pages_with_content=sum(n for kind, n in counts_of(counts, "kind").items() if kind not in _WITHOUT_CONTENT),
        documents_indexed=documents,
        statements_by_pages=stated,
        statements_about_pages=statements - stated if statements is not None and stated is not None else None,
    )


def store_counts(stores: Stores, *, patient: bool = True) -> tuple[dict[str, int], dict[str, str]]:
    """How much quads, text and archive have; and which of them do not answer within two seconds, with the reason. A
    folder of this machine always answers. `patient` as for `numbers_of`."""
    questions: dict[str, Callable[[], int]] = {"text": lambda: len(stores.text), "archive": stores.archive.size}
    if patient or Statistics.saved(stores.catalog).statements <= _MAX_COUNTED:
        questions["quads"] = lambda: len(stores.quads)
    local = [*local_indexes(stores.settings), *(["archive"] if stores.settings.stores.archive == "warc:" else [])]
    remote = {name: question for name, question in questions.items() if name not in local}
    answers, errors = answers_within(_PATIENCE, remote)
    away = {name: getattr(error, "message", str(error)) for name, error in errors.items()}
    return {**answers, **{name: ask() for name, ask in questions.items() if name in local}}, away


def labelled(numbers: WarehouseNumbers) -> list[tuple[str, int]]:
    """Each number with its name for people, without those that were not counted."""
    found = msgspec.structs.asdict(numbers)
    return [(label, found[name]) for name, label in LABELS.items() if found[name] is not None]
