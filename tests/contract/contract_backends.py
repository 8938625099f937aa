"""Backends under contract. A new backend is one class with the few methods below and one line in its table.

Every suite takes its backend from the fixture of the same name; nothing in a suite knows which one it has.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Protocol

from postgres_server import postgres
from quadloom.model.event import Event
from quadloom.settings import Settings, StoreSettings
from quadloom.stores.archive.s3 import S3Archive
from quadloom.stores.archive.s3_bucket import S3Bucket
from quadloom.stores.archive.shared import SharedWarcArchive
from quadloom.stores.archive.warc import WarcArchive
from quadloom.stores.backends import open_cluster
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.memory_bus import MemoryBus
from quadloom.stores.postgres.bus import PostgresBus
from quadloom.stores.postgres.catalog import PostgresCatalog, PostgresOutbox
from quadloom.stores.postgres.cluster import PostgresHeartbeat
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.frontier import PostgresFrontier
from quadloom.stores.postgres.shard_leases import ShardLeases
from quadloom.stores.postgres.shards import PostgresShards
from quadloom.stores.postgres.text import PostgresText
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.cluster import Cluster, ShardHeartbeat
from quadloom.stores.protocols.frontier import Frontier, ScopeRules
from quadloom.stores.protocols.outbox import Outbox
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.queries import SparqlServer
from quadloom.stores.protocols.text import TextIndex
from quadloom.stores.quads.oxigraph import OxigraphQuads
from quadloom.stores.quads.sharded import ShardedQuads
from quadloom.stores.quads.sparql import SparqlQuads
from quadloom.stores.quads.sparql_client import SparqlClient
from quadloom.stores.shards import SHARDS
from quadloom.stores.sqlite.catalog import SqliteCatalog, SqliteOutbox
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier import SqliteFrontier
from quadloom.stores.sqlite.schema import SCHEMA
from quadloom.stores.tantivy.index import TantivyText
from quadloom.stores.tantivy.sharded import ShardedText
from quadloom_lab.memory.archive import MemoryArchive
from quadloom_lab.memory.catalog import MemoryCatalog
from quadloom_lab.memory.frontier import MemoryFrontier
from quadloom_lab.memory.outbox import MemoryOutbox
from quadloom_lab.memory.quads import MemoryQuads
from quadloom_lab.memory.text import MemoryText
from servers import new_bucket, shared_sparql_server


class State(Protocol):
    """A frontier, its catalog and its outbox, and the end and new start of their process."""

    frontier: Frontier
    catalog: Catalog
    outbox: Outbox

    def open(self, policy: FrontierPolicy, now: float, scope: ScopeRules | None = None) -> Frontier: ...

    def crash(self, now: float) -> Frontier:
        """As after kill -9 and a new start: only what was durable is left."""
        ...

    def close(self) -> None: ...


class MemoryState:
    frontier: MemoryFrontier

    def __init__(self, directory: Path) -> None:
        self.open(FrontierPolicy(delay=0.0, ip_delay=0.0), 0.0)

    def open(self, policy: FrontierPolicy, now: float, scope: ScopeRules | None = None) -> MemoryFrontier:
        self.frontier = MemoryFrontier(policy, now=now, scope=scope)
        self.catalog = MemoryCatalog(self.frontier)
        self.outbox: Outbox = MemoryOutbox(self.catalog)
        return self.frontier

    def crash(self, now: float) -> MemoryFrontier:
        self.frontier.reopen(now)
        return self.frontier

    def close(self) -> None:
        self.frontier.close()


class SqliteState:
    frontier: SqliteFrontier

    def __init__(self, directory: Path) -> None:
        self._path = directory / "quadloom.db"
        self._database: SqliteDatabase | None = None
        self.open(FrontierPolicy(delay=0.0, ip_delay=0.0), 0.0)

    def open(self, policy: FrontierPolicy, now: float, scope: ScopeRules | None = None) -> SqliteFrontier:
        if self._database is not None:
            self._database.close()
        self._policy, self._scope = policy, scope
        self._database = SqliteDatabase.open(self._path, SCHEMA)
        self.frontier = SqliteFrontier(self._database, policy, now=now, scope=scope)
        self.catalog = SqliteCatalog(self._database)
        self.outbox: Outbox = SqliteOutbox(self._database)
        return self.frontier

    def crash(self, now: float) -> SqliteFrontier:
        return self.open(self._policy, now, self._scope)  # the frontier is not closed: no clean mark is written

    def close(self) -> None:
        assert self._database is not None
        self._database.close()


class PostgresState:
    """A worker that owns all shards. A crash ends its lease at once instead of after its time."""

    frontier: PostgresFrontier

    def __init__(self, directory: Path) -> None:
        self._url = postgres().url()
        self._database: PostgresDatabase | None = None
        self._starts = count(1)
        self.open(FrontierPolicy(delay=0.0, ip_delay=0.0), 0.0)

    def open(self, policy: FrontierPolicy, now: float, scope: ScopeRules | None = None) -> PostgresFrontier:
        if self._database is not None:
            self._database.write("UPDATE worker SET until='-infinity'")
            self._database.close()
        self._policy, self._scope = policy, scope
        self._database = PostgresDatabase.open(self._url)
        leases = ShardLeases(f"worker-{next(self._starts)}")
        self.catalog = PostgresCatalog(self._database)
        shards = PostgresShards(self._url, self._database, leases, self.catalog)
        self.frontier = PostgresFrontier(self._database, policy, shards, now=now, scope=scope)
        leases.renew(self._database)
        assert len(shards.take(SHARDS, now)) == SHARDS
        self.outbox = PostgresOutbox(self._database)
        return self.frontier

    def crash(self, now: float) -> PostgresFrontier:
        return self.open(self._policy, now, self._scope)

    def close(self) -> None:
        assert self._database is not None
        self._database.close()


STATES = {
    "memory": MemoryState,
    "sqlite": SqliteState,
    "postgresql": PostgresState,
}


class WarcFiles:
    """WARC files in two directories that take turns, small enough to roll over within a test."""

    def __init__(self, directory: Path) -> None:
        self.directories = [directory / "disk1", directory / "disk2"]
        self.archive: Archive = self.open()

    def open(self) -> Archive:
        self.archive = WarcArchive(self.directories, file_bytes=20_000)
        return self.archive


class MemoryFiles:
    def __init__(self, directory: Path) -> None:
        self.archive: Archive = MemoryArchive()

    def open(self) -> Archive:
        return self.archive


class SharedWarcFiles:
    """One worker's series, beside that of another."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "shared"
        SharedWarcArchive(self._directory, "other").close()
        self.archive: Archive = self.open()

    def open(self) -> Archive:
        self.archive = SharedWarcArchive(self._directory, "this", file_bytes=20_000)
        return self.archive


