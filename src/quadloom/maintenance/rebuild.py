"""Rebuild: both indexes from nothing, out of the archive."""

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
    """Fill empty stores from the archive; the caller puts them in place of the old. Returns the number of pages.

    What no page made cannot be rebuilt, so it is copied: the scores of topical crawls. A page that its site does not
    want archived (or whose record is damaged) keeps its graph, if that can still be read, and is visited again.
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
    with suppress(StoreError):  # damaged: that is why it is rebuilt
        others = [graph for graph in stores.quads.graphs() if not is_page(graph) and graph != PAGES]
        quads.insert_new([Quads.of(graph, stores.quads.graph(graph)) for graph in others])
    quads.flush()
    quads.optimize()
    text.commit()
    STATISTICS.put_encoded(stores.catalog, Statistics.recounted(quads).encode())
    return done


def _stored_job(quads: QuadStore, row: PageRow, description: bytes) -> IndexJob:
    """The old graph of a page that the archive does not have; its words come with the next visit."""
    graph = row.graph
    try:
        stored = quads.graph(graph)
    except StoreError:
        stored = b""
    kept = msgspec.structs.replace(Quads.of(graph, stored), digest=row.quads_digest if stored else b"")
    return IndexJob(
        row.fingerprint,
        kept,
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


def set_damaged_aside(path: Path, settings: Settings) -> list[str]:
    """Indexes of the warehouse at `path` that cannot be opened are renamed to NAME.damaged, so that empty ones take
    their place until they are rebuilt. Returns their names. Raises `WarehouseLocked` where a crawl runs."""
    if not path.is_dir():
        return []
    lock = WarehouseLock(path)
    try:
        return [name for name in ("quads", "text") if _set_aside(path, name, settings)]
    finally:
        lock.release()


def _set_aside(path: Path, name: str, settings: Settings) -> bool:
    try:
        (open_quads if name == "quads" else open_text)(path / name, settings, writable=True).close()
    except (WarehouseLocked, DiskFull):
        raise
    except StoreError:
        if not (path / name).is_dir():  # a store elsewhere, which does not answer
            raise
        aside = path / f"{name}.damaged"
        shutil.rmtree(aside, ignore_errors=True)
        (path / name).rename(aside)
        return True
    return False
