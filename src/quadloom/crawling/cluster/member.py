"""One of many workers on a shared database: a crawl session, and the membership that gives it shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from quadloom.crawling.cluster.beat import WorkerBeat, machine_state, with_waits
from quadloom.crawling.cluster.membership import Membership
from quadloom.crawling.run.report import CrawlReport
from quadloom.crawling.run.session import CrawlSession
from quadloom.model.outcome import Settlement
from quadloom.model.phase import PHASES
from quadloom.stores.protocols.cluster import ShardQueue, Shards


class ClusterMember:
    """Iterate to run the session as one of the workers. `notice` receives, from another thread, which part it owns."""

    def __init__(
        self,
        session: CrawlSession,
        shards: Shards,
        *,
        path: Path,
        heartbeat: float,
        notice: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._session = session
        self._shards = shards
        self._heartbeat = heartbeat
        self._notice = notice
        self._path = path

    @property
    def replayed(self) -> int:
        return self._session.replayed

    def __iter__(self) -> Iterator[Settlement]:
        with Membership(
            self._session,
            self._shards,
            heartbeat=self._heartbeat,
            notice=self._on_notice,
            describe=self._describe,
            amend=with_waits,
            fetches="fetch" in self._session.phases,
        ):
            yield from self._session

    def close(self) -> None:
        self._session.close()

    def stop(self) -> None:
        self._session.stop()

    def report(self) -> CrawlReport:
        return self._session.report()

    def _describe(self, queues: dict[int, ShardQueue]) -> bytes:
        return WorkerBeat(
            path=str(self._path),
            phases=[phase for phase in PHASES if phase in self._session.phases],
            machine=machine_state(self._path),
            heartbeat=self._heartbeat,
            clock_error=self._shards.clock_error,
            queued=sum(queue.queued for queue in queues.values()),
            report=self._session.report(),
        ).encode()

    def _on_notice(self, text: str) -> None:
        self._session.notice("worker", text)
        self._notice(text)
