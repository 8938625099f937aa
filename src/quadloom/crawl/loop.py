"""A crawl on one machine: the owner's loop.

::

      frontier ──lease──► fetch process ──Fetched──► inbox ──► transform workers ──Done──► inbox
         ▲                                                                                   │
         └────────── settle (archive, catalog, frontier) ◄── batch ◄─────────────────────────┘
                                     └──► indexer thread (quads, text) ──Marks──► inbox

The owner is the only writer and the only thread that decides. Other threads put what they have into the inbox.
Pages between lease and settlement are bounded in number and in bytes; whoever is slower makes the others wait.
"""

from __future__ import annotations

import queue
import resource
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from quadloom.asking.statistics import Statistics
from quadloom.asking.statistics import ended as counted
from quadloom.crawl.control import Value
from quadloom.crawl.inbox import EventMessage, InboxMessage, OwnerCall, ThreadFailed, VisitsLost
from quadloom.crawl.report import CrawlReport, Meter
from quadloom.errors import DiskFull, QuadloomError, ShardsLost
from quadloom.fetching.fetcher import FetchResult
from quadloom.fetching.process import FetchProcess
from quadloom.ingest.failpoints import Failpoints
from quadloom.ingest.indexer import IndexAcks, Indexer
from quadloom.ingest.ingest import FinishedVisit, VisitWriter
from quadloom.ingest.link_queries import UserQueryRunner
from quadloom.ingest.traps import TrapFilter, read_traps
from quadloom.model.event import EventKind
from quadloom.model.outcome import HostPace, Outcome, Settlement
from quadloom.model.page import Failure
from quadloom.model.visit import Visit
from quadloom.refresh.reschedule import Rescheduler
from quadloom.refresh.scheduler import RefreshScheduler
from quadloom.settings import Settings
from quadloom.stores.retry import retry_when_unavailable
from quadloom.stores.shards import shard_of
from quadloom.stores.stores import Stores
from quadloom.subscriptions.notify import ChangeNotifier
from quadloom.subscriptions.websub import HubSubscriptions
from quadloom.workers.pool import TransformResult, WorkerPool

_BYTES_IN_FLIGHT = 256 * 1024 * 1024
_WAIT = 0.05  # seconds the owner waits for news when there is nothing else to do
_LEASE_PAUSE = 0.01  # seconds between two questions to the frontier; after each answer, 39 of 40 were in vain


