"""The directories of an archive: which of them can be written to, and which were ever used.

`directories.json` is written into each of them when files are spread over several: the list of all directories that
were ever used, and the last file number. If one is missing later, because it is not mounted or not named in the
settings any more, the others can name it, and numbers of its files are not used a second time.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from quadloom.errors import DiskFull, StoreError

_FILE = "directories.json"
_RETRY_SECONDS = 60.0  # until a directory that failed is tried again, whatever its free space says
_ROOM = 64 << 20  # free bytes that are worth a try before


class Disk:
    """One directory of the archive. `problem`: why it is left out; empty = it is in use."""

    __slots__ = ("failed_at", "path", "problem")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        self.failed_at = 0.0

    def leave_out(self, error: OSError | StoreError, now: float) -> StoreError:
        """Returns the error as a `StoreError`."""
        refused = error if isinstance(error, StoreError) else refusal(error, self.path)
        self.problem = "no room left" if isinstance(refused, DiskFull) else refused.message
        self.failed_at = now
        return refused

    def is_promising(self, now: float) -> bool:
        """Whether a new file should be begun here before directories that have failed are tried."""
        if not self.problem or now - self.failed_at >= _RETRY_SECONDS:
            return True
        try:
            return shutil.disk_usage(self.path).free >= _ROOM
        except OSError:
            return False


class KnownDirectories(msgspec.Struct, frozen=True):
    """What `directories.json` holds."""

    last: int = 0
    directories: tuple[str, ...] = ()


def read_directories(paths: Iterable[Path]) -> KnownDirectories:
    """The newest of the files in these directories, with the names of all."""
    last, names = 0, dict[str, None]()
    for path in paths:
        with suppress(OSError, msgspec.DecodeError):
            found = msgspec.json.decode((path / _FILE).read_bytes(), type=KnownDirectories)
            last = max(last, found.last)
            names.update(dict.fromkeys(found.directories))
    return KnownDirectories(last, tuple(names))


def write_directories(disks: Sequence[Disk], known: KnownDirectories) -> None:
    """Into each directory that can be written to. A failure is not reported here: the next record will tell."""
    data = msgspec.json.encode(known)
    for disk in disks:
        with suppress(OSError):
            temporary = disk.path / f"{_FILE}.new"
            temporary.write_bytes(data)
            temporary.rename(disk.path / _FILE)


def refusal(error: OSError, path: Path) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFull(
            f"no room left to write {path}; all that was acknowledged is safe",
            hint="free some space, or name further disks in stores.directories, and run the same command again",
        )
    return StoreError(
        f"cannot write {path}: {error.strerror}", hint="check that the directory exists and may be written"
    )


def absolute(path: Path | str) -> str:
    return os.path.abspath(path)
