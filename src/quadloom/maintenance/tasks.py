"""Maintenance of a warehouse that nothing else is writing to: export, import, verify, rebuild, prune."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from quadloom.asking.export.dump import DumpReport, export_to, parse_format
from quadloom.asking.export.selection import Selection
from quadloom.asking.questions import WarehouseQueries
from quadloom.crawling.ingest.link_queries import without_links
from quadloom.crawling.subscriptions.standing_queries import lines_of
from quadloom.documents.descriptions import PAGES
from quadloom.errors import SettingsError, ShardsLost, StoreError, StoreUnavailable, UsageError
from quadloom.maintenance.importing.import_files import ImportReport, import_files
from quadloom.maintenance.parallel.export import ParallelPages
from quadloom.maintenance.parallel.rebuild import ParallelRebuild
from quadloom.maintenance.parallel.statistics import recount
from quadloom.maintenance.rebuild import RebuildReport, check_sources, rebuild
from quadloom.maintenance.removal.forget import Removal, begin
from quadloom.maintenance.removal.prune import PruneReport, prune
from quadloom.maintenance.removal.requests import ForgetReport, pending
from quadloom.maintenance.swap import SpooledLedger, commit, discard, write_marks
from quadloom.maintenance.text_export.chunks import write_chunks
from quadloom.maintenance.text_export.markdown import write_folder, write_lines
from quadloom.maintenance.verify import VerifyReport, verify
from quadloom.model.event import EventKind
from quadloom.process.bulk_tasks import Runner, in_processes
from quadloom.process.clock import unix_time
from quadloom.process.durable import replacing
from quadloom.process.failpoints import Failpoints
from quadloom.settings import Settings
from quadloom.stores.backends import fresh_quads, fresh_text, local_indexes, open_text, refilled_quads, shared_text
from quadloom.stores.opened import INDEXES, Stores
from quadloom.stores.protocols.cluster import Shards

Progress = Callable[[int], None]


class Maintenance:
    """`reopen` closes all stores and opens them again; new indexes take the place of the old ones in between. Returns
    what is open now."""

    def __init__(self, stores: Stores, queries: WarehouseQueries, reopen: Callable[[], Stores]) -> None:
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
        runner: Runner | None = None,
        resume: bool = False,
    ) -> DumpReport:
        """Write the warehouse, or a part of it, to a file (format by suffix: `out.nq.gz`) or a binary stream.
        A file appears, or replaces an older one, when it is complete. `runner`: reads the pages in several processes or
        on several machines; the result is the same. `resume`: continue after such an export into a file was
        interrupted."""
        chosen = selection or Selection()
        wanted = format or (Path(target).name.partition(".")[2] if isinstance(target, str | Path) else "") or "nq"
        name, packing = parse_format(wanted)
        if name in ("markdown", "chunks"):
            return self._export_texts(name, target, packing, chosen, progress, runner)
        if not isinstance(target, str | Path):
            with TemporaryDirectory(prefix="quadloom-export-") as folder:
                pages = self._pages(runner, Path(folder) / "tasks", resume=False)
                return export_to(self._queries, target, wanted, chosen, unix_time(), progress, pages)
        path = Path(target)
        pages = self._pages(runner, path.with_name(f".{path.name}.tasks"), resume=resume)
        with replacing(path) as stream:
            return export_to(self._queries, stream, wanted, chosen, unix_time(), progress, pages)

    def _export_texts(
        self,
        name: str,
        target: str | Path | BinaryIO,
        packing: str,
        selection: Selection,
        progress: Progress,
        runner: Runner | None,
    ) -> DumpReport:
        """Into a stream or file as JSON Lines; into a folder, which a name without a suffix is, as files."""
        if runner is not None:
            raise UsageError(f"{name} is written by one process", hint="leave out --workers and --ray")
        write = write_chunks if name == "chunks" else write_lines
        if not isinstance(target, str | Path):
            return write(self._stores, target, packing, selection, progress)
        path = Path(target)
        if name == "markdown" and (path.is_dir() or not (path.suffix or path.exists())):
            return write_folder(self._stores, path, selection, progress)
        with replacing(path) as stream:
            return write(self._stores, stream, packing, selection, progress)

    def _pages(self, runner: Runner | None, folder: Path, *, resume: bool) -> ParallelPages | None:
        return ParallelPages(self._stores, runner, folder, resume=resume) if runner is not None else None

    def recount(
        self,
        *,
        progress: Callable[[int, int], None] = lambda _done, _of: None,
        runner: Runner | None = None,
        resume: bool = False,
    ) -> None:
        """Count classes and properties of all pages again. `runner`: does so in several processes or on several
        machines. `resume`: continue after an interruption. `progress` gets the ranges of pages that are done, and how
        many there are. Raises `WarehouseLocked` while other workers run on a shared database: they would overwrite the
        counts with their own."""

        def range_done(done: int, of: int) -> None:
            check_shards()
            progress(done, of)

        with _all_shards(self._stores.shards, self._stores.settings.cluster.heartbeat) as check_shards:
            recount(self._stores, runner or in_processes(1), resume=resume, progress=range_done)

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
        self,
        *,
        partial: bool = False,
        links: bool = True,
        progress: Progress = lambda _done: None,
        runner: Runner | None = None,
        resume: bool = False,
    ) -> RebuildReport:
        """Rebuild quads and text from the archive; they replace the old ones when they are complete. `links`: queue
        those that the strategies choose and the scope allows, which may be others than when the pages were read.

        Raises `StoreError`, and changes nothing, if database or archive are missing; `partial` accepts that files of
        the archive are. Raises `WarehouseLocked` while other workers run on a shared database.

        `runner`: rebuilds the files of the archive in several processes or on several machines, which write to the
        servers of both indexes; raises `SettingsError` if one of them is in this directory. `resume`: do not rebuild
        the files again that an interrupted run with a runner has done; without a runner, the pages that a run with
        `resume` had done when it was killed, unless something else has written to the warehouse since."""
        stores, settings = self._stores, self._stores.settings
        failpoints = Failpoints(settings.crawl.failpoint)
        if runner is not None:
            _check_on_servers(settings)

        def batch_done(pages: int) -> None:
            check_shards()
            progress(pages)

        with _all_shards(stores.shards, settings.cluster.heartbeat) as check_shards:
            check_sources(stores, partial=partial)
            resumes = resume and runner is None and _can_resume(stores)
            if not resumes:
                discard(stores.places)
            try:
                chosen = settings if links else without_links(settings)
                if runner is None:
                    report = self._fill(batch_done, check_shards, chosen, resumes)
                else:
                    report = self._fill_in_parallel(batch_done, check_shards, chosen, runner, resume)
            except BaseException:
                if runner is not None or not resume:
                    discard(stores.places)
                raise
            has_folders = commit(stores.places, failpoints)
            if not has_folders:
                write_marks(stores, failpoints)
        if has_folders:
            self._stores = self._reopen()
        return report

    def prune(self, before: float) -> PruneReport:
        """Remove superseded visits from before this time, and free their space in the archive. Raises
        `WarehouseLocked` while other workers run on a shared database: a file that one of them has begun has no
        references yet, and would be removed."""
        with _all_shards(self._stores.shards, self._stores.settings.cluster.heartbeat):
            return prune(self._stores, before)

    def forget(self, rules: Sequence[str] = (), *, progress: Progress = lambda _pages: None) -> list[ForgetReport]:
        """Finish what earlier requests have left, then remove all that these patterns of the scope match
        (`removal.requests.rules_of`), and exclude it from the scope. `progress` gets the pages of rebuilt indexes.
        Raises `WarehouseLocked` while other workers run on a shared database."""
        settings = self._stores.settings
        if settings.stores.is_shared and local_indexes(settings):
            raise SettingsError(
                "other workers have indexes in their own folders, which this command cannot reach",
                hint="move quads and text to servers (stores.quads, stores.text), then run it again",
            )
        with _all_shards(self._stores.shards, settings.cluster.heartbeat):
            names = pending(self._stores.catalog)
            if rules:
                names.append(begin(self._stores, rules))
        return [self._forget(name, progress) for name in names]

    def _forget(self, name: str, progress: Progress) -> ForgetReport:
        settings = self._stores.settings
        with _all_shards(self._stores.shards, settings.cluster.heartbeat):
            removal = self._removal(name)
            if removal.request.rules:
                removal.remove()
        if removal.request.rules:
            # Engines keep what was deleted until they merge files, and Oxigraph's dictionary of strings for ever.
            if local_indexes(settings) or shared_text(settings) is not None:
                self.rebuild(links=False, progress=progress)
            else:
                self.recount()
        with _all_shards(self._stores.shards, settings.cluster.heartbeat):
            return self._removal(name).finish()

    def _removal(self, name: str) -> Removal:
        limits = self._stores.settings.limits
        return Removal(
            self._stores,
            name,
            ask=lambda query: lines_of(self._queries.queries, query, limits),
            reached=Failpoints(self._stores.settings.crawl.failpoint).reach,
        )

    def _fill(
        self, progress: Progress, check_shards: Callable[[], None], settings: Settings, resumes: bool
    ) -> RebuildReport:
        stores = self._stores
        with (
            closing(SpooledLedger(stores.path, resume=resumes)) as ledger,
            fresh_quads(stores.places.new("quads"), settings) as quads,
            fresh_text(stores.places.new("text"), settings) as text,
        ):
            report = rebuild(stores, settings, quads, text, ledger, progress=progress)
            check_shards()  # before pages that were not found are removed from a server
            return report

    def _fill_in_parallel(
        self,
        progress: Progress,
        check_shards: Callable[[], None],
        settings: Settings,
        runner: Runner,
        resume: bool,
    ) -> RebuildReport:
        stores = self._stores
        elsewhere = ParallelRebuild(stores, settings, runner, resume=resume)
        with closing(SpooledLedger(stores.path)) as ledger, closing(refilled_quads(settings)) as quads:
            with closing(elsewhere.writer()) as text:
                report = rebuild(stores, settings, quads, text, ledger, progress=progress, elsewhere=elsewhere)
                elsewhere.fill_text(text)
            check_shards()  # before pages that were not found are removed from a server
            quads.written_elsewhere(PAGES, elsewhere.graphs())
            quads.finish()
        elsewhere.finish()
        return report


def _can_resume(stores: Stores) -> bool:
    """Whether new indexes are there that this version began to fill."""
    places, settings = stores.places, stores.settings
    if set(local_indexes(settings)) != set(INDEXES) or not all(places.new(name).is_dir() for name in INDEXES):
        return False
    try:
        with closing(open_text(places.new("text"), settings, writable=False)) as text:
            return not text.is_outdated
    except StoreError:
        return False


def _check_on_servers(settings: Settings) -> None:
    local = local_indexes(settings)
    if local:
        names = " and ".join(f"stores.{name}" for name in local)
        raise SettingsError(
            f"the rebuild of {names} cannot be cut into tasks: an index in this directory has one writer",
            hint="run `quadloom rebuild` without --workers, --ray and --resume: it transforms pages on all cores",
        )


@contextmanager
def _all_shards(shards: Shards | None, heartbeat: float) -> Iterator[Callable[[], None]]:
    """Own every shard of a shared database inside the block, with a heartbeat every `heartbeat` seconds: a worker that
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
                f"another worker has taken over {len(lost)} shards meanwhile; this command was given up",
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
