"""Where a lake is: a directory or a bucket, its parts, and which files are in it.

A lake has a fixed number of parts, chosen when it is created; a part holds a range of the 256 shards. Each part has a
manifest, which lists its files of all four tables and is replaced as one, so a reader sees a part before or after a
sync, never between. Parts depend on nothing but themselves: many processes and machines write one lake, each another
part at a time.

    lake.json                               the number of parts
    manifest/part-003.json                  the files of part 3
    quads/part=003/00000007-4be1c0.parquet  generation 7 of the part; likewise pages, links and findings
    plan/part-003                           what a sync has to compare; removed when it is done
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec.structs import replace

from quadloom.errors import StoreError, UsageError
from quadloom.process.durable import sync, write_file
from quadloom.settings import Settings
from quadloom.stores.archive.s3_bucket import S3Address, S3Bucket, address_of
from quadloom.stores.shards import SHARDS

TABLES = ("quads", "pages", "links", "findings")
PARTS = 16
_LAYOUT = "lake.json"
_FORMAT = 1


class LakeFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Parquet file; `name` is relative to the lake. `sha256`: if it was written by an extraction."""

    name: str
    rows: int
    bytes: int
    sha256: str = ""


class PartManifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The files of one part, by table. Of an extraction also: the source, what was counted in it, its records
    without a page, and why it could not be fetched: such a part has no files, and no manifest in the lake."""

    generation: int = 0
    files: dict[str, tuple[LakeFile, ...]] = {}
    source: str = ""
    counts: dict[str, int] = {}
    not_taken: dict[str, int] = {}
    error: str = ""


class LakeLayout(msgspec.Struct, frozen=True):
    """What holds for the whole lake."""

    parts: int
    format: int = _FORMAT
    tables: tuple[str, ...] = TABLES


class LakePlace(Protocol):
    """A folder of files that are written as a whole. Names are relative, with slashes."""

    def put(self, path: Path, name: str) -> None:
        """Move a file into the lake; durable on return."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Replace a small file at once; durable on return."""
        ...

    def read(self, name: str) -> bytes | None:
        """None = there is no such file."""
        ...

    def fetch(self, name: str, folder: Path) -> Path:
        """The file on this machine, perhaps a copy in `folder`."""
        ...

    def remove(self, names: Sequence[str]) -> None:
        """Missing files are no error."""
        ...

    def names(self, folder: str) -> list[str]: ...


class DirectoryLake:
    """A lake in a directory, which many machines may share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, path: Path, name: str) -> None:
        target = self._target(name)
        with path.open("rb") as file:
            os.fsync(file.fileno())
        try:
            path.rename(target)
        except OSError:  # on another disk
            temporary = target.with_name(f".{target.name}")
            shutil.copyfile(path, temporary)
            temporary.rename(target)
        sync(target.parent)

    def write(self, name: str, data: bytes) -> None:
        write_file(self._target(name), data)

    def read(self, name: str) -> bytes | None:
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def fetch(self, name: str, folder: Path) -> Path:
        return self.folder / name

    def remove(self, names: Sequence[str]) -> None:
        for name in names:
            (self.folder / name).unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        place = self.folder / folder
        return [f"{folder}/{path.name}" for path in place.iterdir()] if place.is_dir() else []

    def _target(self, name: str) -> Path:
        target = self.folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot write to the lake {self.folder}: {error.strerror}", hint="choose another place: stores.lake"
            ) from error
        return target


class BucketLake:
    """A lake in an S3 bucket, with the endpoint and the region of the archive's settings."""

    def __init__(self, address: S3Address) -> None:
        self.address = address
        self._bucket = S3Bucket(address)

    def put(self, path: Path, name: str) -> None:
        self._bucket.upload(path, name)
        self._bucket.verify(path, name)
        path.unlink()

    def write(self, name: str, data: bytes) -> None:
        self._bucket.put(name, data)

    def read(self, name: str) -> bytes | None:
        try:
            return self._bucket.read(name, 0, self._bucket.size(name))
        except FileNotFoundError:
            return None

    def fetch(self, name: str, folder: Path) -> Path:
        target = folder / name.replace("/", "_")
        self._bucket.download(name, target)
        return target

    def remove(self, names: Sequence[str]) -> None:
        self._bucket.remove_all(list(names))

    def names(self, folder: str) -> list[str]:
        return list(self._bucket.files(folder))


def place_of(path: Path, settings: Settings, target: str = "") -> DirectoryLake | BucketLake:
    """The lake of the warehouse at `path`: `target`, else `stores.lake`, else the folder `lake` in the warehouse."""
    target = target or settings.stores.lake
    if target.startswith("s3://"):
        stores = replace(settings.stores, archive=target)
        return BucketLake(address_of(replace(settings, stores=stores)))
    if "://" in target:
        raise UsageError(f"a lake cannot be at {target}", hint="give a directory or s3://bucket/prefix")
    return DirectoryLake(Path(target) if target else path / "lake")


def read_layout(place: LakePlace) -> LakeLayout | None:
    """None = there is no lake."""
    data = place.read(_LAYOUT)
    if data is None:
        return None
    layout = msgspec.json.decode(data, type=LakeLayout)
    if layout.format != _FORMAT:
        raise StoreError("the lake was written by another version of Quadloom", hint="sync into another place")
    return layout


def create_layout(place: LakePlace, parts: int) -> LakeLayout:
    """Keep the number of parts of a lake that is there already."""
    layout = read_layout(place)
    if layout is None:
        if parts < 1 or SHARDS % parts:
            raise UsageError(
                f"a lake cannot have {parts} parts", hint=f"the number must divide {SHARDS}: 1, 2, 4 … 256"
            )
        layout = LakeLayout(parts)
        write_layout(place, layout)
    return layout


def write_layout(place: LakePlace, layout: LakeLayout) -> None:
    place.write(_LAYOUT, msgspec.json.encode(layout))


def part_of(shard: int, parts: int) -> int:
    return shard * parts // SHARDS


def plan_name(part: int) -> str:
    return f"plan/part-{part:03d}"


def read_manifest(place: LakePlace, part: int) -> PartManifest:
    data = place.read(_manifest_name(part))
    return msgspec.json.decode(data, type=PartManifest) if data is not None else PartManifest()


def write_manifest(place: LakePlace, part: int, manifest: PartManifest) -> None:
    place.write(_manifest_name(part), msgspec.json.format(msgspec.json.encode(manifest)))


def _manifest_name(part: int) -> str:
    return f"manifest/part-{part:03d}.json"
