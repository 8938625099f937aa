"""Where backups are kept: a directory or a prefix of an S3 bucket, as names and bytes.

What is written has its name only when it is whole and durable. `owned` is held while a backup is made, so that two of
them do not remove each other's pieces; a bucket has no such lock, so only one machine may back up to a prefix.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

from quadloom.errors import StoreError, UsageError, WarehouseLocked
from quadloom.process.durable import make_folder, write_file
from quadloom.settings import Settings


class BackupPlace(Protocol):
    name: str

    def owned(self) -> AbstractContextManager[object]: ...

    def names(self, prefix: str) -> dict[str, int]:
        """What there is below a prefix that ends in a slash, with the bytes of each."""
        ...

    def write(self, name: str, data: bytes) -> None: ...

    def read(self, name: str) -> bytes:
        """Raises `StoreError` if it is missing."""
        ...

    def remove(self, name: str) -> None: ...


def open_place(address: str, settings: Settings) -> BackupPlace:
    """A directory, or `s3://bucket/prefix`, which uses the endpoint and the region of `[stores]`."""
    if address.startswith("s3://"):
        return _Bucket(address, settings)
    if "://" in address:
        raise UsageError(f"{address} is no place for backups", hint="name a directory or s3://bucket/prefix")
    return _Directory(Path(address))


class _Directory:
    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path

    @contextmanager
    def owned(self) -> Iterator[None]:
        make_folder(self._path)
        with (self._path / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise WarehouseLocked(
                    f"another backup to {self._path} is running", hint="wait until it has ended, or stop it"
                ) from None
            yield

    def names(self, prefix: str) -> dict[str, int]:
        folder = self._path / prefix
        if not folder.is_dir():
            return {}
        found = (entry for entry in folder.rglob("*") if entry.is_file() and not entry.name.startswith("."))
        return {prefix + entry.name: entry.stat().st_size for entry in found}

    def write(self, name: str, data: bytes) -> None:
        path = self._place(name)
        make_folder(path.parent)
        try:
            write_file(path, data)
        except OSError as error:
            raise StoreError(
                f"cannot write {path}: {error.strerror}", hint="make room there and run the command again: it continues"
            ) from error

    def read(self, name: str) -> bytes:
        try:
            return self._place(name).read_bytes()
        except OSError as error:
            raise StoreError(
                f"{name} cannot be read from {self._path}: {error.strerror}",
                hint="restore another backup with --at, or repair the disk",
            ) from error

    def remove(self, name: str) -> None:
        self._place(name).unlink(missing_ok=True)

    def _place(self, name: str) -> Path:
        """Pieces are spread over 256 folders."""
        folder, _, last = name.partition("/")
        return self._path / folder / (last[:2] if folder == "pieces" else "") / last


class _Bucket:
    def __init__(self, address: str, settings: Settings) -> None:
        from quadloom.stores.backends import open_bucket

        self.name = address
        self._bucket = open_bucket(address, settings)

    def owned(self) -> AbstractContextManager[object]:
        return nullcontext()

    def names(self, prefix: str) -> dict[str, int]:
        return self._bucket.files(prefix.rstrip("/"))

    def write(self, name: str, data: bytes) -> None:
        self._bucket.put(name, data)

    def read(self, name: str) -> bytes:
        try:
            return self._bucket.read(name, 0, self._bucket.size(name))
        except FileNotFoundError:
            raise StoreError(
                f"{name} is missing from {self.name}", hint="restore another backup with --at, or repair the bucket"
            ) from None

    def remove(self, name: str) -> None:
        self._bucket.remove(name)
