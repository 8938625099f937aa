"""Maintenance of a warehouse that nothing else is writing to: export, import, verify, rebuild, prune."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from quadloom.asking.questions import WarehouseQueries
from quadloom.errors import ShardsLost, StoreUnavailable
from quadloom.export.dump import DumpReport, export_to, parse_format
from quadloom.export.selection import Selection
from quadloom.ingest.failpoints import Failpoints
from quadloom.ingest.link_queries import without_links
from quadloom.maintenance.bulk import Runner
from quadloom.maintenance.import_ import ImportReport, import_files
from quadloom.maintenance.prune import PruneReport, prune
from quadloom.maintenance.rebuild import RebuildReport, check_sources, rebuild
from quadloom.maintenance.swap import SpooledLedger, commit, discard, write_marks
from quadloom.maintenance.verify import VerifyReport, verify
from quadloom.model.event import EventKind
from quadloom.process.clock import unix_time
from quadloom.process.durable import replacing
from quadloom.stores.backends import fresh_quads, fresh_text
from quadloom.stores.protocols.state import Shards
from quadloom.stores.stores import Stores

Progress = Callable[[int], None]


class Maintenance:
    """`reopen` closes all stores and opens them again; new indexes take the place of the old ones in between."""

    def __init__(self, stores: Stores, queries: WarehouseQueries, reopen: Callable[[], None]) -> None:
        self._stores = stores
        self._queries = queries
        self._reopen = reopen

    def verify(
        self, *, progress: Progress = lambda _pages: None, runner: Runner | None = None, resume: bool = False
    ) -> VerifyReport:
        """Compare archive, quads, text and links with the catalog, page by page. `runner`: compares the files of the
        archive in several processes or on several machines. `resume`: go on after an interrupted run."""
        return verify(self._stores, self._stores.settings, progress=progress, runner=runner, resume=resume)

    def export(
        self,
        target: str | Path | BinaryIO,
        *,
        format: str = "",
        selection: Selection | None = None,
        progress: Progress = lambda _pages: None,
    ) -> DumpReport:
        """Write the warehouse, or a part of it, to a file (format by suffix: `out.nq.gz`) or a binary stream.
        A file appears, or replaces an older one, when it is complete."""
        chosen = selection or Selection()
        if not isinstance(target, str | Path):
            return export_to(self._queries, target, format or "nq", chosen, unix_time(), progress)
        name = Path(target).name
        wanted = format or name.partition(".")[2] or "nq"
        parse_format(wanted)
        with replacing(Path(target)) as stream:
            return export_to(self._queries, stream, wanted, chosen, unix_time(), progress)

    def import_(
        self,
        *paths: str | Path,
        graph: str = "",
        links: bool = True,
        progress: Progress = lambda _pages: None,
        notice: Callable[[EventKind, str], None] = lambda _kind, _text: None,
    ) -> ImportReport:
        """Read WARC files and RDF dumps through the same phases as a crawl. `graph`: for statements without one.
        `links`: queue links that the strategies choose and the scope allows; nothing is visited.
        `notice` is called for quarantined pages and for records and files that were skipped, with the reason."""
        stores = self._stores
        if stores.shards is not None:
            stores.shards.take_all(unix_time())
        files = [Path(path) for path in paths]
        return import_files(stores, stores.settings, files, graph, progress, notice, links=links)

    def rebuild(
        self, *, partial: bool = False, links: bool = True, progress: Progress = lambda _done: None
    ) -> RebuildReport:
        """Rebuild quads and text from the archive; they replace the old ones when they are complete. `links`: queue
        those that the strategies choose and the scope allows, which may be others than when the pages were read.

        Raises `StoreError`, and changes nothing, if database or archive are missing; `partial` accepts that files of
        the archive are. Raises `WarehouseLocked` while other workers run on a shared database."""
        stores, settings = self._stores, self._stores.settings
        failpoints = Failpoints(settings.crawl.failpoint)
        with _all_shards(stores.shards, settings.cluster.heartbeat) as check_shards:
            check_sources(stores, partial=partial)
            discard(stores.places)
            try:
                report = self._fill(progress, check_shards, links)
            except BaseException:
                discard(stores.places)
                raise
            has_folders = commit(stores.places, failpoints)
            if not has_folders:
                write_marks(stores, failpoints)
        if has_folders:
            self._reopen()
        return report

    def prune(self, before: float) -> PruneReport:
        """Remove superseded visits from before this time, and free their space in the archive. Raises
        `WarehouseLocked` while other workers run on a shared database: a file that one of them has begun has no
        references yet, and would be removed."""
        with _all_shards(self._stores.shards, self._stores.settings.cluster.heartbeat):
            return prune(self._stores, before)

    def _fill(self, progress: Progress, check_shards: Callable[[], None], links: bool) -> RebuildReport:
        stores = self._stores
        settings = stores.settings if links else without_links(stores.settings)

        def batch_done(pages: int) -> None:
            check_shards()
            progress(pages)

        with (
            closing(SpooledLedger(stores.path)) as ledger,
            fresh_quads(stores.places.new("quads"), settings) as quads,
            fresh_text(stores.places.new("text"), settings) as text,
        ):
            report = rebuild(stores, settings, quads, text, ledger, progress=batch_done)
            check_shards()  # before pages that were not found are removed from a server
            return report


@contextmanager
def _all_shards(shards: Shards | None, heartbeat: float) -> Iterator[Callable[[], None]]:
    """Own every shard of a shared database inside the block, with a heartbeat every so many seconds: a worker that
    starts meanwhile waits. Gives a function that raises `ShardsLost` if another worker has taken over some all the
    same. Raises `WarehouseLocked` if a worker runs."""
    if shards is None:
        yield lambda: None
        return
    shards.take_all(unix_time())
    lost: set[int] = set()
    ended = threading.Event()
    sign = shards.heartbeat()

    def beat() -> None:
        while not ended.wait(heartbeat):
            with suppress(StoreUnavailable):  # the next one tries again
                lost.update(sign.renew())

    def check() -> None:
        if lost:
            raise ShardsLost(
                f"another worker has taken over {len(lost)} shards during the rebuild; it was given up",
                shards=frozenset(lost),
                hint="stop the workers, then run the same command again",
            )

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield check
    finally:
        ended.set()
        thread.join()
        sign.close()
