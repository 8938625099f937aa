"""Backups: consistent, incremental copies of a warehouse, also while a crawl writes to it.

A backup is a manifest and pieces. A piece is up to `PIECE` bytes of a file, named by its SHA-256, so a piece that two
backups share is stored once, and `sha256sum` can check it. The database is copied first, as one consistent state
(SQLite's online backup); the archive follows. All records that the database refers to were synced before it was
copied, and files of the archive only grow, so they are in the copy. The manifest is written last: a backup that was
interrupted leaves pieces without a manifest, which the next one uses.

Quads, text and links are not copied: `restore` makes them again from the archive.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from quadloom.errors import StoreError, UsageError
from quadloom.maintenance.archive_order import all_pages
from quadloom.maintenance.recovery.places import BackupPlace
from quadloom.model.timestamps import iso_time
from quadloom.process.clock import unix_time
from quadloom.process.durable import make_folder, replacing
from quadloom.settings import Settings
from quadloom.stores.backends import DATABASE, archive_files, copy_database, open_state

PIECE = 32 << 20
_FORMAT = 1
_MANIFESTS = "manifests/"
_PIECES = "pieces/"
_OPEN = ".open"  # the archive's file that is being written

Progress = Callable[[int], None]


class CopiedFile(msgspec.Struct, frozen=True):
    """A file of the warehouse by its path in it, and its pieces in order. `length`: bytes in all."""

    path: str
    length: int
    pieces: tuple[str, ...]


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What one backup consists of."""

    format: int = _FORMAT
    made_at: float
    pages: int
    files: tuple[CopiedFile, ...]

    @property
    def name(self) -> str:
        return f"{_MANIFESTS}{iso_time(self.made_at).replace(':', '')}.json"

    @property
    def length(self) -> int:
        return sum(file.length for file in self.files)


class BackupReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup did. `bytes`: of the warehouse's files; `written`: of the pieces that were new; `removed`: backups
    that were no longer wanted."""

    name: str
    pages: int
    bytes: int
    written: int
    removed: int = 0


def back_up(
    path: Path, settings: Settings, place: BackupPlace, *, keep: int = 0, progress: Progress = lambda _bytes: None
) -> BackupReport:
    """Copy a warehouse to `place`. `keep`: older backups beyond so many are removed; 0 = none is. `progress` gets the
    number of bytes that were looked at.

    Raises `SettingsError` if database or archive are on a server, and `StoreError` if a file vanishes meanwhile or what
    was written cannot be read back."""
    made_at = unix_time()
    with place.owned():
        before = _newest(place)
        store = _Pieces(place)
        with TemporaryDirectory(prefix=".backup-", dir=path) as folder:
            copy = Path(folder) / DATABASE
            copy_database(path, settings, copy)
            pages, needed = _references(Path(folder), settings)
            files = [store.file(DATABASE, copy, None, progress)]
        for name, source in sorted(archive_files(path, settings).items()):
            ending = _OPEN if source.suffix == _OPEN else ""
            files.append(store.file(f"archive/{name}{ending}", source, before.get(f"archive/{name}"), progress))
        _check_complete(files, needed)
        manifest = BackupManifest(made_at=made_at, pages=pages, files=tuple(files))
        place.write(manifest.name, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
        removed = _remove_old(place, keep) if keep else 0
    name = manifest.name.removeprefix(_MANIFESTS).removesuffix(".json")
    return BackupReport(name=name, pages=pages, bytes=manifest.length, written=store.written, removed=removed)


def backups(place: BackupPlace) -> list[BackupManifest]:
    """All that can be restored, the oldest first."""
    return [_read_manifest(place, name) for name in sorted(place.names(_MANIFESTS))]


def restore_files(
    place: BackupPlace, path: Path, *, at: str = "", progress: Progress = lambda _bytes: None
) -> BackupManifest:
    """Write the database and the archive of a backup into an empty folder. `at`: its name or the beginning of it; the
    newest by default. Raises `StoreError` for a piece that is missing or damaged; then the folder has no
    database, so it cannot be taken for a whole warehouse."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path} is not empty", hint="name a new folder with -w; restore never writes over data")
    manifest = _chosen(place, at)
    make_folder(path / "archive")
    database, *archive = sorted(manifest.files, key=lambda file: file.path != DATABASE)
    for file in (*archive, database):  # the database last: without it, the folder is no warehouse
        with replacing(path / file.path) as target:
            for piece in file.pieces:
                data = place.read(_PIECES + piece)
                if hashlib.sha256(data).hexdigest() != piece:
                    raise StoreError(
                        f"a piece of {file.path} is damaged in {place.name}: {piece}",
                        hint="restore an older backup with --at; `quadloom backup --list` names them",
                    )
                target.write(data)
                progress(len(data))
    return manifest


