"""Which backend serves which seam, by the scheme of its URL in `[stores]`. The only place that names backends.

A new backend is a line here and a class that passes the seam's contract suite: the pipeline does not know which one it
has. Nothing outside of `quadloom.stores` imports an engine. An engine is imported when it is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from quadloom.errors import SettingsError
from quadloom.settings import Settings
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.cluster import Cluster, ServerReport
from quadloom.stores.protocols.quads import QuadStore, RefilledQuadStore
from quadloom.stores.protocols.queries import QuerySource
from quadloom.stores.protocols.state import DamagedState, State
from quadloom.stores.protocols.text import FreshTextShards, TextIndex, TextWriter
from quadloom.stores.shards import worker_name

if TYPE_CHECKING:
    from quadloom.stores.archive.s3_bucket import S3Bucket
    from quadloom.stores.text_queries.synonyms import Synonyms

DATABASE = "quadloom.db"  # the file of an embedded state
_SERVER_BACKUPS = "servers have backups of their own; docs/howto/back-up.md says what to copy, and in which order"


def _warc(folder: Path, settings: Settings, writable: bool) -> Archive:
    from quadloom.stores.archive.warc import WarcArchive

    shared = settings.stores.archive.partition(":")[2].removeprefix("//")
    if shared:
        from quadloom.stores.archive.shared import SharedWarcArchive

        writer = worker_name(folder.parent) if writable else ""
        return SharedWarcArchive(Path(shared), writer, file_bytes=settings.stores.archive_file_bytes)
    further = (Path(name) for name in settings.stores.directories)
    return WarcArchive([folder, *further], file_bytes=settings.stores.archive_file_bytes, read_only=not writable)


def _s3(folder: Path, settings: Settings, writable: bool) -> Archive:
    from quadloom.stores.archive.s3 import S3Archive
    from quadloom.stores.archive.s3_bucket import S3Bucket, address_of

    return S3Archive(
        S3Bucket(address_of(settings)),
        folder,
        writer=settings.stores.archive_writer,
        file_bytes=settings.stores.archive_file_bytes,
        upload_seconds=settings.stores.archive_upload_seconds,
        shared=settings.stores.is_shared,
        read_only=not writable,
    )


def _oxigraph(folder: Path, settings: Settings, writable: bool) -> QuadStore:
    from quadloom.stores.quads.oxigraph import OxigraphQuads

    # A machine that only reads what others crawl has no quads of its own.
    return OxigraphQuads(folder, read_only=not writable, may_be_missing=settings.stores.is_shared)


def _sparql(_folder: Path, settings: Settings, writable: bool) -> QuadStore:
    from quadloom.stores.quads.sharded import ShardedQuads
    from quadloom.stores.quads.sparql import SparqlQuads
    from quadloom.stores.quads.sparql_client import servers_of

    servers = servers_of(settings)
    if len(servers) > 1:
        return ShardedQuads(servers, read_only=not writable)
    return SparqlQuads(servers[0], read_only=not writable)


def _tantivy(folder: Path, settings: Settings, writable: bool) -> TextIndex:
    from quadloom.stores.tantivy.index import TantivyText

    return TantivyText(folder, read_only=not writable, synonyms=_synonyms(settings))


def _sharded_text(_folder: Path, settings: Settings, writable: bool) -> TextIndex:
    from quadloom.stores.tantivy.sharded import ShardedText

    return ShardedText(_shared_text(settings), read_only=not writable, synonyms=_synonyms(settings))


def shared_text(settings: Settings) -> Path | None:
    """The directory of text indexes by shard; None = the text is elsewhere."""
    scheme = _scheme("text", settings.stores.text, tuple(TEXT_INDEXES))
    return _shared_text(settings) if scheme == "tantivy+shards" else None


def _shared_text(settings: Settings) -> Path:
    return Path(settings.stores.text.partition(":")[2].removeprefix("//"))


def _postgres_text(_folder: Path, settings: Settings, writable: bool) -> TextIndex:
    from quadloom.stores.postgres.database import PostgresDatabase
    from quadloom.stores.postgres.text import PostgresText

    address = settings.stores.frontier
    database = PostgresDatabase.open(address) if writable else PostgresDatabase.read_only(address)
    return PostgresText(database, _synonyms(settings))


def _embedded(path: Path, settings: Settings, writable: bool, fetches: bool) -> State:
    from quadloom.stores.sqlite.state import EmbeddedState

    return EmbeddedState(path / DATABASE, settings, writable, fetches)


def _cluster(path: Path, settings: Settings, writable: bool, fetches: bool) -> State:
    from quadloom.stores.postgres.state import ClusterState

    return ClusterState(path, settings, writable, fetches)


def _synonyms(settings: Settings) -> Synonyms:
    from quadloom.stores.text_queries.synonyms import NO_SYNONYMS, Synonyms

    return Synonyms.read(Path(settings.index.synonyms)) if settings.index.synonyms else NO_SYNONYMS


ARCHIVES: dict[str, Callable[[Path, Settings, bool], Archive]] = {"warc": _warc, "s3": _s3}
QUAD_STORES: dict[str, Callable[[Path, Settings, bool], QuadStore]] = {
    "oxigraph": _oxigraph,
    "sparql+http": _sparql,
    "sparql+https": _sparql,
}
TEXT_INDEXES: dict[str, Callable[[Path, Settings, bool], TextIndex]] = {
    "tantivy": _tantivy,
    "embedded": _tantivy,
    "tantivy+shards": _sharded_text,
    "postgresql": _postgres_text,
}
_FOLDERS = ("oxigraph", "tantivy", "embedded")  # may name their folder, see `Places` in `quadloom.stores.opened`
REMOTE = frozenset(("s3", "sparql+http", "sparql+https", "tantivy+shards"))  # take an address
# Frontier and catalog share a database, so that a settlement is one transaction.
STATES: dict[str, Callable[[Path, Settings, bool, bool], State]] = {"sqlite": _embedded, "postgresql": _cluster}


def open_archive(folder: Path, settings: Settings, *, writable: bool) -> Archive:
    return ARCHIVES[_scheme("archive", settings.stores.archive, tuple(ARCHIVES))](folder, settings, writable)


def open_warc_files(folder: Path) -> Archive:
    """A folder of WARC files, for reading."""
    from quadloom.stores.archive.warc import WarcArchive

    return WarcArchive([folder], read_only=True)


def archive_files(path: Path, settings: Settings) -> dict[str, Path]:
    """The files of a warehouse's archive by the names that references have. Raises `SettingsError` if they are not on
    disks of this machine."""
    from quadloom.stores.archive.warc import WarcArchive

    archive = open_archive(path / "archive", settings, writable=False)
    if not isinstance(archive, WarcArchive):
        raise SettingsError(f"the archive is not in the warehouse: {settings.stores.archive}", hint=_SERVER_BACKUPS)
    return archive.paths()


def open_bucket(address: str, settings: Settings) -> S3Bucket:
    """A prefix of a bucket, with the endpoint and the region of `[stores]`."""
    from quadloom.stores.archive.s3_bucket import S3Bucket, address_of

    stores = msgspec.structs.replace(settings.stores, archive=address)
    return S3Bucket(address_of(msgspec.structs.replace(settings, stores=stores)))


def copy_database(path: Path, settings: Settings, target: Path) -> None:
    """Copy the database of a warehouse as one consistent state, also while a process writes to it. Raises
    `SettingsError` if it is on a server."""
    from quadloom.stores.sqlite.database import copy_file

    if settings.stores.is_shared:
        raise SettingsError("the database is on a server", hint=_SERVER_BACKUPS)
    copy_file(path / DATABASE, target)


def open_quads(folder: Path, settings: Settings, *, writable: bool) -> QuadStore:
    return QUAD_STORES[_scheme("quads", settings.stores.quads, tuple(QUAD_STORES))](folder, settings, writable)


@contextmanager
def fresh_quads(folder: Path, settings: Settings) -> Iterator[QuadStore]:
    """A store to fill from nothing: a new one in `folder`, with which the caller then replaces the old one; or the
    server's, from which pages that were not written again are removed in the end."""
    if _scheme("quads", settings.stores.quads, tuple(QUAD_STORES)) in REMOTE:
        with closing(refilled_quads(settings)) as refilled:
            yield refilled
            refilled.finish()
    else:
        with closing(open_quads(folder, settings, writable=True)) as quads:
            yield quads


