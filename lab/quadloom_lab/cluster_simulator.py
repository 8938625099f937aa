"""A thousand workers in one process, over the real leases, the real fencing and the real outbox on a PostgreSQL server.

    python -m quadloom_lab.cluster_simulator postgresql://user@host:port/database [workers] [rounds]

Nothing is crawled. Each simulated worker has the `ShardLeases` and the `LinkOutbox` that a real one has, and does in
each round what a real one does between two heartbeats: renew its lease, take or give back shards up to its fair share,
check its epochs in a transaction, send links to shards of others, and receive those that were sent to its own. Between
rounds some workers die without a word and others join. In the end it must hold that

* no shard had two owners whose transactions were accepted in the same round;
* every link that was sent was received exactly once, or still waits;
* shards of dead workers were taken over, and the living own all of them.

The figures are statements and CPU-ms of the client and of the server for each heartbeat: what a cluster costs before it
has read a page. All workers share one connection here, so the server's cost of a thousand connections is not in it.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec

from quadloom.errors import ShardsLost
from quadloom.model.link import Discovery
from quadloom.model.url import fingerprint
from quadloom.model.wire import decode
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.shard_leases import ShardLeases
from quadloom.stores.postgres.shards import LinkBatch, LinkOutbox
from quadloom.stores.shards import SHARDS

_LEASE = 3600.0  # seconds: the simulation ends the leases of dead workers itself, since a round takes no real time
_LINKS = 5  # links that a worker with shards finds in a round for the shards of others
_RECEIVED = 50


class SimulationReport(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, and what a heartbeat cost."""

    workers: int
    rounds: int
    heartbeats: int
    owners: int  # living workers that own a shard in the end
    most_shards: int
    owned: int  # shards with a living owner in the end
    died: int
    refused: int  # transactions of workers that had lost a shard
    conflicts: int  # shards with two accepted owners in one round
    sent: int
    received: int
    twice: int
    waiting: int
    statements: float  # for each heartbeat
    client_ms: float  # CPU
    server_ms: float


class _SimulatedWorker:
    def __init__(self, number: int, database: PostgresDatabase) -> None:
        self.name = f"simulated-{number}:1"
        self.leases = ShardLeases(self.name, duration=_LEASE)
        self.outbox = LinkOutbox(database, self.leases)
        self._database = database

    def beat(self, fair: int) -> None:
        """Renew, then give back what is too much or take what is missing."""
        lost = self.leases.renew(self._database)
        self.leases.forget(lost)
        surplus = len(self.leases.owned) - fair
        with self._database.transaction():
            if surplus > 0:
                given = sorted(self.leases.owned)[:surplus]
                self.leases.release(self._database, given)
                claims = []
            else:
                given = []
                claims = self.leases.claim(self._database, -surplus) if surplus else []
        self.leases.forget(given)
        self.leases.took(claims)

    def write(self) -> frozenset[int]:
        """A transaction as every settlement is one. Returns the shards for which it was accepted."""
        with self._database.transaction():
            self.leases.check(self._database)
            return frozenset(self.leases.owned)

    def send(self, links: list[Discovery]) -> None:
        with self._database.transaction():
            self.leases.check(self._database)
            self.outbox.send(links, urgent=False)

    def receive(self) -> list[Discovery]:
        waiting = self.outbox.waiting(_RECEIVED) if self.leases.owned else []
        if not waiting:
            return []
        with self._database.transaction():
            return [item for batch in self.outbox.receive(waiting) for item in batch.discoveries]


