"""The frontier's hosts on a database. Files of robots.txt are in a table of their own, because a host's row is
rewritten with every batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence

from quadloom.stores.frontier.host_table import HostState
from quadloom.stores.frontier.rows import HOST_COLUMNS, HostColumns, qualified
from quadloom.stores.protocols.frontier import HostRow
from quadloom.stores.sql.statements import EVERYTHING, SqlCondition, SqlDatabase, delete, first, update, upsert

_WRITE_HOSTS = update(
    "host",
    "address delay next_at blocked_until block_reason ready_at failures pages spent budget crawl_delay",
    "id",
)
_SUBTRACT_PAGES = update("host", "pages", "id", {"pages": "host.pages - {pages}"})
_REMOVE_HOSTS = delete("host", "id")
_REMOVE_ROBOTS = delete("robots", "host_id")
_WRITE_ROBOTS = upsert("robots", "host_id data expires", "host_id")


class SqlHosts(ABC):
    """The tables of hosts: `host` with the durable clocks and counters, and `robots`.

    Guarantees: every statement joins an enclosing transaction; a host's id never changes and is never given to another
    host. Searches (`hosts_with_work`, `hosts_with_refreshes`, `next_wake`) find only hosts whose URLs this process may
    lease; reads by name or id find all.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    def host_ids(self, names: Sequence[str], *, create: bool) -> dict[str, int]:
        """Ids by name. Unknown hosts are inserted with `create`, and missing without."""
        rows = self._database.among("SELECT name, id FROM host WHERE name {keys}", names)
        found: dict[str, int] = dict(rows)
        missing = [name for name in names if name not in found] if create else []
        if missing:
            found.update(self._create(missing))
        return found

    def host_states(self, ids: Sequence[int]) -> list[HostState]:
        """Those that exist."""
        rows = self._database.among(f"SELECT {HOST_COLUMNS} FROM host WHERE id {{keys}}", ids)
        return [HostColumns(*row).state() for row in rows]

    def hosts_with_refreshes(self) -> list[int]:
        """Ids of hosts that have URLs of priority 0 or 1 in their queues, whatever their clocks say."""
        own = self._own()
        rows = self._database.execute(
            "SELECT host.id FROM host WHERE host.queued > 0 AND EXISTS (SELECT 1 FROM queue q "
            f"WHERE q.host_id = host.id AND q.priority <= 1){own.sql}",
            own.values,
        )
        return [id for (id,) in rows]

    def write_hosts(self, hosts: Iterable[HostState]) -> None:
        self._database.write_many(
            _WRITE_HOSTS,
            [
                (
                    h.address,
                    h.delay,
                    h.next_at,
                    h.blocked_until,
                    h.block_reason,
                    h.free_at,
                    h.failures,
                    h.pages,
                    h.spent,
                    h.budget,
                    h.crawl_delay,
                    h.id,
                )
                for h in hosts
            ],
        )

    def clamp_clocks(self, next_at: float, blocked_until: float) -> int:
        """Of all hosts: another worker has the clocks of its own hosts in memory, and writes them again."""
        *_, least, greatest = self._database.dialect
        clocks = f"{least}(next_at, ?), blocked_until = {least}(blocked_until, ?)"
        free_at = f"{greatest}({least}(next_at, ?), {least}(blocked_until, ?))"
        return self._database.change(
            f"UPDATE host SET next_at = {clocks}, ready_at = {free_at} WHERE next_at > ? OR blocked_until > ?",
            (next_at, blocked_until) * 3,
        )

    def host_row(self, name: str) -> HostRow | None:
        return next(iter(self._host_rows("WHERE h.name = ?", (name,))), None)

    def host_rows(self, limit: int, offset: int, *, own: bool = False) -> list[HostRow]:
        """By name. `own`: only hosts whose URLs this process may lease."""
        chosen = self._own("h") if own else EVERYTHING
        order = f"WHERE true{chosen.sql} ORDER BY {self._database.dialect.by_name} LIMIT ? OFFSET ?"
        return self._host_rows(order, (*chosen.values, limit, offset))

    def _host_rows(self, where: str, values: Sequence[object]) -> list[HostRow]:
        names = qualified("h", HOST_COLUMNS)
        rows = self._database.execute(
            f"SELECT {names}, r.data, r.expires FROM host h LEFT JOIN robots r ON r.host_id = h.id {where}", values
        )
        return [HostColumns(*columns).row(robots, expires) for *columns, robots, expires in rows]

    def host_counts(self, now: float) -> tuple[int, int]:
        """All hosts, and those blocked now."""
        blocked = first(self._database.execute("SELECT count(*) FROM host WHERE blocked_until > ?", (max(now, 0.0),)))
        return self._number(), blocked[0] if blocked else 0

    def names(self) -> list[tuple[int, str]]:
        """Ids and names of all hosts."""
        return [(id, name) for id, name in self._database.execute("SELECT id, name FROM host")]

    def subtract_pages(self, pages: Mapping[int, int]) -> None:
        """Count so many pages less, by host id."""
        self._database.write_many(_SUBTRACT_PAGES, [(number, id) for id, number in sorted(pages.items())])

    def remove(self, ids: Sequence[int]) -> None:
        """Remove hosts that have no URLs, and their robots.txt."""
        self._database.write_many(_REMOVE_ROBOTS, [(id,) for id in ids])
        self._database.write_many(_REMOVE_HOSTS, [(id,) for id in ids])

    def write_robots(self, host_id: int, data: bytes, expires: float) -> None:
        self._database.write_many(_WRITE_ROBOTS, [(host_id, data, expires)])

    def _own(self, table: str = "host") -> SqlCondition:
        """Narrows a query to hosts whose URLs this process may lease."""
        return EVERYTHING

    @abstractmethod
    def _create(self, names: Sequence[str]) -> dict[str, int]:
        """Insert hosts. Returns their ids by name."""

    @abstractmethod
    def _number(self) -> int:
        """Of all hosts."""

    @abstractmethod
    def hosts_with_work(self, now: float, loaded: Collection[int], limit: int) -> list[HostState]:
        """Hosts whose durable clock allows a visit, the longest free first, without those `loaded` already."""

    @abstractmethod
    def next_wake(self, now: float, loaded: Collection[int]) -> float:
        """Time after `now` at which the first host that is not `loaded` has work; infinity = never."""