def refilled_quads(settings: Settings) -> RefilledQuadStore:
    """The quads of servers, for a rebuild in place; many processes may write different pages. The caller closes it, and
    calls `finish` when all of them are done."""
    from quadloom.stores.quads.sharded import RefilledShards
    from quadloom.stores.quads.sparql import RefilledQuads
    from quadloom.stores.quads.sparql_client import servers_of

    servers = servers_of(settings)
    return RefilledShards(servers) if len(servers) > 1 else RefilledQuads(servers[0])


def query_source(folder: Path, settings: Settings) -> QuerySource:
    """What evaluates user queries: the files of an embedded store, or the servers."""
    if _scheme("quads", settings.stores.quads, tuple(QUAD_STORES)) not in REMOTE:
        return QuerySource(str(folder))
    from quadloom.stores.quads.sparql_client import servers_of

    return QuerySource(servers=servers_of(settings))


def open_text(folder: Path, settings: Settings, *, writable: bool) -> TextIndex:
    return TEXT_INDEXES[_scheme("text", settings.stores.text, tuple(TEXT_INDEXES))](folder, settings, writable)


@contextmanager
def fresh_text(folder: Path, settings: Settings) -> Iterator[TextWriter]:
    """An index to fill from nothing, as with `fresh_quads`. Documents in the database are replaced one by one."""
    directory = shared_text(settings)
    if directory is not None:
        with closing(fresh_text_shards(directory)) as sharded:
            yield sharded
            sharded.publish()
    else:
        with closing(open_text(folder, settings, writable=True)) as text:
            yield text


