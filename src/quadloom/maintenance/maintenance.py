"""Maintenance of a warehouse that nothing else is writing to: export, import, verify, rebuild."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from quadloom.asking.questions import WarehouseQueries
from quadloom.export.dump import DumpReport, export_to, parse_format
from quadloom.export.selection import Selection
from quadloom.maintenance.import_ import ImportReport, import_files
from quadloom.maintenance.rebuild import rebuild
from quadloom.maintenance.verify import VerifyReport, verify
from quadloom.model.event import EventKind
from quadloom.stores.backends import fresh_quads, open_text
from quadloom.stores.stores import Stores

Progress = Callable[[int], None]


class Maintenance:
    """`while_closed` returns a block in which no store is open, so that files can be replaced."""

    def __init__(
        self, stores: Stores, queries: WarehouseQueries, while_closed: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._stores = stores
        self._queries = queries
        self._while_closed = while_closed

    def verify(self) -> VerifyReport:
        """Compare archive, quads and text with the catalog, page by page."""
        return verify(self._stores, self._stores.settings)

    def export(
        self,
        target: str | Path | BinaryIO,
        *,
        format: str = "",
        selection: Selection | None = None,
        progress: Progress = lambda _pages: None,
    ) -> DumpReport:
        """Write the warehouse, or a part of it, to a file (format by suffix: `out.nq.gz`) or a binary stream."""
        chosen = selection or Selection()
        if not isinstance(target, str | Path):
            return export_to(self._queries, target, format or "nq", chosen, time.time(), progress)
        name = Path(target).name
        wanted = format or name.partition(".")[2] or "nq"
        parse_format(wanted)
        with Path(target).open("wb") as stream:
            return export_to(self._queries, stream, wanted, chosen, time.time(), progress)

    def import_(
        self,
        *paths: str | Path,
        graph: str = "",
        progress: Progress = lambda _pages: None,
        notice: Callable[[EventKind, str], None] = lambda _kind, _text: None,
    ) -> ImportReport:
        """Read WARC files and RDF dumps through the same phases as a crawl. `graph`: for statements without one.
        `notice` is called for quarantined pages and for records and files that were skipped, with the reason."""
        stores = self._stores
        if stores.shards is not None:
            stores.shards.take_all(time.time())
        return import_files(stores, stores.settings, [Path(path) for path in paths], graph, progress, notice)

    def rebuild(self, *, progress: Progress = lambda _done: None) -> int:
        """Rebuild quads and text from the archive; they replace the old ones when complete. Returns the number of
        pages."""
        stores = self._stores
        fresh = {name: stores.path / f"{name}.new" for name in ("quads", "text")}
        for folder in fresh.values():
            shutil.rmtree(folder, ignore_errors=True)
        with fresh_quads(fresh["quads"], stores.settings) as quads:
            text = open_text(fresh["text"], stores.settings, writable=True)
            try:
                pages = rebuild(stores, stores.settings, quads, text, progress=progress)
            finally:
                text.close()
        del quads, text
        with self._while_closed():
            for name, folder in fresh.items():
                if folder.is_dir():
                    shutil.rmtree(stores.path / name, ignore_errors=True)
                    folder.rename(stores.path / name)
        return pages
