"""Many machines on one database: its workers, the part of all sites that each of them owns, and requests to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from quadloom.model.event import Event
from quadloom.stores.protocols.catalog import Catalog


class WorkerRow(NamedTuple):
    """A process that shares the database: a worker, or a command that owns shards for a while."""

    owner: str  # the worker's name, a colon and a part that differs after each start
    is_alive: bool  # its lease has not run out
    silent_seconds: float  # since its last heartbeat
    started: float  # unix seconds, by the server's clock
    fetches: bool
    shards: int
    record: bytes  # what it says about itself (`quadloom.crawling.cluster.beat`); empty = nothing yet


class ServerReport(NamedTuple):
    """A database server, as `quadloom check` shows it. `clock_error`: as in `Shards`."""

    detail: str  # its version, and its number of workers
    has_tables: bool
    clock_error: float


class ShardLoad(NamedTuple):
    """`owner` and `wanted_by` are empty if there is none that is alive."""

    shard: int
    owner: str
    wanted_by: str  # a command that waits for this shard: everybody else gives it back
    work: float  # pages that its hosts can serve within a minute, as its owner saw it last


class ShardQueue(NamedTuple):
    """What the hosts of one shard have queued, as far as they are in memory."""

    work: float  # as in `ShardLoad`
    queued: int
    busiest: str  # the host with most work


class WorkerNews(NamedTuple):
    """What has changed for a worker."""

    links: bool  # `Shards.pull` would find some
    workers: int  # that fetch and are alive, this one included
    free_shards: int  # that were given back and that nobody owns
    requests: bool  # there are new ones, perhaps for others


class WorkerRequest(NamedTuple):
    """A request of a person, see `Cluster.send`."""

    id: int
    request: bytes


class ShardHeartbeat(Protocol):
    """A worker's sign of life, over a connection of its own, so that any thread may send it at any time."""

    def renew(self, record: bytes = b"") -> frozenset[int]:
        """Renew the lease of all shards that this worker owns. Returns those it has lost; `Shards.lose` forgets them.
        `record`: what it says about itself; empty = as before.
        Raises `StoreUnavailable` within some seconds if the database cannot be reached: the caller tries again."""
        ...

    def news(self, after: int) -> WorkerNews:
        """Look at everything that may have changed, in one round trip. `after`: the last request that was answered."""
        ...

    def requests(self, after: int | None) -> list[WorkerRequest]:
        """Requests to this worker or to all, with a larger number. None = the worker has just begun: only those that
        hold for workers that join later."""
        ...

    def last_request(self) -> int:
        """The number of the newest request to anybody."""
        ...

    def answer(self, id: int, record: bytes) -> None:
        """Reply to a request; a second reply replaces the first."""
        ...

    def close(self) -> None: ...


class Shards(Protocol):
    """Which part of all sites this worker owns, when several workers share a database.

    Guarantees: a shard has one owner at a time; an owner whose lease ran out cannot write any more (`ShardsLost`, and
    nothing was written); a host of a shard that changed hands is not asked before its delay has passed. Every method
    but `heartbeat` is for the thread that uses the frontier, and needs an open frontier (`State.frontier`).
    """

    @property
    def owned(self) -> frozenset[int]: ...

    def heartbeat(self) -> ShardHeartbeat:
        """A new connection; the caller closes it. Nothing may be taken before its first `renew`."""
        ...

    @property
    def owner(self) -> str:
        """The name under which this worker owns them."""
        ...

    @property
    def draining(self) -> frozenset[int]:
        """Those about to be given back."""
        ...

    @property
    def begin_until(self) -> float:
        """Unix time until which requests to their hosts may begin; moves with every heartbeat. Any thread may ask."""
        ...

    @property
    def clock_error(self) -> float:
        """Seconds by which this machine's clock is ahead of the database's, or behind it (negative); 0 = they agree
        within a second. As of the last heartbeat."""
        ...

    @property
    def is_outdated(self) -> bool:
        """A newer version of the program has changed the tables, in a way that lets this one finish. As of the last
        heartbeat."""
        ...

    def queues(self) -> dict[int, ShardQueue]:
        """What waits in the shards of this worker; those without anything are left out."""
        ...

    def share_loads(self, queues: Mapping[int, ShardQueue]) -> list[ShardLoad]:
        """Tell others what waits in the shards of this worker, and return the loads of all shards."""
        ...

    def want(self, shards: Collection[int]) -> None:
        """Ask their owners to give these back, for this process alone; it takes them when they are free, and has no
        share of the others. Nobody waits for a process that is dead. Empty = it wants nothing more."""
        ...

    def take(self, limit: int, now: float, wanted: Collection[int] | None = None) -> list[int]:
        """Own up to `limit` more shards, of those in `wanted`; None = any. Returns those that were free; pages that
        their former owner settled and did not index are now `catalog_of(shards).unindexed(…)`."""
        ...

    def take_all(self, now: float) -> None:
        """Own every shard, for a command that writes pages of any site. Raises `WarehouseLocked` if a worker runs."""
        ...

    def drain(self, shards: Iterable[int]) -> None:
        """Lease nothing more from these, so that they can be given back."""
        ...

    def give_back(self, unfinished: frozenset[int]) -> list[int]:
        """Give back drained shards from which nothing is leased, with all clocks written. `unfinished`: shards of
        which the caller still has something to write. Returns those that were given back."""
        ...

    def lose(self, shards: Iterable[int]) -> None:
        """These belong to another worker now: forget everything about them that is in memory."""
        ...

    def pull(self, now: float, prepare: Callable[[], None]) -> bool:
        """Queue links that other workers found for these shards, exactly once. True = there may be more.

        `prepare` is called after links were seen and before they are queued. Seeds widen the scope before they are
        sent, so a scope that is read in `prepare` includes them; one read earlier might refuse them for good."""
        ...

    def catalog_of(self, shards: Sequence[int]) -> Catalog:
        """The catalog with only these shards' pages in `unindexed`."""
        ...


class SentRequest(NamedTuple):
    id: int
    workers: list[str]  # those that are alive and have to answer


class Cluster(Protocol):
    """All workers of a database, seen from any machine: needs neither a directory nor a lock. Opened by
    `quadloom.stores.backends.open_cluster`.

    Guarantees: a worker that is alive gets every request to it, in the order of their ids. A retained request also
    reaches workers that join later, until another one with the same key replaces it. Other requests and all answers may
    be dropped after an hour.
    """

    def workers(self) -> list[WorkerRow]:
        """As `State.workers`."""
        ...

    def events(self, after: int, limit: int, *, settled: bool = True) -> list[Event]:
        """The newest events of all workers with a larger id, oldest first. Ids are those of this list: the ids that
        two workers gave may be equal. `settled`: include those of which there is one for each page."""
        ...

    def send(self, request: bytes, *, worker: str = "", retain: str = "") -> SentRequest:
        """Send to one worker, or to all (empty name). `retain`: the key under which the request is retained."""
        ...

    def answers(self, id: int) -> dict[str, bytes]:
        """Worker → its answer to a request; those that have not answered yet are missing."""
        ...

    def retained(self, key: str) -> bytes | None:
        """The request to all workers that is retained under this key."""
        ...

    def close(self) -> None: ...
