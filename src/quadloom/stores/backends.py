"""Which backend serves which seam, by the scheme of its URL in `[stores]`. The one table.

A new backend is a line here, a class that passes the seam's contract suite, and nothing else: the pipeline never
learns which one it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from quadloom.errors import SettingsError
from quadloom.settings import Settings
from quadloom.stores.oxigraph_quads import OxigraphQuads
from quadloom.stores.protocols import Archive, QuadStore, TextIndex
from quadloom.stores.s3_archive import S3Archive
from quadloom.stores.s3_bucket import Bucket, address_of
from quadloom.stores.sparql_client import SparqlServer, server_of
from quadloom.stores.sparql_quads import RefilledQuads, SparqlQuads
from quadloom.stores.tantivy_text import TantivyText
from quadloom.stores.warc_archive import WarcArchive


def _warc(folder: Path, settings: Settings, writable: bool) -> Archive:
    further = (Path(name) for name in settings.stores.directories)
    return WarcArchive([folder, *further], file_bytes=settings.stores.archive_file_bytes, read_only=not writable)


def _s3(folder: Path, settings: Settings, writable: bool) -> Archive:
    return S3Archive(
        Bucket(address_of(settings)),
        folder,
        writer=settings.stores.archive_writer,
        file_bytes=settings.stores.archive_file_bytes,
        upload_seconds=settings.stores.archive_upload_seconds,
        read_only=not writable,
    )


def _oxigraph(folder: Path, _settings: Settings, writable: bool) -> QuadStore:
    return OxigraphQuads(folder) if writable else OxigraphQuads.read_only(folder)


def _sparql(_folder: Path, settings: Settings, writable: bool) -> QuadStore:
    return SparqlQuads(server_of(settings), read_only=not writable)


def _tantivy(folder: Path, _settings: Settings, writable: bool) -> TextIndex:
    return TantivyText(folder) if writable else TantivyText.read_only(folder)


ARCHIVES: dict[str, Callable[[Path, Settings, bool], Archive]] = {"warc": _warc, "s3": _s3}
QUAD_STORES: dict[str, Callable[[Path, Settings, bool], QuadStore]] = {
    "oxigraph": _oxigraph, "sparql+http": _sparql, "sparql+https": _sparql,
}  # fmt: skip
TEXT_INDEXES: dict[str, Callable[[Path, Settings, bool], TextIndex]] = {"tantivy": _tantivy, "embedded": _tantivy}
REMOTE = frozenset(("s3", "sparql+http", "sparql+https"))  # take an address
DATABASES = ("sqlite",)  # frontier and catalog share one, so that a settlement is one transaction


def open_archive(folder: Path, settings: Settings, *, writable: bool) -> Archive:
    return ARCHIVES[_scheme("archive", settings.stores.archive, tuple(ARCHIVES))](folder, settings, writable)


def open_quads(folder: Path, settings: Settings, *, writable: bool) -> QuadStore:
    return QUAD_STORES[_scheme("quads", settings.stores.quads, tuple(QUAD_STORES))](folder, settings, writable)


@contextmanager
def fresh_quads(folder: Path, settings: Settings) -> Iterator[QuadStore]:
    """A store to be filled from nothing: a new one in `folder`, which the caller then puts in place of the old; or the
    server's, which in the end holds of the warehouse's pages just those that were written."""
    if _scheme("quads", settings.stores.quads, tuple(QUAD_STORES)) in REMOTE:
        with closing(RefilledQuads(server_of(settings))) as refilled:
            yield refilled
            refilled.finish()
    else:
        with closing(open_quads(folder, settings, writable=True)) as quads:
            yield quads


def query_source(folder: Path, settings: Settings) -> Path | SparqlServer:
    """Where user queries are evaluated: on the files of an embedded store, or by the server."""
    scheme = _scheme("quads", settings.stores.quads, tuple(QUAD_STORES))
    return server_of(settings) if scheme in REMOTE else folder


def open_text(folder: Path, settings: Settings, *, writable: bool) -> TextIndex:
    return TEXT_INDEXES[_scheme("text", settings.stores.text, tuple(TEXT_INDEXES))](folder, settings, writable)


def check_database(settings: Settings) -> None:
    """Frontier and catalog must be on one database that this version knows. Raises `SettingsError` else."""
    for seam, url in (("frontier", settings.stores.frontier), ("catalog", settings.stores.catalog)):
        _scheme(seam, url, DATABASES)


def _scheme(seam: str, url: str, known: tuple[str, ...]) -> str:
    scheme, colon, rest = url.partition(":")
    if scheme not in known or not colon:
        names = ", ".join(f"{name}:" for name in known)
        raise SettingsError(f"stores.{seam} = {url!r} names no backend of this version", hint=f"known are {names}")
    if scheme in REMOTE:
        if not rest.startswith("//") or not rest[2:].strip("/"):
            raise SettingsError(f"stores.{seam} = {url!r} has no address", hint=f"write {scheme}://…")
    elif rest:
        raise SettingsError(f"stores.{seam} = {url!r}: {scheme}: takes no address", hint=f"write {scheme}:")
    return scheme