class S3Files:
    """A bucket of its own for each test; files are small enough to be uploaded within it."""

    def __init__(self, directory: Path) -> None:
        self._address = new_bucket()
        self._folder = directory / "spool"
        self.archive: Archive = self.open()

    def open(self) -> Archive:
        self.archive = S3Archive(S3Bucket(self._address), self._folder, file_bytes=20_000)
        return self.archive


class SharedS3Files(S3Files):
    """As on many machines: what is synced is in the bucket, in the tail of its file."""

    def open(self) -> Archive:
        self.archive = S3Archive(S3Bucket(self._address), self._folder, file_bytes=20_000, shared=True)
        return self.archive


Files = MemoryFiles | WarcFiles | SharedWarcFiles | S3Files

ARCHIVES = {
    "memory": MemoryFiles,
    "warc": WarcFiles,
    "shared-warc": SharedWarcFiles,
    "s3": S3Files,
    "shared-s3": SharedS3Files,
}

BUSES: dict[str, Callable[[], MemoryBus | PostgresBus]] = {
    "memory": MemoryBus,
    "postgresql": lambda: PostgresBus(postgres().url()),
}


class Machines(Protocol):
    """A database that several workers share, and what happens on their machines."""

    cluster: Cluster

    def worker(self, name: str) -> ShardHeartbeat: ...

    def kill(self, name: str) -> None:
        """The worker says nothing more, and its lease has run out."""
        ...

    def publish(self, event: Event) -> None:
        """On return a worker has written this event."""
        ...

    def open_empty(self) -> Cluster:
        """A database on which no worker ever ran."""
        ...

    def close(self) -> None: ...


class PostgresMachines:
    def __init__(self) -> None:
        self._url = postgres().url()
        self._database = PostgresDatabase.open(self._url)
        self._bus = PostgresBus(self._url)
        self._heartbeats: list[PostgresHeartbeat] = []
        self.cluster: Cluster = open_cluster(_shared(self._url), writable=True)

    def worker(self, name: str) -> PostgresHeartbeat:
        self._heartbeats.append(PostgresHeartbeat(self._url, ShardLeases(f"{name}:1")))
        return self._heartbeats[-1]

    def kill(self, name: str) -> None:
        self._database.write("UPDATE worker SET until='-infinity' WHERE name=%s", (f"{name}:1",))

    def publish(self, event: Event) -> None:
        self._bus.publish([event])
        self._bus.recent()  # writes what waits

    def open_empty(self) -> Cluster:
        return open_cluster(_shared(postgres().url()), writable=True)

    def close(self) -> None:
        for heartbeat in self._heartbeats:
            heartbeat.close()
        self._bus.close()
        self.cluster.close()
        self._database.close()


