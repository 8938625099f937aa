"""A warehouse whose database is lost or damaged, recovered in place from its archive: `quadloom recover`.

The archive has every page as it was fetched, in the order of the visits. So recovery is the same crawl once more, with
the archive instead of the web: each record passes through `Ingest`, in a new database, and is not written to the
archive again, because it is there already. What follows from pages follows again: history, links and with them the
queue, robots.txt, how often pages change and when they are due. A page that no earlier page linked to was a seed.

The folder of an archive may have come from somebody else, and a record in it may be forged. One with values that no
crawl writes (no web address, a time in no calendar) is left out like one that cannot be read.

What no page says is lost: URLs that a person excluded or requested, subscriptions, saved queries, visits that found a
page unchanged. If the old database can be read in part, these are taken from there (`quadloom.stores.sqlite.salvage`).

The new database is written in `recovery/`, the indexes beside the old ones. Then, in this order:

1. The damaged database, if there is one, is renamed to `quadloom.db.damaged`.
2. The new one takes its place. From here on the warehouse is recovered.
3. The new indexes replace the old ones as those of a rebuild do (`quadloom.maintenance.swap`).

A process that is killed before 2 leaves a warehouse without a database, which says so: the same command starts again.
After 2, pages whose indexes did not come into place are indexed by the next crawl, as after any crash.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import cast, get_args

import msgspec

from quadloom.crawling.ingest.intake import Ingest
from quadloom.crawling.run.scope import SEEDS, CrawlScope, read_seeds
from quadloom.crawling.topical.topic import TOPIC_GRAPHS
from quadloom.documents.descriptions import VISITS
from quadloom.errors import StoreError, UsageError
from quadloom.fetching.fetcher import robots_row
from quadloom.maintenance.archive_order import all_pages
from quadloom.maintenance.batches import batches
from quadloom.maintenance.links import LinkRecorder
from quadloom.maintenance.rebuild import other_graphs
from quadloom.maintenance.swap import SpooledLedger, abandon, commit
from quadloom.model.event import EventKind
from quadloom.model.link import LinkKind
from quadloom.model.outcome import ArchiveRef, PageRow
from quadloom.model.page import Failure, Page, RobotsUpdate
from quadloom.model.quads import Quads
from quadloom.model.url import canonical, fingerprint, host_of, resolve, site_of
from quadloom.model.visit import Visit
from quadloom.model.wire import decode
from quadloom.planning.policy.page_row import PageScheduleRow
from quadloom.planning.refresh.scheduler import RefreshScheduler
from quadloom.planning.scope import KEPT_DEPTH, Scope, ScopeRecord
from quadloom.process.durable import make_folder, sync
from quadloom.process.failpoints import Failpoints
from quadloom.settings import Settings
from quadloom.stores import backends
from quadloom.stores.archive.placed import PlacedArchive
from quadloom.stores.backends import DATABASE
from quadloom.stores.lock import WarehouseLock
from quadloom.stores.named_values import restore
from quadloom.stores.opened import Places, Stores, places_of
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.frontier import ScheduledPage
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.queries import QuerySource
from quadloom.stores.protocols.state import DamagedState
from quadloom.stores.statistics import Statistics

RECOVERY = "recovery"  # the folder of the new database
DAMAGED = f"{DATABASE}.damaged"
_BATCH = 500
_LATEST = 253_402_300_800.0  # the year 10000, which dates in WARC and RDF cannot name
_ANYWHERE = ScopeRecord(reach="any", max_depth=KEPT_DEPTH)

_SEPARATORS = str.maketrans("", "", "-._~")
Notice = Callable[[EventKind, str], None]


class RecoveryReport(msgspec.Struct, frozen=True, kw_only=True):
    """`versions`: records of the archive that were read again, for `pages` different pages. `unreadable_bytes`: of the
    archive, which hold no readable record. `queued`: URLs that the next crawl will visit. `seeds`: the pages from which
    the scope follows; `seeds_known`: they come from the old database, and are not derived from the links. `kept`: URLs
    and values that could be read from the old database."""

    pages: int = 0
    versions: int = 0
    unreadable_bytes: int = 0
    queued: int = 0
    seeds: tuple[str, ...] = ()
    seeds_known: bool = False
    kept: int = 0


def recover(
    path: Path,
    settings: Settings,
    *,
    progress: Callable[[int], None] = lambda _records: None,
    notice: Notice = lambda _kind, _text: None,
) -> RecoveryReport:
    """Recover the warehouse at `path`; the next opening for writing puts the new indexes in their place.

    Raises `UsageError` if its database is whole, `StoreError` if it is on a server or the archive has no page, and
    `WarehouseLocked` if a process owns the warehouse. Then nothing has changed."""
    if settings.stores.is_shared:
        raise StoreError("the database of this warehouse is on a server", hint="restore it there, from a backup")
    if not path.is_dir():
        raise StoreError(f"there is no warehouse at {path}", hint="name its directory with -w")
    lock = WarehouseLock(path)
    try:
        old = path / DATABASE if (path / DATABASE).exists() else path / DAMAGED
        with closing(backends.open_damaged(old)) as damaged:
            if damaged.is_whole() and old.name == DATABASE:
                raise UsageError(
                    f"the database of {path} is not damaged, so nothing was changed",
                    hint="to compare everything: `quadloom verify`; to rebuild the indexes: `quadloom rebuild`",
                )
            places = places_of(path, settings)
            abandon(places)
            report = _Recovery(path, settings, damaged, progress, notice).run()
        _put_in_place(places, Failpoints(settings.crawl.failpoint))
    finally:
        lock.release()
    return report


class _Recovery:
    """Fills a new database in `recovery/`, and new indexes beside the old ones."""

    def __init__(
        self,
        path: Path,
        settings: Settings,
        damaged: DamagedState,
        progress: Callable[[int], None],
        notice: Notice,
    ) -> None:
        self._path = path
        self._settings = settings
        self._damaged = damaged
        self._progress = progress
        self._notice = notice
        self._now = 0.0  # when the record was fetched that is being read: recovery lives in the time of its archive
        self._versions = 0
        self._seeds: dict[str, None] = {}
        self._fed: dict[int, Page | Failure] = {}  # those that are not settled yet, and some more
        self._reached: set[str] = set()  # sites that were read, or hosts, or pages, by `crawl.scope`

    def run(self) -> RecoveryReport:
        path, settings = self._path, self._settings
        shutil.rmtree(path / RECOVERY, ignore_errors=True)
        places = places_of(path, settings)
        with ExitStack() as opened:
            archive = opened.enter_context(closing(_open_archive(path, settings)))
            make_folder(path / RECOVERY)
            old = opened.enter_context(_old_quads(places, settings))
            state = opened.enter_context(closing(backends.open_state(path / RECOVERY, settings, writable=True)))
            frontier = opened.enter_context(closing(state.frontier(Scope(_ANYWHERE), self._now)))
            ledger = opened.enter_context(closing(SpooledLedger(path)))
            quads = opened.enter_context(backends.fresh_quads(places.new("quads"), settings))
            text = opened.enter_context(closing(backends.open_text(places.new("text"), settings, writable=True)))
            stores = Stores(
                path=path,
                settings=settings,
                state=state,
                frontier=frontier,
                catalog=state.catalog,
                archive=archive,
                quads=quads,
                text=text,
                outbox=state.outbox,
                bus=state.bus,
                query_source=QuerySource(str(places.new("quads"))),
                opened_at=state.changed_mark(),
            )
            kept = self._keep_values(stores)
            known = read_seeds(stores.catalog)
            bytes_read = self._replay(stores, PlacedArchive(archive), ledger, _topical_pages(old))
            kept += self._keep_queue(stores)
            seeds = known or list(self._seeds)
            SEEDS.put(stores.catalog, seeds)
            CrawlScope(settings.crawl, stores.catalog, frontier, Scope(_ANYWHERE)).reload()
            if old is not None:
                quads.insert_new([Quads.of(graph, old.graph(graph)) for graph in other_graphs(old) if graph != VISITS])
            quads.flush()
            text.commit()
            state.outbox.skip_ids(int(time.time()))  # whatever the lost database has used, was less
            ledger.complete(Statistics.recounted(quads, stores.catalog).encode())
            return RecoveryReport(
                pages=sum(1 for _ in all_pages(stores.catalog)),
                versions=self._versions,
                unreadable_bytes=sum(archive.files().values()) - bytes_read,
                queued=frontier.stats(self._now).queued,
                seeds=tuple(seeds),
                seeds_known=bool(known),
                kept=kept,
            )

    def _keep_values(self, stores: Stores) -> int:
        kept = 0
        with stores.catalog.transaction():
            for name, data in self._damaged.values():
                kept += restore(stores.catalog, name, data)
        return kept

    def _keep_queue(self, stores: Stores) -> int:
        kept = 0
        for batch in batches(self._damaged.unread(), _BATCH):
            stores.frontier.add(batch, self._now)
            kept += len(batch)
        return kept

    def _replay(self, stores: Stores, archive: PlacedArchive, ledger: SpooledLedger, topical: frozenset[int]) -> int:
        """Every record of the archive through the phases of a crawl. Returns how many bytes could be read."""
        stores = msgspec.structs.replace(stores, archive=archive)
        scheduler = RefreshScheduler(stores.catalog, stores.frontier, self._settings)
        recorder = LinkRecorder(stores.places.links)
        ingest = Ingest(
            stores,
            self._settings,
            hooks=(scheduler, recorder),
            statistics=Statistics(),
            ledger=ledger,
            links_of=recorder.append,
            clock=lambda: self._now,
            notice=self._notice,
        )
        read = 0
        try:
            for ref, record in _records(archive):
                read += ref.length
                self._now = max(self._now, record.fetched_at)
                self._versions += 1
                self._progress(self._versions)
                robots = _robots_page(record)
                if robots is not None:
                    ingest.outgoing.waiting.robots.append(self._robots(robots))
                else:
                    self._feed(ingest, stores, archive, ref, record, topical)
            ingest.drain()
            ingest.settle([], self._now)
            for rows in batches(all_pages(stores.catalog), _BATCH):
                self._keep_schedule(stores, ingest, rows)
            ingest.finish_indexing()
        finally:
            ingest.close()
            recorder.close()
        scheduler.close(exact=False)  # the next crawl computes the sums from the rows
        return read

    def _feed(
        self,
        ingest: Ingest,
        stores: Stores,
        archive: PlacedArchive,
        ref: ArchiveRef,
        record: Page | Failure,
        topical: frozenset[int],
    ) -> None:
        key = canonical(record.url)
        number = fingerprint(key)
        ingest.wait_for(number)
        visit = self._visit(stores, record.url, key, number)
        if visit is None and self._may_be_found(ingest, record.url):
            ingest.drain()
            visit = self._visit(stores, record.url, key, number)
        if visit is None:
            visit = Visit(record.url, key, host_of(record.url), number, kind="seed", priority=1)
            if number in topical:
                visit = msgspec.structs.replace(visit, depth=KEPT_DEPTH, kind="result", priority=2)
        if visit.depth != KEPT_DEPTH:
            self._note_seed(visit)
        archive.expect(record.url, ref)
        self._fed[number] = record
        if isinstance(record, Page) and 200 <= record.status < 300:
            ingest.feed(visit, record)
        else:
            ingest.submit(visit, record)
            ingest.step(0.0)

    def _may_be_found(self, ingest: Ingest, url: str) -> bool:
        """Whether a page that is on its way through the workers may lead to this one: it has the end of its path, or
        cannot be searched for that. Waiting for all of them for each page took 30 ms a page."""
        self._fed = {number: page for number, page in self._fed.items() if number in ingest.in_flight}
        path = url.partition("?")[0]
        name = path.rstrip("/").rpartition("/")[2]
        if not name.translate(_SEPARATORS).isalnum() or not name.isascii():
            return bool(self._fed)
        return any(
            isinstance(page, Failure)
            or page.status >= 300
            or b"\0" in page.body  # packed, or in an encoding of its own
            or name.encode() in page.body
            or (path.endswith("/") and host_of(page.url) == host_of(url))  # "..", "/"
            for page in self._fed.values()
        )

    def _visit(self, stores: Stores, href: str, key: str, number: int) -> Visit | None:
        """With the way on which the page was found; None = nothing that was read so far leads to it."""
        host = host_of(href)
        known = stores.catalog.page(number) or self._damaged.page(number)
        if known is not None:
            again = stores.catalog.page(number) is not None
            return Visit(href, key, host, number, known.depth, kind=_kind(known), known=again, via=known.via)
        found = stores.frontier.explain(key, self._now)
        source = stores.catalog.page(found.via) if found is not None and found.via else None
        if found is None or (source is not None and source.depth >= KEPT_DEPTH):
            return None
        depth = source.depth + (found.kind != "redirect") if source is not None else 0
        return Visit(href, key, host, number, depth, kind=found.kind, via=found.via)

    def _note_seed(self, visit: Visit) -> None:
        """A page that no earlier one led to was a seed. So was some page of every site that was read: sites link to
        each other, and the scope did not keep this one out."""
        reach = self._settings.crawl.scope
        name = {"page": visit.key, "host": visit.host, "site": site_of(visit.host), "any": ""}[reach]
        if visit.kind == "seed" or name not in self._reached:
            self._seeds.setdefault(visit.href)
        self._reached.add(name)

    def _robots(self, page: Page) -> RobotsUpdate:
        origin = page.url.removesuffix("/robots.txt")
        row = robots_row(origin, page, self._settings.crawl.user_agent, self._settings, page.fetched_at)
        return RobotsUpdate(host_of(page.url), row.encode(), row.expires, row.robots.crawl_delay, row.robots.sitemaps)

    def _keep_schedule(self, stores: Stores, ingest: Ingest, rows: list[PageRow]) -> None:
        """What the old database knew of visits that found a page unchanged, which the archive does not have."""
        amended: list[PageRow] = []
        times: list[ScheduledPage] = []
        for row in rows:
            old = self._damaged.page(row.fingerprint)
            if old is None or not old.schedule or old.body_digest != row.body_digest:
                continue
            row = msgspec.structs.replace(
                row, schedule=old.schedule, visits=old.visits, changes=old.changes, first_seen=old.first_seen
            )
            amended.append(row)
            with suppress(msgspec.MsgspecError):
                due = decode(old.schedule, PageScheduleRow).next_visit
                if due is not None:
                    times.append(ScheduledPage(row.fingerprint, row.host, due))
        if amended:
            with stores.catalog.transaction():
                stores.catalog.amend(amended)
                stores.frontier.reschedule(times, self._now)
            ingest.indexing.jobs.describe(amended)


def _open_archive(path: Path, settings: Settings) -> Archive:
    """For writing, which ends a file that a crash left open; but only if there are records: a disk that is not mounted
    must not get an empty archive."""
    with closing(backends.open_archive(path / "archive", settings, writable=False)) as found:
        if not found.size():
            raise StoreError(
                f"the archive of {path} has no page, so there is nothing to recover from",
                hint=f"mount its disk, or restore {DATABASE} from a backup",
            )
    return backends.open_archive(path / "archive", settings, writable=True)


def _records(archive: Archive) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
    """Readable records in order of writing. Of a page that was rendered, the archive has what the server sent just
    before what its scripts made of it, with the same time: only the latter is the visit."""
    last: tuple[ArchiveRef, Page | Failure] | None = None
    for file in sorted(archive.files()):
        for item in archive.read_file(file):
            if not _is_possible(item[1]):
                continue
            if last is not None and (last[1].url, last[1].fetched_at) != (item[1].url, item[1].fetched_at):
                yield last
            last = item
    if last is not None:
        yield last


def _is_possible(record: Page | Failure) -> bool:
    """Whether a visit can have had this result."""
    is_status = 100 <= record.status <= 999 if isinstance(record, Page) else 0 <= record.status <= 999
    return is_status and 0.0 <= record.fetched_at < _LATEST and resolve(record.url) is not None


def _robots_page(record: Page | Failure) -> Page | None:
    is_robots = record.url.count("/") == 3 and record.url.endswith("/robots.txt")
    return record if is_robots and isinstance(record, Page) and record.status == 200 else None


def _kind(row: PageRow) -> LinkKind:
    """By which kind of link a page was found; rows of older versions do not say."""
    return cast(LinkKind, row.link_kind) if row.link_kind in get_args(LinkKind) else "other"


def _topical_pages(quads: QuadStore | None) -> frozenset[int]:
    """Pages that topical crawls chose. No page need link to them, and they are no seeds: the next crawl must not read
    all of their sites."""
    found: set[int] = set()
    if quads is None:
        return frozenset()
    for graph in other_graphs(quads):
        if graph.startswith(TOPIC_GRAPHS):
            lines = quads.graph(graph).decode("utf-8", "replace").splitlines()
            subjects = (line.partition(" ")[0][1:-1] for line in lines)
            found.update(fingerprint(canonical(subject)) for subject in subjects if subject.startswith("http"))
    return frozenset(found)


@contextmanager
def _old_quads(places: Places, settings: Settings) -> Iterator[QuadStore | None]:
    """The quads of before, if they can be read."""
    try:
        store = backends.open_quads(places.of("quads"), settings, writable=False)
    except StoreError:
        yield None
        return
    with closing(store):
        yield store


def _put_in_place(places: Places, failpoints: Failpoints) -> None:
    """Steps 1 to 3."""
    path = places.path
    failpoints.reach("recovery-filled")
    old = path / DATABASE
    if old.exists():
        for ending in ("", "-wal", "-shm"):
            file = Path(f"{old}{ending}")
            if file.exists():
                file.replace(f"{path / DAMAGED}{ending}")
        sync(path)
    for ending in ("-wal", "-shm"):  # left over from a database that was removed: they belong to no file
        Path(f"{old}{ending}").unlink(missing_ok=True)
    failpoints.reach("recovery-old-away")
    new = path / RECOVERY / DATABASE
    sync(new)
    new.rename(old)
    sync(path)
    failpoints.reach("recovery-new-in")
    shutil.rmtree(path / RECOVERY)
    commit(places, failpoints)