class ClusterSimulation:
    """`churn`: how many workers die and join in each round."""

    def __init__(self, database: PostgresDatabase, workers: int, *, churn: int, seed: int = 1) -> None:
        self._database = database
        self._chance = random.Random(seed)
        self._churn = churn
        self._made = 0
        self._links = 0
        self.workers = [self._new() for _ in range(workers)]
        self.dead: list[_SimulatedWorker] = []
        self.refused = self.conflicts = self.heartbeats = 0
        self.received: Counter[int] = Counter()

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            self._round()
            for _ in range(self._churn):
                self._kill(self.workers.pop(self._chance.randrange(len(self.workers))))
                self.workers.append(self._new())
        self._round()

    def _round(self) -> None:
        self._chance.shuffle(self.workers)
        fair = -(-SHARDS // len(self.workers))
        accepted: Counter[int] = Counter()
        for worker in self.workers:
            worker.beat(fair)
            self.heartbeats += 1
        for worker in (*self.workers, *self.dead):  # the dead wake up once and try to write
            try:
                accepted.update(worker.write())
                if worker not in self.dead and worker.leases.owned:
                    worker.send(self._found())
            except ShardsLost:
                self.refused += 1
        self.dead.clear()
        self.conflicts += sum(owners > 1 for owners in accepted.values())
        for worker in self.workers:
            self.received.update(link.fingerprint for link in worker.receive())

    def _new(self) -> _SimulatedWorker:
        self._made += 1
        return _SimulatedWorker(self._made, self._database)

    def _kill(self, worker: _SimulatedWorker) -> None:
        """Its lease runs out at once."""
        self._database.write("UPDATE worker SET until = '-infinity' WHERE name=%s", (worker.name,))
        self.dead.append(worker)

    def _found(self) -> list[Discovery]:
        links = []
        for _ in range(_LINKS):
            self._links += 1
            host = f"h{self._chance.randrange(100_000)}.example"
            url = f"http://{host}/{self._links}"
            links.append(Discovery(url, url, host, fingerprint(url), 1, "plain", 0))
        return links

    @property
    def sent(self) -> int:
        return self._links


def simulate_cluster(
    database: PostgresDatabase, *, workers: int = 1000, rounds: int = 10, churn: int = 20, seed: int = 1
) -> SimulationReport:
    """Run it, on the tables of an open warehouse on which no worker runs."""
    statements = _counted(database)
    simulation = ClusterSimulation(database, workers, churn=churn, seed=seed)
    client, server = time.process_time(), _server_seconds(database)
    simulation.run(rounds)
    client, server = time.process_time() - client, _server_seconds(database) - server
    owners = [worker for worker in simulation.workers if worker.leases.owned]
    beats = simulation.heartbeats
    return SimulationReport(
        workers=workers,
        rounds=rounds,
        heartbeats=beats,
        owners=len(owners),
        most_shards=max(len(worker.leases.owned) for worker in owners),
        owned=sum(len(worker.leases.owned) for worker in owners),
        died=churn * rounds,
        refused=simulation.refused,
        conflicts=simulation.conflicts,
        sent=simulation.sent,
        received=simulation.received.total(),
        twice=sum(times > 1 for times in simulation.received.values()),
        waiting=_links_in(database),
        statements=round(statements.total() / beats, 2),
        client_ms=round(client * 1000 / beats, 3),
        server_ms=round(server * 1000 / beats, 3),
    )


def _links_in(database: PostgresDatabase) -> int:
    batches = database.execute("SELECT batch FROM link_outbox")
    return sum(len(decode(batch, LinkBatch).discoveries) for (batch,) in batches)


def _counted(database: PostgresDatabase) -> Counter[str]:
    """Count the statements that pass through."""
    counts: Counter[str] = Counter()
    execute, write = database.execute, database.write

    def counted_execute(statement: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        counts["execute"] += 1
        return execute(statement, values)

    def counted_write(statement: str, values: tuple[object, ...] = ()) -> None:
        counts["write"] += 1
        write(statement, values)

    database.execute, database.write = counted_execute, counted_write  # type: ignore[method-assign,assignment]
    return counts


def _server_seconds(database: PostgresDatabase) -> float:
    """CPU of the server's process for this connection; 0 if the server is on another machine."""
    (pid,) = database.execute("SELECT pg_backend_pid()")[0]
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(url: str, workers: int, rounds: int) -> None:
    report = simulate_cluster(PostgresDatabase.open(url), workers=workers, rounds=rounds, churn=max(1, workers // 50))
    sys.stdout.write("".join(f"{name}\t{value}\n" for name, value in msgspec.structs.asdict(report).items()))


if __name__ == "__main__":
    main(sys.argv[1], *[int(given) for given in (*sys.argv[2:], "1000", "10")[:2]])