def _shared(url: str) -> Settings:
    return Settings(stores=StoreSettings(frontier=url, catalog="postgresql:"))


CLUSTERS: dict[str, Callable[[], Machines]] = {"postgresql": PostgresMachines}


class OxigraphPlace:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "quads"
        self.quads: QuadStore = OxigraphQuads(self._path)

    def reopen(self) -> QuadStore:
        self.quads.close()
        self.quads = OxigraphQuads(self._path)
        return self.quads


class MemoryPlace:
    def __init__(self, directory: Path) -> None:
        self.quads: QuadStore = MemoryQuads()

    def reopen(self) -> QuadStore:
        return self.quads


class SparqlPlace:
    """A server whose default graph is empty unless asked, read by queries alone."""

    def __init__(self, directory: Path) -> None:
        url = self._start()
        self._server = self._address(url)
        with closing(SparqlClient(self._server)) as client:
            client.update("DROP ALL")
        self.quads: QuadStore = SparqlQuads(self._server)

    def reopen(self) -> QuadStore:
        self.quads.close()
        self.quads = SparqlQuads(self._server)
        return self.quads

    def _start(self) -> str:
        return shared_sparql_server().url

    def _address(self, url: str) -> SparqlServer:
        return SparqlServer(query=f"{url}/query", update=f"{url}/update", union="union-default-graph=true")


class UnionSparqlPlace(SparqlPlace):
    """A server whose default graph is always the union, graphs read by the Graph Store Protocol."""

    def _start(self) -> str:
        return shared_sparql_server("--union-default-graph").url

    def _address(self, url: str) -> SparqlServer:
        return SparqlServer(query=f"{url}/query", update=f"{url}/update", graph_store=f"{url}/store")


class ShardedPlace:
    """Three servers, each with a part of the pages."""

    OPTIONS = ((), ("--union-default-graph",), ("--cors",))  # tests share servers by their options

    def __init__(self, directory: Path) -> None:
        self._servers = []
        for options in self.OPTIONS:
            url = shared_sparql_server(*options).url
            server = SparqlServer(query=f"{url}/query", update=f"{url}/update", union="union-default-graph=true")
            with closing(SparqlClient(server)) as client:
                client.update("DROP ALL")
            self._servers.append(server)
        self.quads: QuadStore = ShardedQuads(self._servers)

    def reopen(self) -> QuadStore:
        self.quads.close()
        self.quads = ShardedQuads(self._servers)
        return self.quads


Place = MemoryPlace | OxigraphPlace | SparqlPlace | ShardedPlace

QUAD_STORES = {
    "memory": MemoryPlace,
    "oxigraph": OxigraphPlace,
    "sparql": SparqlPlace,
    "sparql-union": UnionSparqlPlace,
    "sparql-shards": ShardedPlace,
}


class TantivyShelf:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "text"
        self.text: TextIndex = TantivyText(self._path)

    def reopen(self) -> TextIndex:
        self.text.close()
        self.text = TantivyText(self._path)
        return self.text


class ShardedShelf:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "shared"
        self.text: TextIndex = ShardedText(self._path)

    def reopen(self) -> TextIndex:
        self.text.close()
        self.text = ShardedText(self._path)
        return self.text


class MemoryShelf:
    def __init__(self, directory: Path) -> None:
        self.text: TextIndex = MemoryText()

    def reopen(self) -> TextIndex:
        self.text.close()
        return self.text


class PostgresShelf:
    def __init__(self, directory: Path) -> None:
        self._url = postgres().url()
        self.text: TextIndex = PostgresText(PostgresDatabase.open(self._url))

    def reopen(self) -> TextIndex:
        self.text.close()
        self.text = PostgresText(PostgresDatabase.open(self._url))
        return self.text


Shelf = MemoryShelf | TantivyShelf | ShardedShelf | PostgresShelf

TEXT_INDEXES = {
    "memory": MemoryShelf,
    "tantivy": TantivyShelf,
    "tantivy+shards": ShardedShelf,
    "postgresql": PostgresShelf,
}
