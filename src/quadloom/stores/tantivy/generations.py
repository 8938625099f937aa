"""Generations of an index that changes its writer without asking the one before.

    017/00000004/    generation 4 of shard 17: the index of an earlier owner
    017/00000005/    generation 5: began as hard links to the files of 4, and is written by one process only
    017/00000005/.ready    readers may use it

A writer claims the next number by creating its folder, which succeeds for one process only; then it takes over the last
commit of the newest generation that is ready, and marks its own as ready. Segments are never changed after they are
written, so links are enough. The former writer may still be alive, paused or behind a cut network: it writes into a
folder that nobody reads. After each commit a writer looks for a newer claim. If there is one, the commit may have come
too late for the links, and the writer writes the same documents again into a new generation. If there is none, a later
claim finds the commit. So no commit is lost, even if two processes believe that they own the shard.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from quadloom.errors import StoreError
from quadloom.process.durable import make_folder, sync

_READY = ".ready"
_COPIED = ("meta.json", ".managed.json")  # replaced by every commit; all other files are written once
_TRIES = 20
_KEPT = 2  # generations: readers of the one before the last have time to notice


def newest_claim(folder: Path) -> int:
    """0 = nobody has written this index."""
    return max(_numbers(folder), default=0)


def newest_ready(folder: Path) -> int:
    """The generation to read; 0 = none."""
    for number in sorted(_numbers(folder), reverse=True):
        if (place(folder, number) / _READY).exists() and (place(folder, number) / _COPIED[0]).exists():
            return number
    return 0


def place(folder: Path, number: int) -> Path:
    return folder / f"{number:08d}"


def claim(folder: Path) -> int:
    """Begin a generation: an empty folder that is not ready."""
    make_folder(folder)
    for _ in range(_TRIES):
        number = newest_claim(folder) + 1
        try:
            place(folder, number).mkdir()
        except FileExistsError:
            continue
        sync(folder)
        return number
    raise StoreError(f"many processes begin to write {folder} at once", hint="give each worker a directory of its own")


def take_over(folder: Path) -> int:
    """Begin a generation with all that was committed before."""
    number = claim(folder)
    target = place(folder, number)
    for _ in range(_TRIES):
        before = newest_ready(folder)
        if not before or _link_commit(place(folder, before), target):
            make_ready(folder, number)
            return number
    raise StoreError(f"{folder} changes all the time while its index is taken over", hint="try again")


def make_ready(folder: Path, number: int) -> None:
    """From now on readers use it, and generations before the last are removed."""
    sync(place(folder, number))
    (place(folder, number) / _READY).touch()
    sync(place(folder, number))
    for old in _numbers(folder):
        if old <= number - _KEPT:
            shutil.rmtree(place(folder, old), ignore_errors=True)


def _link_commit(source: Path, target: Path) -> bool:
    """False if a writer of `source` removed files meanwhile, after it had committed again."""
    try:
        lists = {name: (source / name).read_bytes() for name in _COPIED}
        for path in source.iterdir():
            if path.name not in _COPIED and path.name != _READY and not path.name.endswith(".lock"):
                _link(path, target / path.name)
        if (source / _COPIED[0]).read_bytes() != lists[_COPIED[0]]:
            return False  # segments of the list that was read may be gone
    except FileNotFoundError:
        return False
    for name, data in lists.items():
        with (target / name).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    return True


def _link(source: Path, target: Path) -> None:
    with suppress(FileExistsError):  # of an earlier try
        try:
            os.link(source, target)
        except PermissionError:  # a file system without links
            shutil.copyfile(source, target)


def _numbers(folder: Path) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder) if name.isdecimal()]
    except FileNotFoundError:
        return []
