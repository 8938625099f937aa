"""Checksums of the files that engines write once: sorted tables of the quad store, segments of the text index, links.

Engines check a part of them when they read it, and some never; `verify` would say that all is well while queries fail.
So the process that wrote them notes a checksum of each when it closes the stores. Files that were written by a process
that was killed are noted at the next close.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from xxhash import xxh3_64

from quadloom.process.durable import is_writable, write_file

FILE = "checksums.json"  # in the folder of the files
_WRITTEN_ONCE = frozenset({".sst", ".edges", ".store", ".term", ".idx", ".pos", ".fast", ".fieldnorm"})
_CHUNK_BYTES = 1 << 20
_BYTES_AT_CLOSE = 4 << 30  # a second or two; the rest is noted at later closes


class _Noted(msgspec.Struct, frozen=True, array_like=True):
    size: int
    checksum: str


def note_files(folder: Path) -> None:
    """Note the checksums of new files. An error is no reason to end a command whose work is done."""
    if not folder.is_dir() or not is_writable(folder):
        return
    noted, room = _noted(folder), _BYTES_AT_CLOSE
    present = dict(_files(folder))
    found = {name: old for name, old in noted.items() if present.get(name) == old.size}
    for name in sorted(present.keys() - found.keys()):
        room -= present[name]
        if room >= 0:
            with suppress(OSError):
                found[name] = _Noted(present[name], _checksum(folder / name))
    if found != noted:
        with suppress(OSError):
            write_file(folder / FILE, msgspec.json.encode(found))


def changed_files(folder: Path) -> list[str]:
    """Files that are not what was written, by name: their size or their bytes differ, or they cannot be read."""
    changed = []
    present = dict(_files(folder)) if folder.is_dir() else {}
    for name, noted in sorted(_noted(folder).items()):
        try:
            is_same = name not in present or (
                present[name] == noted.size and _checksum(folder / name) == noted.checksum
            )
        except FileNotFoundError:  # merged into another one meanwhile
            continue
        except OSError:
            is_same = False
        if not is_same:
            changed.append(name)
    return changed


def set_aside(folder: Path) -> None:
    """Rename changed files to `NAME.damaged`, which nothing reads: for files whose content is about to be written
    again."""
    changed = changed_files(folder)
    for name in changed:
        (folder / name).replace(folder / f"{name}.damaged")
    if changed:
        noted = _noted(folder)
        write_file(folder / FILE, msgspec.json.encode({name: noted[name] for name in noted if name not in changed}))


def _noted(folder: Path) -> dict[str, _Noted]:
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=dict[str, _Noted])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):  # damaged itself, it says nothing
        return {}


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    for file in folder.rglob("*"):  # a text index of many shards has a folder for each
        if file.suffix in _WRITTEN_ONCE:
            with suppress(FileNotFoundError):
                yield str(file.relative_to(folder)), file.stat().st_size


def _checksum(file: Path) -> str:
    found = xxh3_64()
    with file.open("rb") as stream:
        while block := stream.read(_CHUNK_BYTES):
            found.update(block)
    return found.hexdigest()
