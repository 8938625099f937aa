"""What an older version of Quadloom has made, and what it costs to make it anew.

Tables of the database are brought up to date when they are opened. Indexes are rebuilt from the archive, beside the old
ones, which are used until the new ones are complete.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec.structs import replace

from quadloom.crawling.ingest.index.reindex import archived_page
from quadloom.crawling.ingest.link_queries import without_links
from quadloom.errors import SettingsError
from quadloom.maintenance.archive_order import ArchivedPage, all_pages
from quadloom.maintenance.rebuild import RebuiltFile, is_indexed, rebuild
from quadloom.maintenance.swap import SpooledLedger
from quadloom.model.outcome import PageRow
from quadloom.stores.backends import open_quads, open_text
from quadloom.stores.opened import Stores
from quadloom.stores.statistics import STATISTICS, Statistics

_FEW, _MANY = 100, 2000  # pages of the two samples: their difference leaves out what a rebuild of nothing takes
_FOLDER = "upgrade-sample-"


class UpgradePlan(msgspec.Struct, frozen=True, kw_only=True):
    """`old`: what is out of date; empty = nothing. `seconds` and `bytes`: what the new indexes will take."""

    old: tuple[str, ...] = ()
    pages: int = 0
    seconds: float = 0.0
    bytes: int = 0
    free_bytes: int = 0


def outdated(stores: Stores) -> tuple[str, ...]:
    """What an older version has made, for people. Raises `SettingsError` for a database that many workers share."""
    if stores.settings.stores.is_shared:
        raise SettingsError(
            "the indexes of a cluster are not upgraded by this command",
            hint="stop the workers, then run `quadloom rebuild --workers 0` on one machine;"
            " tables are brought up to date by the first worker of the new version",
        )
    found = ["the text index"] if stores.text.is_outdated else []
    if STATISTICS.get(stores.catalog) is None and stores.catalog.scan(limit=1):
        found.append("the counts of classes and properties")
    return tuple(found)


def plan(stores: Stores, *, clock: Callable[[], float] = time.monotonic) -> UpgradePlan:
    """Measure on pages of this warehouse, which is open for writing: their order by fingerprint is a random one."""
    rows = filter(is_indexed, all_pages(stores.catalog))
    few, many = list(islice(rows, _FEW)), list(islice(rows, _MANY))
    pages = len(few) + len(many) + sum(1 for _ in rows)
    short, _ = _measured(stores, few, clock)
    long, size = _measured(stores, many or few, clock)
    each = max(0.0, long - short) / max(1, len(many) - len(few)) if len(many) > len(few) else long / max(1, len(few))
    return UpgradePlan(
        old=outdated(stores),
        pages=pages,
        seconds=max(0.0, short - each * len(few)) + each * pages,
        bytes=size * pages // max(1, len(many or few)),
        free_bytes=shutil.disk_usage(stores.places.quads.parent).free,
    )


def _measured(stores: Stores, rows: Sequence[PageRow], clock: Callable[[], float]) -> tuple[float, int]:
    """Seconds for indexes of these pages alone, and their bytes."""
    for left in stores.path.glob(f"{_FOLDER}*"):
        shutil.rmtree(left, ignore_errors=True)
    with TemporaryDirectory(prefix=_FOLDER, dir=stores.path) as name:
        folder = Path(name)
        own = replace(stores.settings, stores=replace(stores.settings.stores, quads="oxigraph:", text="tantivy:"))
        settings = without_links(replace(own, stores=replace(own.stores, links="", spool="")))
        sample = replace(stores, path=folder, settings=settings)
        began = clock()
        with (
            closing(SpooledLedger(folder)) as ledger,
            closing(open_quads(folder / "quads", settings, writable=True)) as quads,
            closing(open_text(folder / "text", settings, writable=True)) as text,
        ):
            rebuild(sample, settings, quads, text, ledger, elsewhere=_Sample(stores, rows))
        seconds = clock() - began
        files = (file for index in ("quads", "text") for file in (folder / index).rglob("*") if file.is_file())
        return seconds, sum(file.stat().st_size for file in files)


class _Sample:
    """Some pages, as what a rebuild has left to do."""

    def __init__(self, stores: Stores, rows: Sequence[PageRow]) -> None:
        self.statistics = Statistics()
        self._stores = stores
        self._rows = rows

    def files(self) -> Iterator[RebuiltFile]:
        return iter(())

    def rest(self) -> Iterator[ArchivedPage]:
        return (ArchivedPage(row, archived_page(self._stores.archive, row)) for row in self._rows)
