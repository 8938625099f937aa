"""Rebuild: both indexes from the archive, into empty stores."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec

from quadloom.asking.statistics import STATISTICS, Statistics
from quadloom.errors import DiskFull, StoreError, WarehouseLocked
from quadloom.ingest.indexer import IndexJob
from quadloom.ingest.ingest import Ingest, without_links
from quadloom.maintenance.verify import all_pages, is_page
from quadloom.model.outcome import PageRow
from quadloom.model.quads import Quads
from quadloom.phases.index import PAGES
from quadloom.settings import Settings
from quadloom.stores.backends import open_quads, open_text
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import TextIndex
from quadloom.stores.sqlite.database import WarehouseLock
from quadloom.stores.stores import Stores

_BATCH = 500


def rebuild(
    stores: Stores,
    settings: Settings,
    quads: QuadStore,
    text: TextIndex,
    *,
    progress: Callable[[int], None] = lambda _n: None,
) -> int:
    """Fill empty stores from the archive; the caller replaces the old ones with them. Returns the number of pages.

    Graphs that come from no page, the scores of topical crawls, are copied. A page that is not archived, because its
    site forbids it or its record is damaged, keeps its graph if that can still be read, and is visited again.
    """
    done = 0
    fresh = msgspec.structs.replace(stores, quads=quads, text=text)
    ingest = Ingest(fresh, without_links(settings), statistics=Statistics())
    try:
        for rows in _batches(row for row in all_pages(stores) if row.quads_digest or row.text_digest):
            ingest.reindex(rows, fallback=lambda row, description: _stored_job(stores.quads, row, description))
            ingest.finish_indexing()
            done += len(rows)
            progress(done)
    finally:
        ingest.close()
    with suppress(StoreError):  # the old store is damaged, which may be why it is rebuilt
        others = [graph for graph in stores.quads.graphs() if not is_page(graph) and graph != PAGES]
        quads.insert_new([Quads.of(graph, stores.quads.graph(graph)) for graph in others])
    quads.flush()
    quads.optimize()
    text.commit()
    STATISTICS.put_encoded(stores.catalog, Statistics.recounted(quads).encode())
    return done


def _stored_job(quads: QuadStore, row: PageRow, description: bytes) -> IndexJob:
    """The old graph of a page that the archive does not have; its text comes with the next visit."""
    graph = row.graph
    try:
        stored = quads.graph(graph)
    except StoreError:
        stored = b""
    graph_quads = msgspec.structs.replace(Quads.of(graph, stored), digest=row.quads_digest if stored else b"")
    return IndexJob(
        row.fingerprint,
        graph_quads,
        None,
        b"",
        fresh=True,
        write_quads=bool(stored),
        write_text=False,
        description=description if stored else b"",
        host=row.host,
    )


def _batches(rows: Iterator[PageRow]) -> Iterator[list[PageRow]]:
    while batch := list(islice(rows, _BATCH)):
        yield batch


def rename_damaged(path: Path, settings: Settings) -> list[str]:
    """Rename indexes of the warehouse at `path` that cannot be opened to NAME.damaged, so that empty ones are used
    until they are rebuilt. Returns their names. Raises `WarehouseLocked` if a crawl is running."""
    if not path.is_dir():
        return []
    lock = WarehouseLock(path)
    try:
        return [name for name in ("quads", "text") if _rename_if_damaged(path, name, settings)]
    finally:
        lock.release()


def _rename_if_damaged(path: Path, name: str, settings: Settings) -> bool:
    try:
        (open_quads if name == "quads" else open_text)(path / name, settings, writable=True).close()
    except (WarehouseLocked, DiskFull):
        raise
    except StoreError:
        if not (path / name).is_dir():  # a store on a server that does not answer
            raise
        damaged = path / f"{name}.damaged"
        shutil.rmtree(damaged, ignore_errors=True)
        (path / name).rename(damaged)
        return True
    return False
