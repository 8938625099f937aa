"""Which worker owns which shard: leases with fencing.

A worker's lease is its row in `worker`, renewed by a heartbeat; a shard belongs to the owner named in `shard_lease`
for as long as that row is alive. Taking a shard raises its epoch. Every transaction that writes for shards first locks
their rows FOR SHARE and compares epochs: either it commits before a takeover can, or it sees the takeover and is
refused. So a worker that was stopped, swapped out or cut off cannot write after another has taken its place, however
wrong its clock is. Only the server's clock decides whether a lease has run out. A worker compares its own with it at
every heartbeat (`clock_error`).

Claims wait for each other (an advisory lock, taken before the statement that reads, so that it sees earlier claims).
Rows that a stopped worker holds in an open transaction are skipped and claimed later. The server ends its session by
`idle_in_transaction_session_timeout`, unless it was stopped between the statements of a pipeline: there no timeout of
the server runs, so the worker that wants to claim ends such sessions (`end_frozen`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from quadloom.errors import ShardsLost
from quadloom.process.clock import unix_time
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.schema import MIGRATIONS
from quadloom.stores.shards import SHARDS

LEASE_SECONDS = 20.0
_ON_THE_WAY = 1.0  # seconds from the last look at the clock until a request has reached its host
_SAME_CLOCK = 1.0  # seconds by which clocks of machines may differ without a consequence
FROZEN_SECONDS = 15.0  # without a word in the middle of a transaction; as long as the server's own limit between two


def clock_error(before: float, server: float, after: float) -> float:
    """Seconds by which this machine's clock is ahead of the server's, or behind it; 0 = they agree well enough. The
    server gave its time at some moment between `before` and `after`."""
    ahead = before - server if before > server else after - server if after < server else 0.0
    return ahead if abs(ahead) > _SAME_CLOCK else 0.0


class Claim(NamedTuple):
    """A shard that was taken."""

    shard: int
    epoch: int
    clean: bool  # its last owner gave it back with all clocks written
    previous: str  # owner before; empty if it was given back


class ShardLeases:
    """The shards of one worker. `epochs` is what this process believes; `check` asks the database."""

    def __init__(
        self,
        owner: str,
        *,
        duration: float = LEASE_SECONDS,
        fetches: bool = True,
        clock: Callable[[], float] = unix_time,
    ) -> None:
        self.owner = owner
        self.fetches = fetches  # a worker that does not has no share of the shards
        self.duration = duration
        self.begin_until = 0.0  # by this machine's clock, from before the heartbeat was sent: never too late
        self.clock_error = 0.0  # seconds by which this machine's clock is ahead of the server's, if they are too many
        self.is_outdated = False  # a newer version of the program has changed the tables
        self.epochs: dict[int, int] = {}
        self.draining: set[int] = set()  # about to be given back: nothing more is leased from them
        self._clock = clock

    @property
    def owned(self) -> list[int]:
        return list(self.epochs)

    @property
    def leasable(self) -> list[int]:
        return [shard for shard in self.epochs if shard not in self.draining]

    def renew(self, database: PostgresDatabase, record: bytes = b"") -> frozenset[int]:
        """The heartbeat; from any thread, over a connection of its own. Returns the shards that are lost. `record`:
        what the worker says about itself; empty = as before."""
        before = self._clock()
        ((server, version),) = database.execute(
            "INSERT INTO worker AS w(name, until, started, fetches, record) VALUES(%s, clock_timestamp() + "
            "make_interval(secs => %s), clock_timestamp(), %s, %s) ON CONFLICT(name) DO UPDATE SET "
            "until = excluded.until, seen = clock_timestamp(), fetches = excluded.fetches, "
            "record = CASE WHEN excluded.record = '' THEN w.record ELSE excluded.record END "
            "RETURNING extract(epoch FROM clock_timestamp())::float8, (SELECT version FROM quadloom_schema)",
            (self.owner, self.duration, self.fetches, record),
        )
        self.clock_error = clock_error(before, server, self._clock())
        self.is_outdated = version > len(MIGRATIONS)
        known = dict(self.epochs)  # the crawl's thread may take others while the server is asked
        held: dict[int, int] = dict(
            database.execute("SELECT shard, epoch FROM shard_lease WHERE owner=%s", (self.owner,))
        )
        lost = frozenset(shard for shard, epoch in known.items() if held.get(shard) != epoch)
        if not lost:
            # A request that is sent now has reached its host when the next owner takes over, which then lets the host
            # wait its full delay. If shards are lost, nothing begins until the crawl has forgotten them: it might
            # lease from them while the new owner does.
            self.begin_until = before + self.duration - min(_ON_THE_WAY, self.duration / 4)
        return lost

    def workers(self, database: PostgresDatabase) -> int:
        """Number of workers that fetch and whose leases have not run out."""
        return int(database.execute("SELECT count(*) FROM worker WHERE fetches AND until > clock_timestamp()")[0][0])

    def is_alive(self, database: PostgresDatabase, owner: str) -> bool:
        """Whether the lease of this worker has not run out."""
        rows = database.execute("SELECT 1 FROM worker WHERE name=%s AND until > clock_timestamp()", (owner,))
        return bool(rows)

    def end_frozen(self, database: PostgresDatabase, seconds: float = FROZEN_SECONDS) -> int:
        """End sessions that hold leases of this warehouse and have been silent for `seconds` in the middle of a
        transaction. Returns how many. Must not be called inside a transaction, which would wait for them."""
        ended = database.execute(
            "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a WHERE a.datname = current_database() "
            "AND a.usename = current_user AND a.pid <> pg_backend_pid() AND a.wait_event = 'ClientRead' "
            "AND a.xact_start IS NOT NULL AND a.query_start < clock_timestamp() - make_interval(secs => %s) "
            "AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.relation = 'shard_lease'::regclass)",
            (seconds,),
        )
        return len(ended)

    def claim(self, database: PostgresDatabase, limit: int, wanted: Collection[int] | None = None) -> list[Claim]:
        """Take up to `limit` shards that no living worker owns or wants; inside a transaction, after which `took` is
        called. Includes shards that this worker owns without knowing: of a commit whose answer was lost."""
        database.execute("SELECT pg_advisory_xact_lock(hashtext('quadloom claims'), hashtext(current_schema()))")
        rows = database.execute(
            "WITH free AS MATERIALIZED (SELECT l.shard, l.owner, l.clean FROM shard_lease l WHERE (NOT EXISTS "
            "(SELECT FROM worker w WHERE w.name = l.owner AND w.until > clock_timestamp()) "
            "OR l.owner = %s AND l.shard <> ALL(%s::smallint[])) AND l.shard = ANY(%s::smallint[]) AND NOT EXISTS "
            "(SELECT FROM worker w WHERE w.name = l.wanted_by AND w.name <> %s AND w.until > clock_timestamp()) "
            "ORDER BY l.shard LIMIT %s FOR UPDATE OF l SKIP LOCKED) "
            "UPDATE shard_lease s SET owner=%s, epoch = s.epoch + 1, clean=false FROM free "
            "WHERE s.shard = free.shard RETURNING s.shard, s.epoch, free.clean, free.owner",
            (self.owner, self.owned, list(range(SHARDS) if wanted is None else wanted), self.owner, limit, self.owner),
        )
        database.write("DELETE FROM worker WHERE until < clock_timestamp() - interval '1 day'")
        return [Claim(*row) for row in rows]

    def took(self, claims: Iterable[Claim]) -> None:
        """The transaction of `claim` has committed."""
        for claim in claims:
            self.epochs[claim.shard] = claim.epoch
            self.draining.discard(claim.shard)

    def check(self, database: PostgresDatabase) -> None:
        """Called first in every writing transaction. Forgets lost shards, and raises `ShardsLost` if there are any."""
        if not self.epochs:
            return
        held: dict[int, int] = dict(
            database.execute(
                "SELECT shard, epoch FROM shard_lease WHERE owner=%s ORDER BY shard FOR SHARE", (self.owner,)
            )
        )
        self.lost(shard for shard, epoch in self.epochs.items() if held.get(shard) != epoch)

    def lost(self, shards: Iterable[int]) -> None:
        """Forget these, and raise `ShardsLost` if there are any."""
        gone = frozenset(shards)
        self.forget(gone)
        if gone:
            raise ShardsLost(
                f"another worker has taken over {len(gone)} of {SHARDS} shards from {self.owner}",
                shards=gone,
                hint="the lease ran out: was this machine paused, or the database unreachable?",
            )

    def forget(self, shards: Iterable[int]) -> None:
        for shard in shards:
            self.epochs.pop(shard, None)
            self.draining.discard(shard)

    def release(self, database: PostgresDatabase, shards: Iterable[int]) -> None:
        """Give back shards without visits in progress, whose clocks are all written; inside a transaction. They mean
        nothing to others if this machine's clock is wrong."""
        given = list(shards)
        database.write(
            "UPDATE shard_lease SET owner='', clean=%s WHERE owner=%s AND shard = ANY(%s::smallint[])",
            (not self.clock_error, self.owner, given),
        )

    def end_former(self, database: PostgresDatabase, worker: str) -> None:
        """End the leases of all other owners named `worker:…`, which are known to be dead."""
        database.write(
            "DELETE FROM worker WHERE starts_with(name, %s) AND name <> %s",
            (f"{worker}:", self.owner),
        )

    def leave(self, database: PostgresDatabase) -> None:
        """The worker ends: the others see at once that there is one worker less."""
        database.write("UPDATE shard_lease SET wanted_by='' WHERE wanted_by=%s", (self.owner,))
        database.write("DELETE FROM worker WHERE name=%s", (self.owner,))
        database.write("DELETE FROM leased WHERE worker=%s", (self.owner,))
