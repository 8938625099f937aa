"""Cost of leasing and settling on PostgreSQL by the number of known URLs, all of them queued.

Two or more warehouses on one server, of 4,000 hosts each, are filled by COPY and asked by turns: batches of 100 pages
with 25 different links each, 15 of them known. The work must be the same for all sizes: twice as many hosts as a worker
has in memory, as many different URLs of a host as a page links to, and a short memory of fingerprints, which would know
all URLs of a small warehouse. CPU of the client and of its backend, the median of batches;
10 million URLs take about five minutes and 6 GB.
The server has buffers as one for such a database would: with the default of 128 MB it copies pages all the time.
Run: PYTHONPATH=src:tests:tests/contract python tests/bench/bench_postgres_growth.py [100000 10000000]
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from statistics import median

import contract_backends
import psycopg
from contract_backends import PostgresState
from contract_records import found, settlement

from postgres_server import start_postgres
from quadloom.model.link import Discovery
from quadloom.model.url import fingerprint
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.frontier.recent_urls import RecentFingerprints
from quadloom.stores.postgres.frontier_tables import FrontierCounters, PostgresHosts
from quadloom.stores.shards import shard_of

PAGES, LINKS, NEW, HOSTS = 100, 25, 10, 4000
POLICY = FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=1000)
_CHUNK = 100_000
_WARM = 10


class Filled:
    """A warehouse with so many URLs, and what its work has cost."""

    def __init__(self, urls: int) -> None:
        self.urls = urls
        self.hosts = HOSTS
        self.per_host = urls // HOSTS
        self.state = PostgresState(Path())
        self.state.open(POLICY, 0.0).add([found(self.url(0, 0))], 0.0)
        self._fill()
        self.pages: list[int] = []
        self.lease: list[float] = []
        self.settle: list[float] = []
        self.served_lease: list[float] = []
        self.served_settle: list[float] = []

    def begin(self) -> None:
        """Own all shards for the next minute."""
        self.frontier = self.state.crash(0.0)
        self.frontier._recent = RecentFingerprints(2 * PAGES * LINKS)
        assert self.state._database is not None
        self._backend = int(self.state._database.execute("SELECT pg_backend_pid()")[0][0])

    def url(self, host: int, number: int) -> str:
        return f"http://h{host}-{self.urls}.example/articles/{number}/a-title-of-some-length"

    def batch(self, number: int, chance: random.Random) -> None:
        start, served = time.process_time(), self._served()
        visits = self.frontier.lease(PAGES, float(number))
        self.lease.append(time.process_time() - start)
        self.served_lease.append(self._served() - served)
        self.pages.append(len(visits))
        ended = [
            settlement(visit, discoveries=self._links(chance, visit.host, number, at))
            for at, visit in enumerate(visits)
        ]
        start, served = time.process_time(), self._served()
        with self.state.catalog.transaction():
            self.frontier.settle(ended, float(number))
            self.state.catalog.record(ended, float(number))
        self.settle.append(time.process_time() - start)
        self.served_settle.append(self._served() - served)

    def _links(self, chance: random.Random, host: str, number: int, page: int) -> tuple[Discovery, ...]:
        """Four of five lead to the page's own host."""
        here = int(host[1:].partition("-")[0])
        targets = [here if chance.random() < 0.8 else chance.randrange(self.hosts) for _ in range(LINKS)]
        fresh = [f"http://h{to}-{self.urls}.example/new/{number}/{page}/{k}" for k, to in enumerate(targets[:NEW])]
        numbers = chance.sample(range(self.per_host), LINKS - NEW)
        known = [self.url(to, number) for to, number in zip(targets[NEW:], numbers, strict=True)]
        return tuple(map(found, (*fresh, *known)))

    def _served(self) -> float:
        """CPU seconds of this warehouse's backend."""
        fields = Path(f"/proc/{self._backend}/schedstat").read_text().split()
        return int(fields[0]) / 1e9

    def _fill(self) -> None:
        """All rows like that of the first URL."""
        names = [f"h{host}-{self.urls}.example" for host in range(self.hosts)]
        with psycopg.connect(self.state._url, autocommit=True) as connection, connection.cursor() as cursor:
            (url,) = cursor.execute("SELECT * FROM url").fetchall()
            columns = [column.name for column in cursor.description or ()]
            (queued,) = cursor.execute("SELECT * FROM queue").fetchall()
            cursor.execute("TRUNCATE url, queue")
            cursor.execute("UPDATE host SET queued = %s", (self.per_host,))
            ids = self._host_ids(cursor, names)
            self._copy(cursor, ids, dict(zip(columns, url, strict=True)), queued)
            cursor.execute("UPDATE frontier_count SET number = %s WHERE what = 0", (self.urls,))
            cursor.execute("VACUUM ANALYZE")  # as autovacuum would have: COPY leaves every row to be checked again

    def _host_ids(self, cursor: psycopg.Cursor[tuple[object, ...]], names: list[str]) -> dict[str, int]:
        assert self.state._database is not None
        tables = PostgresHosts(self.state._database, None, FrontierCounters(self.state._database, 0))  # type: ignore[arg-type]
        ids: dict[str, int] = {}
        for start in range(0, len(names), 5000):
            with self.state._database.transaction():
                ids |= tables.host_ids(names[start : start + 5000], create=True)
        cursor.execute("UPDATE host SET queued = %s", (self.per_host,))
        return ids

    def _copy(
        self,
        cursor: psycopg.Cursor[tuple[object, ...]],
        ids: dict[str, int],
        url: dict[str, object],
        queued: tuple[object, ...],
    ) -> None:
        rest = [value for name, value in url.items() if name not in ("host_id", "fingerprint", "href", "key")]
        tail = "\t".join("\\N" if value is None else str(value) for value in rest)
        names = ", ".join(name for name in url if name not in ("host_id", "fingerprint", "href", "key"))
        middle = "\t".join(map(str, queued[1:4]))
        by_shard = sorted(range(self.hosts), key=lambda host: shard_of(f"h{host}-{self.urls}.example"))
        for start in range(0, self.hosts, _CHUNK // self.per_host):
            urls, queue = [], []
            for host in by_shard[start : start + _CHUNK // self.per_host]:
                id_ = ids[f"h{host}-{self.urls}.example"]
                for number in range(self.per_host):
                    href = self.url(host, number)
                    key = fingerprint(href)
                    urls.append(f"{id_}\t{key}\t{href}\t\\N\t{tail}\n")
                    queue.append(f"{id_}\t{middle}\t{key}\n")
            with cursor.copy(f"COPY url(host_id, fingerprint, href, key, {names}) FROM STDIN") as copy:
                copy.write("".join(urls))
            with cursor.copy("COPY queue FROM STDIN") as copy:
                copy.write("".join(queue))


def main(sizes: list[int], batches: int = 70) -> None:
    server = start_postgres(options=("shared_buffers=3GB",))
    contract_backends.postgres = lambda: server
    filled = []
    for size in sizes:
        start = time.perf_counter()
        filled.append(Filled(size))
        print(f"{size} URLs filled in {time.perf_counter() - start:.0f} s", flush=True)
    chance = random.Random(3)
    for one in filled:
        one.begin()
    for number in range(batches):
        for one in filled:
            one.batch(number, chance)
    for one in filled:
        lease, served_lease, settle, served_settle = (
            median(seconds / pages for seconds, pages in zip(values[_WARM:], one.pages[_WARM:], strict=True)) * 1e6
            for values in (one.lease, one.served_lease, one.settle, one.served_settle)
        )
        print(
            f"{one.urls} URLs, CPU-us a page, median of batches, {sum(one.pages[_WARM:])} pages: lease {lease:.0f} "
            f"client, {served_lease:.0f} server; settle {settle:.0f} client, {served_settle:.0f} server"
        )


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [100_000, 10_000_000])