def fresh_text_shards(directory: Path) -> FreshTextShards:
    """The text indexes of shards, to fill from nothing; many processes may fill different shards."""
    from quadloom.stores.tantivy.sharded import ShardedText

    return ShardedText(directory, fresh=True)


def local_indexes(settings: Settings) -> tuple[str, ...]:
    """Which of the two indexes are folders of the warehouse, not on a server."""
    quads = _scheme("quads", settings.stores.quads, tuple(QUAD_STORES))
    text = _scheme("text", settings.stores.text, tuple(TEXT_INDEXES))
    shared = text == "postgresql" or text in REMOTE
    return (*(("quads",) if quads not in REMOTE else ()), *(("text",) if not shared else ()))


def exists(path: Path, settings: Settings) -> bool:
    """Whether there may be a warehouse. For a server the answer is always yes: only opening it could tell."""
    return settings.stores.is_shared or (path / DATABASE).exists()


def open_state(path: Path, settings: Settings, *, writable: bool, fetches: bool = True) -> State:
    """Frontier, catalog and what shares their database. `fetches`: this process hands out URLs to visit; otherwise it
    runs other phases. Raises `SettingsError` if frontier and catalog would be in two databases."""
    stores = settings.stores
    scheme = _scheme("frontier", stores.frontier, tuple(STATES))
    if stores.catalog not in (stores.frontier, f"{scheme}:"):
        raise SettingsError(
            "stores.catalog is another database than stores.frontier", hint=f'write stores.catalog = "{scheme}:"'
        )
    return STATES[scheme](path, settings, writable, fetches)


def open_damaged(file: Path) -> DamagedState:
    """What can still be read from the database file of an embedded state."""
    from quadloom.stores.sqlite.salvage import DamagedDatabase

    return DamagedDatabase(file)


def open_cluster(settings: Settings, *, writable: bool = False) -> Cluster:
    """The workers on the database of the settings. `writable`: to send requests. Raises `QuadloomError` if there is no
    warehouse yet, or no server can be reached."""
    from quadloom.stores.postgres.cluster import PostgresCluster

    return PostgresCluster(settings, writable=writable)


def shared_settings(settings: Settings) -> dict[str, object] | None:
    """The settings that all machines of a cluster share; None = there are none, or the server cannot be asked now."""
    from quadloom.stores.postgres.state import shared_settings

    return shared_settings(settings)


def share_settings(settings: Settings, tree: dict[str, object] | None) -> None:
    """Write the settings that all machines share; None removes them. Creates the tables if there are none."""
    from quadloom.stores.postgres.state import share_settings

    share_settings(settings, tree)


def describe_server(settings: Settings) -> ServerReport:
    """The database server of the settings. Raises `QuadloomError` if it does not answer within some seconds."""
    from quadloom.stores.postgres.state import described

    return described(settings)


def probe_quads(settings: Settings) -> None:
    """Write a statement on each SPARQL server, ask for it and remove it. Raises `StoreError` with the first thing that
    does not work."""
    from quadloom.stores.quads.sparql_client import SparqlClient, servers_of

    for server in servers_of(settings):
        with closing(SparqlClient(server, attempts=1)) as client:
            client.probe()


def probe_archive(settings: Settings) -> None:
    """Write an object into the bucket, read a range of it, list it and remove it. Raises `StoreError` likewise."""
    from quadloom.stores.archive.s3_bucket import S3Bucket, address_of

    S3Bucket(address_of(settings), patient=False).probe()


def _scheme(seam: str, url: str, known: tuple[str, ...]) -> str:
    scheme, colon, rest = url.partition(":")
    if scheme not in known or not colon:
        names = ", ".join(f"{name}:" for name in known)
        raise SettingsError(f"stores.{seam} = {scheme!r} is not a backend of this version", hint=f"available: {names}")
    needs, may = scheme in REMOTE, scheme in ("postgresql", "warc", *_FOLDERS)
    if (seam, scheme) == ("frontier", "postgresql"):
        needs = True
    if needs and (not rest.startswith("//") or not rest[2:].strip("/")):
        raise SettingsError(f"stores.{seam}: {scheme}: has no address", hint=f"write {scheme}://…")
    if rest and not needs and not (may and rest.startswith("//")):
        raise SettingsError(f"stores.{seam}: {scheme}: takes no address", hint=f"write {scheme}:")
    return scheme
