"""Files and folders that survive a power cut: what is written is synced, and so is the folder that names it.

A file that was synced can still be lost if the entry in its folder was not written, and a new folder if that in its
parent was not (fsync(2), "NOTES"). Renaming a file that was not synced may leave an empty one under the new name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder: this process has the right, and the disk is not read-only."""
    try:
        return os.access(folder, os.W_OK) and not os.statvfs(folder).f_flag & os.ST_RDONLY
    except OSError:
        return False


def sync(path: Path) -> None:
    """Return when a file, or the entries of a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Everything in a folder, and the folder itself; not its entry in its parent."""
    for place, _, names in os.walk(folder):
        for name in names:
            sync(Path(place) / name)
        sync(Path(place))


def make_folder(path: Path) -> None:
    """Create a folder with its parents; their entries are on disk on return. A folder that exists costs nothing."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def write_file(path: Path, data: bytes) -> None:
    """Write a whole file, as `replacing` does: on return it is on disk under its name, in place of an older one."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file that takes its name only when the block has ended without an error: a process that is killed leaves
    the old file, or none, and never half of the new one. What is no regular file, such as a pipe, is written at once.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    path = path.resolve()  # a symbolic link stays one
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if path.exists():
            part.chmod(path.stat().st_mode & 0o7777)
        part.replace(path)
        sync(path.parent)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