class _Pieces:
    """Writes what is not there yet."""

    def __init__(self, place: BackupPlace) -> None:
        self._place = place
        self._known = place.names(_PIECES)
        self.written = 0

    def file(self, name: str, source: Path, before: CopiedFile | None, progress: Progress) -> CopiedFile:
        """Copy a file. `before`: the same one in the last backup; its full pieces are not read again, because a file of
        the archive only grows."""
        try:
            with (source if source.exists() else source.with_suffix("")).open("rb") as stream:  # it has just ended
                length = os.fstat(stream.fileno()).st_size
                pieces = self._unchanged(before, length)
                progress(stream.seek(min(length, len(pieces) * PIECE)))
                while data := stream.read(min(PIECE, length - stream.tell())):
                    pieces.append(self._put(data))
                    progress(len(data))
        except FileNotFoundError:
            raise StoreError(
                f"{name} was removed while it was copied",
                hint="wait until `quadloom prune` has ended, and run it again",
            ) from None
        return CopiedFile(name, length, tuple(pieces))

    def _unchanged(self, before: CopiedFile | None, length: int) -> list[str]:
        if before is None or before.length > length:
            return []
        whole = list(before.pieces if before.length == length else before.pieces[: before.length // PIECE])
        return whole if all(_PIECES + piece in self._known for piece in whole) else []

    def _put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        name = _PIECES + digest
        if self._known.get(name) != len(data):
            self._place.write(name, data)
            if hashlib.sha256(self._place.read(name)).hexdigest() != digest:
                raise StoreError(f"{self._place.name} returns other bytes than were written", hint="check the disk")
            self._known[name] = len(data)
            self.written += len(data)
        return digest


def _references(folder: Path, settings: Settings) -> tuple[int, dict[str, int]]:
    """How many pages a copied database has, and the end of the last record in each archive file that it refers to."""
    ends: dict[str, int] = {}
    pages = 0
    with closing(open_state(folder, settings, writable=False, fetches=False)) as state:
        for row in all_pages(state.catalog):
            pages += 1
            waiting = row.fetched.archive if row.fetched is not None else None
            visits = state.catalog.visits.of(row.fingerprint)
            for ref in (row.archive, waiting, *(visit.archive for visit in visits)):
                if ref is not None:
                    ends[ref.file] = max(ends.get(ref.file, 0), ref.offset + ref.length)
    return pages, ends


def _check_complete(files: Iterable[CopiedFile], needed: Mapping[str, int]) -> None:
    copied = {file.path.removesuffix(_OPEN): file.length for file in files}
    for name, end in needed.items():
        if copied.get(f"archive/{name}", 0) < end:
            raise StoreError(
                f"the archive file {name} is missing or too short: the database refers to records in it",
                hint="run `quadloom verify`; while `quadloom prune` runs, wait until it has ended",
            )


def _chosen(place: BackupPlace, at: str) -> BackupManifest:
    names = sorted(name for name in place.names(_MANIFESTS) if name[len(_MANIFESTS) :].startswith(at.replace(":", "")))
    if not names:
        found = f"no backup {at}" if at else "no backup"
        raise UsageError(f"{place.name} has {found}", hint="`quadloom backup PLACE --list` shows what there is")
    return _read_manifest(place, names[-1])


def _newest(place: BackupPlace) -> dict[str, CopiedFile]:
    """The files of the last backup, by their path without the ending of a file that is being written."""
    names = sorted(place.names(_MANIFESTS))
    files = _read_manifest(place, names[-1]).files if names else ()
    return {file.path.removesuffix(_OPEN): file for file in files}


def _read_manifest(place: BackupPlace, name: str) -> BackupManifest:
    try:
        found = msgspec.json.decode(place.read(name), type=BackupManifest)
    except msgspec.MsgspecError as error:
        raise StoreError(
            f"{place.name} has a damaged list of a backup, {name}: {error}", hint="remove it, or restore it from a copy"
        ) from error
    if found.format != _FORMAT:
        raise UsageError(f"{name} was made by a newer version of Quadloom", hint="upgrade Quadloom")
    return found


def _remove_old(place: BackupPlace, keep: int) -> int:
    """Manifests first: an interruption leaves pieces that nothing needs, never a backup without its pieces."""
    names = sorted(place.names(_MANIFESTS))
    for name in names[:-keep]:
        place.remove(name)
    files = [file for name in names[-keep:] for file in _read_manifest(place, name).files]
    for piece in place.names(_PIECES).keys() - {_PIECES + piece for file in files for piece in file.pieces}:
        place.remove(piece)
    return len(names[:-keep])
