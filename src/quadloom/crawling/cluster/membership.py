"""A worker's membership in a cluster: its heartbeat, its fair share of the shards, links found by other workers, and
requests of people.

Two threads beside the crawl, with a connection of their own. One only renews the lease and says how the worker is, so
that neither a long transaction nor a replay of pages that a dead worker left delays it. The other looks for news; it
changes nothing in the frontier itself: the crawl's thread does that between two steps (`session.call`), as for control
commands.

Which shards a worker should own says `balance`. A worker with more drains the surplus (leases nothing more from it,
waits for what is in progress) and gives it back with all clocks written and all its pages marked as indexed, so that no
page is transformed or read twice; a worker with less takes what is free. Shards of a worker whose lease ran out are
free, too, but their hosts wait their full delay, because they may have been asked a moment ago.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from quadloom.crawling.cluster.balance import plan, wanted_part
from quadloom.crawling.cluster.beat import clock_words
from quadloom.crawling.run.control import ControlReply, ControlRequest
from quadloom.crawling.run.session import CrawlSession
from quadloom.errors import QuadloomError
from quadloom.model.outcome import PageRow
from quadloom.process.clock import unix_time
from quadloom.process.threads import start
from quadloom.stores.protocols.catalog import FIRST_UNINDEXED, UnindexedPlace
from quadloom.stores.protocols.cluster import ShardQueue, Shards
from quadloom.stores.shards import SHARDS

_POLL_SECONDS = 0.25  # between two looks for news
OUTDATED = (
    "another machine has a newer version of Quadloom, which has changed the database: this worker finishes what is in "
    "progress and leaves. Install that version here, too, and start it again"
)
_ROWS = 200  # of pages read from the catalog at once


class Membership:
    """Use as a context manager around the crawl. `notice` receives what a person should know. `describe` returns what
    the worker says about itself; it is called in the crawl's thread, with what waits in its shards. `amend` adds what
    that thread waits for; it is called while the thread cannot say so itself. `fetches`:
    otherwise the worker takes no shards; it works on pages of any shard, which it leases one by one."""

    def __init__(
        self,
        session: CrawlSession,
        shards: Shards,
        *,
        heartbeat: float,
        notice: Callable[[str], None],
        describe: Callable[[dict[int, ShardQueue]], bytes] = lambda _queues: b"",
        amend: Callable[[bytes, dict[str, float]], bytes] = lambda record, _stuck: record,
        fetches: bool = True,
    ) -> None:
        self._session = session
        self._shards = shards
        self._pause = heartbeat
        self._notice = notice
        self._describe = describe
        self._amend = amend
        self._stuck: dict[str, float] = {}
        self._fetches = fetches
        self._heartbeat = shards.heartbeat()
        self._lost: frozenset[int] = frozenset()
        self._unindexed: frozenset[int] = frozenset()  # shards taken whose unindexed pages were not queued yet
        self._hot: set[int] = set()  # shards that were reported as too heavy
        self._is_clock_wrong = False
        self._is_leaving = False
        self._record = b""
        self._workers = 1
        self._answered: int | None = None  # the last request; None = not even those that stand
        self._beaten = threading.Event()  # a heartbeat has come back, so the share may have changed
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Membership:
        self._record = self._describe({})
        self._beat()  # a worker that cannot reach the database does not begin
        for name, work, pause in (("heartbeat", self._beat, self._pause), ("membership", self._poll, _POLL_SECONDS)):
            self._threads.append(start(name, lambda w=work, p=pause: self._repeat(w, p), self._session.fail))  # type: ignore[misc]
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(timeout=10.0)
        self._heartbeat.close()

    def _repeat(self, work: Callable[[], None], pause: float) -> None:
        while not self._over.wait(pause):
            try:
                work()
            except QuadloomError as error:
                # The server is away, or shards are lost, which the frontier has then forgotten already.
                self._notice(error.message)
            except TimeoutError:
                continue  # the crawl's thread is busy, or has ended

    def _beat(self) -> None:
        self._lost |= self._heartbeat.renew(self._amended())
        self._beaten.set()
        if self._shards.is_outdated and not self._is_leaving:
            self._is_leaving = True
            self._notice(OUTDATED)
            self._session.stop()
        error = self._shards.clock_error
        if bool(error) is not self._is_clock_wrong:
            self._is_clock_wrong = bool(error)
            self._notice(clock_words(error) if error else "the clock of this machine is right again")

    def _amended(self) -> bytes:
        """The record, also if the crawl's thread waits for a store and cannot renew it."""
        stuck = self._session.stuck()
        for reason in stuck.keys() - self._stuck.keys():
            self._notice(f"waiting for a store: {reason}")
        if self._stuck and not stuck:
            self._notice("the store is back")
        self._stuck = stuck
        return self._amend(self._record, stuck) if stuck else self._record

    def _poll(self) -> None:
        if self._answered is None:
            last = self._heartbeat.last_request()
            self._obey(None)  # before any shard is owned: a paused cluster begins nothing
            self._answered = last
        news = self._heartbeat.news(self._answered)
        if news.requests:
            self._obey(self._answered)
        is_beat = self._beaten.is_set()
        self._beaten.clear()
        if self._fetches:
            # Others have come or gone, or have given something back: this should not wait for the next heartbeat.
            stirred = news.workers != self._workers or news.free_shards or self._shards.draining
            self._workers = news.workers
            if is_beat or stirred:
                self._session.call(self._balance)
            elif news.links:
                self._session.call(self._pull)
        if is_beat:
            self._session.call(self._look_around)

    def _obey(self, after: int | None) -> None:
        """Do what people ask, and reply."""
        for id, encoded in self._heartbeat.requests(after):
            try:
                request = msgspec.json.decode(encoded, type=ControlRequest)
                if after is None and request.verb == "strategies":
                    request = msgspec.structs.replace(request, arguments={**request.arguments, "stored": False})
                reply = ControlReply(True, self._session.answer(request))
            except QuadloomError as error:
                reply = ControlReply(False, None, error.message, error.hint)
            except msgspec.MsgspecError as error:
                reply = ControlReply(False, None, f"invalid request: {error}", "use the same version on all machines")
            self._heartbeat.answer(id, msgspec.json.encode(reply))
            if after is not None:
                self._answered = id

    def _look_around(self) -> None:
        """In the crawl's thread, once a heartbeat: what commands on other machines have changed; what to say."""
        self._session.reload()
        queues = self._shards.queues() if self._fetches else {}
        self._record = self._describe(queues)

    def _balance(self) -> None:
        """In the crawl's thread."""
        shards, workers = self._shards, self._workers
        lost, self._lost = self._lost & shards.owned, frozenset()
        if lost:
            self._notice(f"lost {len(lost)} shards: the lease had run out")
            shards.lose(lost)
        queues = shards.queues()
        loads = shards.share_loads(queues)
        planned = plan(loads, shards.owner, workers, shards.draining)
        if planned.give:
            shards.drain(planned.give)
        given = shards.give_back(self._session.unfinished_shards())
        taken = shards.take(len(planned.take), unix_time(), planned.take) if planned.take else []
        if lost or given or taken:
            self._notice(f"owns {len(shards.owned)} of {SHARDS} shards ({workers} workers)")
        self._session.set_part(len(shards.owned) / SHARDS, wanted_part(loads, shards.owner))
        self._report_hot(planned.hot, queues)
        self._unindexed = shards.owned & {*self._unindexed, *taken}
        if self._unindexed:
            # Raises if a store is away: the next heartbeat tries again.
            self._session.acquired(self._unindexed_rows(sorted(self._unindexed)))
            self._unindexed = frozenset()
        self._pull()

    def _report_hot(self, hot: list[int], queues: dict[int, ShardQueue]) -> None:
        for shard in hot:
            queue = queues.get(shard)
            if queue is not None and queue.busiest and shard not in self._hot:
                self._notice(
                    f"{queue.busiest} fills a shard: {queue.queued} URLs are queued there, more than a worker's fair "
                    "share. More machines do not help; a shorter delay or a higher per_site for it would, if its owner "
                    "agrees"
                )
        self._hot = {*hot}

    def _unindexed_rows(self, shards: list[int]) -> list[PageRow]:
        """Pages of these shards that their previous owner settled and did not index."""
        catalog = self._shards.catalog_of(shards)
        found: list[PageRow] = []
        while rows := catalog.unindexed(_ROWS, _place_after(found)):
            found += rows
        return found

    def _pull(self) -> None:
        """In the crawl's thread. Seeds come with a wider scope, which must be known before they are queued."""
        reload_scope = self._session.reload_scope
        reload_scope()
        while self._shards.pull(unix_time(), reload_scope):
            pass


def _place_after(rows: list[PageRow]) -> UnindexedPlace:
    return UnindexedPlace(rows[-1].fetched_at, rows[-1].fingerprint) if rows else FIRST_UNINDEXED
