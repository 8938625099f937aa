"""The state of a warehouse: frontier, catalog, outbox and bus on one database, so that a settlement is one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from quadloom.model.link import Discovery
from quadloom.model.outcome import PageRow
from quadloom.stores.protocols.bus import Bus
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.cluster import Shards, WorkerRow
from quadloom.stores.protocols.frontier import Frontier, ScopeRules
from quadloom.stores.protocols.outbox import Outbox

T = TypeVar("T")


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
        """The name under which this process leases pages (`PhaseBacklog.lease`)."""
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

    def with_read_connection(self, question: Callable[[Catalog], T]) -> T:
        """Ask the catalog from another thread, over a read-only connection that lives for this question."""
        ...

    def wait_while(self, wanted: Callable[[], bool]) -> None:
        """From now on wait for a database that is away, however long, while this returns True; embedded ones never
        are. Without it, `StoreUnavailable` is raised after about a minute."""
        ...

    def waits(self) -> bool:
        """Whether to wait for a server that is away, see `wait_while`."""
        ...

    def waits_for(self) -> dict[str, float]:
        """What a thread that writes waits for, such as room on the server's disk → since when, unix seconds. Any thread
        may ask; embedded ones never wait."""
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

    def compact(self) -> None:
        """Write the tables again, so that nothing of deleted rows is left in the files of the database. Events that
        were published are dropped. May take minutes and needs as much room as the database has."""
        ...

    def size(self) -> int:
        """Bytes of the database."""
        ...

    def close(self) -> None: ...


class DamagedState(Protocol):
    """The database of an embedded state that may be missing or damaged anywhere; opened for reading only. Nothing here
    raises because of damage: what cannot be read is left out."""

    def is_whole(self) -> bool:
        """Whether the database finds no damage, and at least one page is known."""
        ...

    def values(self) -> Iterator[tuple[str, bytes]]:
        """Named values, as they are stored."""
        ...

    def page(self, number: int) -> PageRow | None:
        """What was known of a page, by its fingerprint."""
        ...

    def unread(self) -> Iterator[Discovery]:
        """URLs that were found and never visited."""
        ...

    def close(self) -> None: ...
