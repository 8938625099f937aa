"""A crawl on one machine: the loop of the thread that owns the stores.

::

      frontier ──lease──► fetch process ──FetchResult──► inbox ──► ingest (transform, settle, index)
         ▲                                                                   │
         └───────────────────────── links, next visits ◄─────────────────────┘

This thread is the only writer and the only one that decides. Other threads put what they have into the inbox. Pages
between lease and settlement are bounded in number and in bytes, so the slowest part sets the pace.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from quadloom.crawling.ingest.intake import Ingest
from quadloom.crawling.ingest.messages import FetchedVisits, NetworkProbed, VisitsLost
from quadloom.crawling.run.outage import NetworkWatch
from quadloom.crawling.run.report import CrawlReport, HeldBy, Meter, PhaseCpu
from quadloom.errors import ShardsLost
from quadloom.fetching.fetcher import FetchResult
from quadloom.fetching.process import FetchProcess
from quadloom.fetching.unit import FetchUnit, FetchUnitFactory
from quadloom.model.event import EventKind
from quadloom.model.outcome import HostPace, Outcome, Settlement
from quadloom.model.page import Failure, Page
from quadloom.model.visit import Visit
from quadloom.planning.refresh.pacing import BandwidthPacer
from quadloom.planning.refresh.reschedule import Rescheduler
from quadloom.process.clock import StepWatch, described_step, unix_time, wall_time
from quadloom.process.retry import retry_when_unavailable
from quadloom.settings import Settings
from quadloom.stores.protocols.frontier import Frontier, Quota

_BYTES_IN_FLIGHT = 24 << 20
_WAIT = 0.05  # seconds to wait for a message when there is nothing else to do
_BUSY_SECONDS = 1.0  # after a lease
_LEASE_PAUSE = 0.01  # seconds between two leases; asked after every answer, the frontier had nothing 39 times of 40
# Visits for which the fetch process has no connection yet, for each that it may open: it begins them while this thread
# writes a batch, which takes as long as the database does.
_AHEAD = 0.25
_PULL_PAUSE = 0.1  # seconds between two looks for links that other processes have found
_ANSWERS = 64  # of hosts, before the network is told
_HOSTS_SENT = 100_000  # hosts whose robots.txt the fetch process is known to have


class Crawl:
    """Iterate to run: each step yields `Settlement`s. Leaving the loop early finishes and saves what is in progress.

    `fetch` starts what brings the pages: a process, or a thread with another transport; None = only what other
    processes have left is done. `pacer` divides the bandwidth of a crawl without an end; None = the crawl ends when
    nothing is due and `may_end` says so. `shared`: other processes find links for this one.
    """

    def __init__(
        self,
        frontier: Frontier,
        settings: Settings,
        ingest: Ingest,
        rescheduler: Rescheduler | None,
        *,
        fetch: FetchUnitFactory | None = FetchProcess,
        pacer: BandwidthPacer | None = None,
        may_end: Callable[[], bool] = lambda: True,
        shared: bool = False,
        clock: Callable[[], float] = unix_time,
        notice: Callable[[EventKind, str], None] = lambda _kind, _text: None,
    ) -> None:
        self._frontier = frontier
        self._settings = settings
        self._ingest = ingest
        self._rescheduler = rescheduler
        self._pacer = pacer
        self._may_end = may_end
        self._shared = shared
        self._clock = clock
        self._notice = notice
        self._in_flight = ingest.in_flight
        self._hosts_sent: set[str] = set()
        frontier.hold_refreshes(clock() if pacer is None else math.inf)
        self._asked_at = 0.0  # when the frontier was last asked, by the monotonic clock
        self._leased_at = 0.0  # when it last had something
        self._cpu = PhaseCpu()
        self._held_by: HeldBy = ""
        self.meter = Meter()
        self._paused = False
        self._stopping = False
        self._pulled_at = 0.0
        self._waited_for = ""  # the store that was away at the last lease
        self._most_sent = _most_sent(settings)
        inbox = ingest.inbox
        self._fetch: FetchUnit | None = None
        if fetch is not None:
            self._fetch = fetch(
                settings,
                lambda results: inbox.put(FetchedVisits(tuple(results))),
                lambda visits: inbox.put(VisitsLost(tuple(visits))),
                inbox.fail,
            )
        reaches = self._fetch.reaches if self._fetch is not None else lambda _endpoints: True
        self._clock_watch = StepWatch(clock, wall_time if clock is unix_time else clock)
        self._answers: dict[str, Page | Failure] = {}  # by host, since the network was last told
        self._network = NetworkWatch(reaches, inbox.put, notice)
        inbox.on(FetchedVisits, self._fetched)
        inbox.on(VisitsLost, self._lost)
        inbox.on(NetworkProbed, self._network.probed)

    def __iter__(self) -> Iterator[Settlement]:
        """Run until nothing is due, a limit is reached or `stop()` was called."""
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[list[Settlement]]:
        """The same, by batches that became durable together; some are empty."""
        try:
            while not self._finished():
                yield self.step()
            yield self._drain()
        except GeneratorExit:
            for _ in self._drain():
                pass
            raise
        finally:
            self.close()

    def step(self) -> list[Settlement]:
        """One turn: lease visits, take in what came back, settle, and look again at a few pages' schedules."""
        if self._network.is_doubtful:
            self._network.turn()
        if step := self._clock_watch.step():
            self._notice(
                "notice",
                f"the clock of this machine was set {described_step(step)}; this crawl goes on by its own clock."
                " The next one will begin with the new time.",
            )
        self.meter.held(self._held_by, self._ingest.counts.settle_wait)
        asked = self._lease()
        # Few hosts with short delays: the next visit may be due before any message comes.
        busy = time.monotonic() - self._leased_at < _BUSY_SECONDS
        wait = _WAIT if asked and not busy else _LEASE_PAUSE
        settlements: list[Settlement] = []
        try:
            settlements = self._ingest.step(wait)
            self._count(settlements)
            rescheduler = self._rescheduler
            if rescheduler is not None and time.monotonic() >= rescheduler.turn_at:
                retry_when_unavailable(lambda: rescheduler.turn(self._clock()))
        except ShardsLost as lost:  # the frontier has forgotten those shards already
            self._notice("notice", lost.message)
        return settlements

    @property
    def paused(self) -> bool:
        return self._paused

    def pause(self) -> None:
        """Lease nothing until `resume`; what is in progress goes on."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False

    def stop(self) -> None:
        """Lease nothing more; what is in progress is finished and saved."""
        self._stopping = True

    def close(self) -> None:
        """End the fetch process."""
        if self._fetch is not None:
            self._fetch.close()

    def scope_changed(self) -> None:
        self._ingest.forget_links()
        if self._rescheduler is not None:
            self._rescheduler.scope_changed()

    def take(self, visit: Visit, page: Page, pace: HostPace) -> None:
        """Settle a page that was fetched outside of the queue, unless the crawl is reading it itself."""
        if visit.fingerprint not in self._in_flight and not self._stopping:
            self._ingest.submit(visit, page, pace)

    def charge(self, requests: int) -> None:
        """Requests were made outside of the queue; the bandwidth is for all of them."""
        if self._pacer is not None:
            self._pacer.charge(requests)

    def change_strategies(self, strategies: list[str], *, stored: bool) -> int:
        """Follow links by other strategies from now on; `stored`: also on pages that were read before."""
        crawl = msgspec.structs.replace(self._settings.crawl, strategies=strategies)
        self._settings = msgspec.structs.replace(self._settings, crawl=crawl)
        return self._ingest.change_strategies(self._settings, stored=stored)

    @property
    def settings(self) -> Settings:
        return self._settings

    def report(self) -> CrawlReport:
        meter, counts, now = self.meter, self._ingest.counts, self._clock()
        stats = self._frontier.stats(now)
        load = self._ingest.load()
        cpu = self._cpu.seconds(
            fetch=self._fetch.cpu_seconds() if self._fetch is not None else 0.0,
            workers=load.cpu_seconds,
            detect=counts.detect_seconds,
            extract=counts.extract_seconds,
        )
        return CrawlReport(
            pages=meter.pages,
            quads=counts.quads,
            failed=meter.outcomes[Outcome.FAILED],
            denied=meter.outcomes[Outcome.DENIED],
            gone=meter.outcomes[Outcome.GONE],
            unchanged=meter.outcomes[Outcome.UNCHANGED],
            seconds=round(meter.seconds, 3),
            cpu_seconds=round(sum(cpu.values()), 3),
            pages_per_second=round(meter.pages / max(meter.seconds, 1e-3), 2),
            bytes=meter.bytes,
            links=counts.links,
            findings=counts.findings,
            quarantined=counts.quarantined,
            replaced_workers=counts.replaced_workers,
            frontier={**msgspec.structs.asdict(stats), "total": stats.total},
            # The last pages are acknowledged when the crawl is closed, after its last step.
            phases={phase: meter.phases[phase] for phase in Meter.PHASES} | {"index": counts.indexed},
            cpu=cpu,
            rates={phase: round(rate, 1) for phase, rate in meter.rates().items()},
            queues={"fetch": stats.queued, **load.queues},
            waits=meter.waits(),
            bandwidth=self._settings.freshness.bandwidth if self._pacer is not None else 0.0,
            statuses=dict(meter.statuses),
            state="stopping" if self._stopping else "paused" if self._paused else "running",
            waits_for={
                **({"the network": unix_time() - self._network.away_for} if self._network.is_away else {}),
                **self._ingest.indexing.waiting.known(),
            },
            workers=[*([self._fetch.heartbeat()] if self._fetch is not None else []), *load.workers],
            services=load.services,
            disks=load.disks,
            limit=self._settings.crawl.max_pages,
            hosts=meter.hosts,
            problems=meter.problems.problems(),
            rendering=meter.rendering if self._settings.crawl.browser != "never" else None,
        )

    def _finished(self) -> bool:
        if self._stopping:
            return True
        crawl, indexing = self._settings.crawl, self._ingest.indexing
        if crawl.max_seconds and self.meter.seconds > crawl.max_seconds:
            return True
        if self._in_flight:
            return False
        if crawl.max_pages and self.meter.pages >= crawl.max_pages:
            return True
        if indexing.may_find_links:
            indexing.hurry()
            return False  # the user's link queries may still find links on the last pages
        if self._paused or self._pacer is not None or self._ingest.has_backlog:
            return False
        if self._fetch is None:
            return self._may_end()
        if self._network.away_for > crawl.max_wait:
            return True  # what was not read stays in the queue
        self._pull()
        due = self._frontier.next_due(self._clock())
        return (due is None or due > self._clock() + crawl.max_wait) and self._may_end()

    def _pull(self) -> None:
        """Take over what processes that do not fetch have found."""
        while self._frontier.pull(self._clock()):
            pass

    def _lease(self) -> bool:
        """Send out what is due; False if it was too early to ask again."""
        if self._fetch is None or self._paused or self._stopping or self._network.is_doubtful:
            self._held_by = "network" if self._network.is_doubtful else ""
            return True
        if (self._shared or not self._pulled_at) and time.monotonic() - self._pulled_at > _PULL_PAUSE:
            self._pulled_at = time.monotonic()
            self._pull()
        if time.monotonic() - self._asked_at < _LEASE_PAUSE:
            return False
        room = self._room(self._fetch)
        if room <= 0 or self._in_flight.bytes > _BYTES_IN_FLIGHT or self._is_waiting():
            self._held_by = "store" if self._waited_for else "phases" if room <= 0 else "memory"
            return True
        self._asked_at = time.monotonic()
        visits = self._without_taken(self._due_visits(room))
        if visits:
            self._leased_at = self._asked_at
            self._in_flight.lease(visits)
            missing = self._ingest.indexing.reindexing.missing
            self._send([_without_validators(visit) if visit.fingerprint in missing else visit for visit in visits])
        return True

    def _room(self, fetch: FetchUnit) -> int:
        """How many more visits may be in progress."""
        crawl = self._settings.crawl
        room = min(crawl.in_flight - len(self._in_flight), self._most_sent - fetch.in_hand)
        if crawl.max_pages:
            room = min(room, crawl.max_pages - self.meter.pages - len(self._in_flight))
        return room

    def _due_visits(self, room: int) -> list[Visit]:
        """Up to `room` visits that are due, within the bandwidth; notes what there were too few of, if any."""
        quota = self._pacer.quota(self._clock()) if self._pacer is not None else None
        try:
            visits = retry_when_unavailable(lambda: self._frontier.lease(room, self._clock(), quota=quota))
        except ShardsLost as lost:
            self._notice("notice", lost.message)
            visits = []
        self._held_by = "" if len(visits) >= room else self._held_back_by(quota)
        return visits

    def _held_back_by(self, quota: Quota | None) -> HeldBy:
        """Why a lease handed out less than there is room for."""
        if quota is None:
            return "hosts"
        is_short = quota.is_short and self._settings.freshness.bandwidth > 0.0  # else it is only the refreshes'
        return "bandwidth" if is_short else "shares" if quota.is_closed else "hosts"

    def _without_taken(self, visits: list[Visit]) -> list[Visit]:
        """Without those that are in flight already, because `take` or the backlog brought them."""
        taken = self._in_flight.among(visits)
        if taken:
            self._frontier.release(taken, self._clock())
            visits = [visit for visit in visits if visit not in taken]
        return visits

    def _is_waiting(self) -> bool:
        """A store is away: what was fetched waits in memory, so nothing more is fetched."""
        reason = self._ingest.indexing.waiting.reason
        if bool(reason) != bool(self._waited_for):
            self._notice("notice", f"waiting for a store: {reason}" if reason else "the store is back")
        self._waited_for = reason
        return bool(reason)

    def _send(self, visits: Sequence[Visit]) -> None:
        """With the robots.txt rows and failures in a row of hosts that the fetch process does not know yet."""
        assert self._fetch is not None
        robots, strikes = {}, {}
        for host in {visit.host for visit in visits} - self._hosts_sent:
            row = self._frontier.hosts.get(host)
            if row is not None and row.robots:
                robots[host] = row.robots
            if row is not None and row.failures:
                strikes[host] = row.failures
            self._hosts_sent.add(host)
        if len(self._hosts_sent) > _HOSTS_SENT:
            self._hosts_sent.clear()
        self._fetch.send(visits, robots, strikes)

    def _lost(self, lost: VisitsLost) -> None:
        self._give_back(lost.visits)
        self._hosts_sent.clear()
        self._ingest.counts.replaced_workers += 1
        self._notice("worker-killed", "the fetch process died and was started again")

    def _give_back(self, visits: Sequence[Visit]) -> None:
        """Return visits to the queue; nothing is recorded for them."""
        self._frontier.release(visits, self._clock())
        self._in_flight.release(visits)

    def _fetched(self, fetched: FetchedVisits) -> None:
        for one in fetched.results:
            response = one.result
            if not isinstance(response, Failure) or response.status:
                self._answers[one.visit.host] = response
            elif self._network_failed(response):
                # Our network is down, not the host: requeue without recording a failure.
                self._give_back([one.visit])
                continue
            self._take_in(one)
        if self._network.is_doubtful or len(self._answers) > _ANSWERS:
            self._network_answered()

    def _network_failed(self, failure: Failure) -> bool:
        self._network_answered()
        return self._network.failed(failure)

    def _network_answered(self) -> None:
        """Pass on who has answered. Only a failure or a doubt makes that interesting."""
        for response in self._answers.values():
            self._network.answered(response)
        self._answers.clear()

    def _take_in(self, fetched: FetchResult) -> None:
        response, pace, meter = fetched.result, fetched.pace, self.meter
        meter.phases["fetch"] += 1
        if fetched.learned is not None:
            self._ingest.outgoing.waiting.robots.append(fetched.learned)
        original = None
        if fetched.rendering is not None:
            original = fetched.rendering.original
            meter.rendering.add(fetched.rendering)
        trouble = response.status >= 500 or (
            isinstance(response, Failure) and (response.transient or response.status < 400)
        )  # a 404 is not a sign of trouble
        if (
            not trouble and not pace.blocked_until
        ):  # the host need not wait for the settlement, which comes with a batch
            self._frontier.answered(fetched.visit, pace, response.fetched_at)
        if isinstance(response, Page) and 200 <= response.status < 300:
            meter.bytes += response.wire_bytes or len(response.body)
        self._ingest.submit(fetched.visit, response, pace, original)

    def _count(self, settlements: Sequence[Settlement]) -> None:
        phases, counts = self.meter.phases, self._ingest.counts
        phases["detect"], phases["transform"] = counts.detected, counts.transformed
        phases["index"], phases["extract"] = counts.indexed, max(counts.extracted, counts.extracted_later)
        self.meter.tick()
        self.meter.settled(settlements)
        if self._pacer is not None:
            for settlement in settlements:
                if settlement.pace is not None:  # not of a page that was fetched earlier
                    self._pacer.settled(settlement)

    def _drain(self) -> list[Settlement]:
        """Finish what is in progress within the longest time that a page may take, and settle it."""
        limits = self._settings.limits
        services = max((one.timeout * (1 + one.retries) for one in self._settings.service), default=0.0)
        scripts = limits.render_seconds if self._settings.crawl.browser != "never" else 0.0
        deadline = time.monotonic() + limits.total_seconds + scripts + 2 * limits.transform_seconds + services
        settled = []
        self.stop()
        self._ingest.close_backlog()
        while (self._in_flight or self._ingest.in_progress) and time.monotonic() < deadline:
            settled += self.step()
        return settled


def _most_sent(settings: Settings) -> int:
    """Visits that the fetch process may have. None of them waits there for a connection if a host may have two at a
    time: those two would follow each other too soon if the first one waited."""
    connections = settings.limits.connections
    several = settings.politeness.per_site > 1 or any(site.own or (site.per_site or 1) > 1 for site in settings.site)
    return connections if several else math.ceil(connections * (1.0 + _AHEAD))


def _without_validators(visit: Visit) -> Visit:
    return msgspec.structs.replace(visit, etag="", last_modified="")