class Crawl:
    """Iterate to run: each step yields a `Settlement`. Leaving the loop early drains and saves."""

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        forever: bool = False,
        waits: bool = False,
        plainly: frozenset[int] = frozenset(),
        notice: Callable[[EventKind, str], None] = lambda _kind, _text: None,
    ) -> None:
        """`plainly`: fingerprints of pages to be asked for without validators (`ReplayReport.missing`)."""
        self._stores = stores
        self._plainly = plainly
        self._settings = settings
        self._clock = clock
        self._forever = forever
        self._waits = waits  # where nothing is due: others may send work
        self._tell = notice
        self._inbox: queue.SimpleQueue[InboxMessage] = queue.SimpleQueue()
        self._ready: list[FinishedVisit] = []
        self._to_transform: deque[FetchResult] = deque()
        self._paces: dict[int, HostPace | None] = {}
        self._outstanding: dict[int, int] = {}  # fingerprint → bytes held
        self._held_bytes = 0
        self._last_write = 0.0
        self._last_lease = 0.0
        self.meter = Meter()
        self._thread_before = time.thread_time()
        self.paused = False
        self.stopping = False
        self._closed = False
        put = self._inbox.put
        failpoints = Failpoints(settings.crawl.failpoint)
        self._admission = TrapFilter(lambda text: put(EventMessage("trap", text)), read_traps(stores.catalog))
        statistics = Statistics.resume(stores.catalog, stores.quads)
        self._extractor = UserQueryRunner(settings, stores.query_source, lambda text: put(EventMessage("notice", text)))
        self._indexer = Indexer(
            stores.quads, stores.text, settings.index, put, stores.changed, failpoints, statistics,
            self._extractor.discoveries,
        )  # fmt: skip
        self.refreshing = RefreshScheduler(stores.catalog, settings, links=stores.links, scope=stores.scope)
        self.notifying = ChangeNotifier(stores.catalog, stores.outbox, stores.quads)
        self.hubs = HubSubscriptions(stores.catalog, stores.frontier, settings)
        self._pacing = self.refreshing.pacing(stores.frontier)
        self.writer = VisitWriter(
            stores.frontier, stores.catalog, stores.archive, self._indexer, settings, failpoints, self._admission,
            self.refreshing, self.notifying, self.hubs,
        )  # fmt: skip
        self.reviewing = Rescheduler(stores, self.refreshing, self.writer.describe)
        self._fetch = FetchProcess(settings, put, lambda v: put(VisitsLost(tuple(v))), lambda e: put(ThreadFailed(e)))
        self._pool = WorkerPool(
            stores.worker_count(settings), settings, put, lambda kind, text: put(EventMessage(kind, text)),
            lambda error: put(ThreadFailed(error)),
        )  # fmt: skip

    def __iter__(self) -> Iterator[Settlement]:
        """Run until nothing is due, a limit is reached or `stop()` was called."""
        if self._stores.links is not None:
            self._stores.links.start(lambda error: self._inbox.put(ThreadFailed(error)))
        try:
            while not self._finished():
                yield from self.step()
            yield from self._drain()
        except GeneratorExit:
            for _ in self._drain():
                pass
            raise
        finally:
            self.close()

    def step(self) -> list[Settlement]:
        """One turn: lease, take in news, give out work, settle."""
        self._take_in(_WAIT if self._lease() else _LEASE_PAUSE)
        self._give_out()
        self.meter.tick()
        with self._losing():
            retry_when_unavailable(lambda: self.reviewing.turn(self._clock()))
        return self._settle()

    def stop(self) -> None:
        """Lease nothing more; what is under way is finished and saved."""
        self.stopping = True

    def call(self, action: Callable[[], Value]) -> Value:
        """Have `action` done by the owner's thread between two steps; for control requests from other threads."""
        call = OwnerCall(action)
        self._inbox.put(call)
        deadline = time.monotonic() + 60.0
        while True:
            try:
                return call.answer.result(timeout=0.25)
            except TimeoutError:
                if self._closed or time.monotonic() > deadline:
                    raise

    def scope_changed(self) -> None:
        self._pool.forget_links()
        self.reviewing.rescoped()

    def report(self) -> CrawlReport:
        meter, now = self.meter, self._clock()
        stats = self._stores.frontier.stats(now)
        cpu = self._cpu()
        return CrawlReport(
            pages=meter.pages,
            quads=meter.quads,
            failed=meter.outcomes[Outcome.FAILED],
            denied=meter.outcomes[Outcome.DENIED],
            gone=meter.outcomes[Outcome.GONE],
            unchanged=meter.outcomes[Outcome.UNCHANGED],
            seconds=round(meter.seconds, 3),
            cpu_seconds=round(sum(cpu.values()), 3),
            pages_per_second=round(meter.pages / max(meter.seconds, 1e-3), 2),
            bytes=meter.bytes,
            links=meter.links,
            findings=meter.findings,
            quarantined=meter.quarantined,
            frontier={**msgspec.structs.asdict(stats), "total": stats.total},
            phases={phase: meter.phases[phase] for phase in Meter.PHASES},
            cpu=cpu,
            rates={phase: round(rate, 1) for phase, rate in meter.rates().items()},
            statuses=dict(meter.statuses),
            state="stopping" if self.stopping else "paused" if self.paused else "running",
            workers=[self._fetch.heartbeat(), *self._pool.heartbeats()],
        )

    @property
    def indexed(self) -> int:
        """Grows with every page that entered the indexes."""
        return self._indexer.indexed

    def close(self) -> None:
        self._closed = True
        if self._stores.links is not None:
            self._stores.links.close()
        self._fetch.close()
        self._pool.close()
        self._indexer.close()
        self._extractor.close()
        while not self._inbox.empty():
            item = self._inbox.get()
            if isinstance(item, IndexAcks):
                self.writer.acknowledge(item)
        with self._losing():
            self.writer.write([], self._clock())
            self.reviewing.close()
            self.refreshing.close()
        counted(self._stores.catalog)

    def _cpu(self) -> dict[str, float]:
        """Seconds by phase. `settle` is this thread; `index` the rest of the process, the stores' threads included."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        settle = time.thread_time() - self._thread_before
        return {
            "fetch": round(self._fetch.cpu_seconds(), 3),
            "transform": round(self._pool.cpu_seconds(), 3),
            "index": round(usage.ru_utime + usage.ru_stime - self._stores.cpu_before - settle, 3),
            "settle": round(settle, 3),
        }

    def _finished(self) -> bool:
        if self.stopping:
            return True
        crawl = self._settings.crawl
        if crawl.max_seconds and self.meter.seconds > crawl.max_seconds:
            return True
        if crawl.max_pages and self.meter.pages >= crawl.max_pages and not self._outstanding:
            return True
        if self._outstanding or self.paused or self._forever or self._waits:
            return False
        if self._extractor.queries and self.writer.unmarked:
            return False  # the user's own strategies may still find links on the last pages
        due = self._stores.frontier.next_due(self._clock())
        return due is None or due > self._clock() + crawl.max_wait

    def _lease(self) -> bool:
        """Send out what is due; False where it was too early to ask again."""
        if self.paused or self.stopping:
            return True
        if time.monotonic() - self._last_lease < _LEASE_PAUSE:
            return False
        crawl = self._settings.crawl
        room = min(crawl.in_flight - len(self._outstanding), self._settings.limits.connections - self._fetch.in_hand)
        if crawl.max_pages:
            room = min(room, crawl.max_pages - self.meter.pages - len(self._outstanding))
        if room <= 0 or self._held_bytes > _BYTES_IN_FLIGHT:
            return True
        self._last_lease = time.monotonic()
        quota = self._pacing.quota(self._clock()) if self._forever else None
        visits: list[Visit] = []
        with self._losing():
            visits = retry_when_unavailable(lambda: self._stores.frontier.lease(room, self._clock(), quota=quota))
        if self._plainly:
            visits = [_plain(visit) if visit.fingerprint in self._plainly else visit for visit in visits]
        if visits:
            self._outstanding.update((visit.fingerprint, 0) for visit in visits)
            self._fetch.send(visits, *self._stores.first_contacts(visits))
        return True

    def _take_in(self, wait: float) -> None:
        """Everything that has arrived; waits so many seconds when nothing has."""
        try:
            item = self._inbox.get(timeout=wait)
            while True:
                self._take(item)
                item = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _take(self, item: InboxMessage) -> None:
        if isinstance(item, TransformResult):
            self._transformed(item)
        elif isinstance(item, IndexAcks):
            self.meter.phases["index"] += len(item.marks)
            self.writer.acknowledge(item)
        elif isinstance(item, EventMessage):
            if item.kind == "quarantined":
                self.meter.quarantined += 1
            self._pool.tend()
            self._tell(item.kind, item.text)
        elif isinstance(item, OwnerCall):
            try:
                item.answer.set_result(item.action())
            except QuadloomError as error:
                item.answer.set_exception(error)
        elif isinstance(item, ThreadFailed):
            raise item.error
        elif isinstance(item, VisitsLost):
            self._stores.frontier.release(item.visits, self._clock())
            self._stores.fetcher_restarted()
            for visit in item.visits:
                self._forget(visit)
            self._tell("worker-killed", "the fetch process died and was started again")
        else:
            for fetched in item:
                self._fetched(fetched)

    def _fetched(self, fetched: FetchResult) -> None:
        self.meter.phases["fetch"] += 1
        if fetched.learned is not None:
            self.writer.learn(fetched.learned)
        result = fetched.result
        if isinstance(result, Failure) or not 200 <= result.status < 300:
            self._ready.append(FinishedVisit(fetched.visit, result, fetched.pace))
            return
        self._outstanding[fetched.visit.fingerprint] = len(result.body)
        self._held_bytes += len(result.body)
        self.meter.bytes += result.wire_bytes or len(result.body)
        self._to_transform.append(fetched)

    def _give_out(self) -> None:
        room = self._pool.room() if self._to_transform else 0
        while self._to_transform and room > 0:
            fetched = self._to_transform.popleft()
            if isinstance(fetched.result, Failure):
                continue
            self._paces[fetched.visit.fingerprint] = fetched.pace
            self._pool.submit(fetched.visit, fetched.result)
            room -= 1

    def _transformed(self, done: TransformResult) -> None:
        pace = self._paces.pop(done.visit.fingerprint, None)
        self.meter.phases["detect"] += 1
        self.meter.phases["transform"] += 1
        if done.answer is None:
            self._ready.append(FinishedVisit(done.visit, done.page, pace, reason=done.reason))
            return
        woven = done.answer.woven
        self.meter.quads += woven.quads.count
        self.meter.links += woven.links
        self.meter.findings += len(woven.findings)
        self._ready.append(FinishedVisit(done.visit, done.page, pace, woven, done.answer.record))
        self._stores.linked(done.visit.fingerprint, woven.edges)

    def _settle(self) -> list[Settlement]:
        crawl = self._settings.crawl
        waited = time.monotonic() - self._last_write
        news = self._ready or self.writer.has_news  # marks too: a worker with nothing to read may never settle again
        if not news or (len(self._ready) < crawl.batch and waited < crawl.batch_seconds):
            return []
        return self._write()

    def _write(self) -> list[Settlement]:
        batch, self._ready = self._ready, []
        try:
            settlements = self.writer.write(batch, self._clock())
        except DiskFull:
            self._ready = batch  # nothing was acknowledged; the leases return
            raise
        except ShardsLost as lost:
            self._tell("notice", lost.message)
            self._drop(batch, lost.shards)
            return []
        self._last_write = time.monotonic()
        for settlement in settlements:
            self._forget(settlement.visit)
            self._pacing.settled(settlement)
            self.meter.outcomes[settlement.outcome] += 1
            if settlement.page is not None:
                self.meter.statuses[str(settlement.page.status)] += 1
            if settlement.outcome in (Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED):
                self.meter.pages += 1
            self.meter.phases["extract"] += 1
        return settlements

    def _drop(self, batch: list[FinishedVisit], lost: frozenset[int]) -> None:
        """Nothing was written. What another worker owns by now is his to read again; the rest is tried once more."""
        for ready in batch:
            if shard_of(ready.visit.host) in lost:
                self._forget(ready.visit)
            else:
                self._ready.append(ready)
        self.writer.drop_learned(lambda host: shard_of(host) in lost)

    @contextmanager
    def _losing(self) -> Iterator[None]:
        """Where the frontier finds out that another worker has taken over, it has forgotten those shards already."""
        try:
            yield
        except ShardsLost as lost:
            self._tell("notice", lost.message)

    def _forget(self, visit: Visit) -> None:
        self._held_bytes -= self._outstanding.pop(visit.fingerprint, 0)

    def _drain(self) -> list[Settlement]:
        """Finish what is under way within the longest time a page may take, then settle it."""
        limits = self._settings.limits
        deadline = time.monotonic() + limits.total_seconds + 2 * limits.transform_seconds
        settled = []
        self.stopping = True
        while self._outstanding and time.monotonic() < deadline:
            settled += self.step()
        if self._ready:
            settled += self._write()
        return settled


def _plain(visit: Visit) -> Visit:
    return msgspec.structs.replace(visit, etag="", last_modified="")
