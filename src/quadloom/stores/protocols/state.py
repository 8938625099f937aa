"""The state of a warehouse: frontier, catalog, outbox and bus on one database, so that a settlement is one commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from quadloom.stores.protocols.bus import Bus
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier, ScopeRules
from quadloom.stores.protocols.outbox import Outbox

T = TypeVar("T")


class WholeCatalog(Catalog, Protocol):
    """A catalog that also answers questions about all pages at once, which only a ranking asks."""

    def of_kinds(self, kinds: list[str]) -> list[int]:
        """Fingerprints of all pages of these kinds."""
        ...

    def hosts(self) -> list[str]:
        """Hosts of all pages."""
        ...


class WorkerRow(NamedTuple):
    """A process that shares the database: a worker, or a command that owns shards for a while."""

    owner: str  # the worker's name, a colon and a part that differs after each start
    is_alive: bool  # its lease has not run out
    silent_seconds: float  # since its last heartbeat
    started: float  # unix seconds, by the server's clock
    fetches: bool
    shards: int
    record: bytes  # what it says about itself (`quadloom.crawling.cluster.beat`); empty = nothing yet


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
    """A request of a person, see `quadloom.crawling.cluster.steering`."""

    id: int
    request: bytes


class ShardHeartbeat(Protocol):
    """A worker's sign of life, over a connection of its own, so that any thread may send it at any time."""

    def renew(self, record: bytes = b"") -> frozenset[int]:
        """Renew the lease of all shards that this worker owns. Returns those it has lost; `Shards.lose` forgets them.
        `record`: what it says about itself; empty = as before.
        Raises `StoreUnavailable` within some seconds if the database cannot be reached: the caller tries again."""
        ...

    def workers(self) -> int:
        """Number of workers whose leases have not run out, this one included."""
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


class State(Protocol):
    """Opened by `quadloom.stores.backends.open_state`. What is done inside `catalog.transaction()` on catalog, outbox
    and frontier is one commit."""

    @property
    def catalog(self) -> Catalog: ...

    @property
    def outbox(self) -> Outbox: ...

    @property
    def bus(self) -> Bus: ...

    @property
    def shards(self) -> Shards | None:
        """None = this process owns all sites (embedded), or it only reads."""
        ...

    @property
    def owner(self) -> str:
        """The name under which this process leases pages (`Catalog.lease_pages`)."""
        ...

    def is_working(self, owner: str) -> bool:
        """Whether the process that leased pages under this name is still there. If not, its leases may be ended."""
        ...

    def frontier(self, scope: ScopeRules, now: float) -> Frontier:
        """Opened once. The caller closes it, before `close`. If another process fetches (`open_state`), this one hands
        out nothing, and what is added reaches that process: see `Frontier.pull`."""
        ...

    def changed_mark(self) -> bytes:
        """Two calls with equal results = nothing was committed between them. It may also differ when nothing of
        interest was committed. Marks of two openings of one database can be compared. Costs less than 0.1 ms embedded,
        one round trip on a server; any thread that may use the catalog may ask."""
        ...

    def with_read_connection(self, question: Callable[[WholeCatalog], T]) -> T:
        """Ask the catalog from another thread, over a read-only connection that lives for this question."""
        ...

    def wait_while(self, wanted: Callable[[], bool]) -> None:
        """From now on wait for a database that is away, however long, while this returns True; embedded ones never
        are. Without it, `StoreUnavailable` is raised after about a minute."""
        ...

    def waits(self) -> bool:
        """Whether to wait for a server that is away, see `wait_while`."""
        ...

    def take_outage(self) -> float:
        """Seconds for which the database was away since the last call; 0 = it was not, or it is embedded."""
        ...

    def workers(self) -> list[WorkerRow]:
        """Every process that shares the database, the dead of the last day included. Empty = it is embedded."""
        ...

    def links_on_the_way(self) -> int:
        """Batches of links, seeds and requests that wait for the workers of their shards; embedded, there are none."""
        ...

    def size(self) -> int:
        """Bytes of the database."""
        ...

    def close(self) -> None: ...
