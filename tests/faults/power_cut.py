"""Power cuts without cutting power: strace records every write of a run, and a model of the disk replays them.

The model is stricter than any file system. What was written to a file counts only after fsync of that file, and an
entry of a folder (a new, renamed or removed name) only after fsync of that folder. Everything else may be lost at a
cut, in whole or in part; which of it, is drawn from a seed. So a state that passes here passes on ext4, XFS and others.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

STRACE = shutil.which("strace")
_CALLS = (
    "openat,write,pwrite64,writev,pwritev,lseek,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,"
    "mkdirat,ftruncate,truncate,fallocate,link,linkat,copy_file_range,sendfile,msync"
)
_LINE = re.compile(r"(\d+\.\d+) (\w+)\((.*)\) = (-?\d+)(?:<([^>]*)>)?.* <(\d+\.\d+)>$")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_HANDLE = re.compile(r"(?:AT_FDCWD|\d+)<((?:\\x[0-9a-f]{2})*)>")


@dataclass
class Operation:
    """One call that succeeded. `paths` and `numbers` as in its arguments; `data`: what was written."""

    name: str
    paths: list[str]
    data: bytes
    numbers: list[int]
    result: int
    flags: str
    handle: str


def record(command: Sequence[str], folder: Path, *, timeout: float = 300) -> list[Operation]:
    """Run a command under strace to its end; what it and its children did to files, in order."""
    assert STRACE is not None
    trace = folder / "trace"
    trace.mkdir()
    arguments = [STRACE, "-ff", "--seccomp-bpf", "-qq", "-ttt", "-T", "-y", "-xx", "-s", "67108864"]
    done = subprocess.run(
        [*arguments, "-o", str(trace / "of"), "-e", f"trace={_CALLS}", *command],
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, (done.stderr + done.stdout).decode()[-3000:]
    found: list[tuple[float, Operation]] = []
    for file in trace.iterdir():
        found += _parsed(file)
    shutil.rmtree(trace)
    found.sort(key=lambda item: item[0])
    return [operation for _, operation in found]


def _parsed(file: Path) -> Iterator[tuple[float, Operation]]:
    with file.open(encoding="ascii", errors="replace") as lines:
        for line in lines:
            match = _LINE.match(line.rstrip("\n"))
            if match is None or match[4].startswith("-"):
                continue
            strings = [_bytes(text) for text in _STRING.findall(match[3])]
            handles = [_bytes(text).decode() for text in _HANDLE.findall(match[3])]
            rest = _HANDLE.sub("", _STRING.sub("", match[3]))
            yield (
                float(match[1]) + float(match[6]),
                Operation(
                    match[2],
                    [text.decode("utf-8", "replace") for text in strings] if "write" not in match[2] else [],
                    b"".join(strings) if "write" in match[2] else b"",
                    [int(text) for text in re.findall(r"(?<![\w.])\d+(?!\w)", rest)],
                    int(match[4]),
                    rest,
                    handles[0] if handles else "",
                ),
            )


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


@dataclass
class _File:
    """`synced`: the content at the last fsync; `later`: writes (offset, data) and cuts (length, None) since then."""

    synced: bytes = b""
    content: bytearray = field(default_factory=bytearray)
    later: list[tuple[int, bytes | None]] = field(default_factory=list)

    def change(self, offset: int, data: bytes | None) -> None:
        _apply(self.content, offset, data)
        self.later.append((offset, data))

    def sync(self) -> None:
        self.synced, self.later = bytes(self.content), []

    def after_a_cut(self, chance: random.Random) -> bytes:
        content = bytearray(self.synced)
        fate = chance.choice(("none", "some", "all"))
        for offset, data in self.later:
            if fate == "all" or (fate == "some" and chance.random() < 0.5):
                torn = data[: chance.randrange(len(data) + 1)] if data and chance.random() < 0.2 else data
                _apply(content, offset, torn)
        return bytes(content)


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    if data is not None:
        content[offset : offset + len(data)] = data


class _Folder:
    """`now`: as processes see it; `synced`: entries at the last fsync; `later`: changes since then, each atomic."""

    def __init__(self) -> None:
        self.now: dict[str, _File | _Folder] = {}
        self.synced: dict[str, _File | _Folder] = {}
        self.later: list[dict[str, _File | _Folder | None]] = []

    def change(self, entries: dict[str, _File | _Folder | None]) -> None:
        _enter(self.now, entries)
        self.later.append(entries)

    def sync(self) -> None:
        self.synced, self.later = dict(self.now), []

    def after_a_cut(self, target: Path, chance: random.Random) -> None:
        entries = dict(self.synced)
        fate = chance.choice(("none", "some", "all"))
        kept = {"none": 0, "some": chance.randrange(len(self.later) + 1), "all": len(self.later)}[fate]
        for change in self.later[:kept]:
            _enter(entries, change)
        target.mkdir(parents=True)
        for name in sorted(entries):
            entry = entries[name]
            if isinstance(entry, _Folder):
                entry.after_a_cut(target / name, chance)
            elif not name.endswith("-shm"):  # which is memory
                (target / name).write_bytes(entry.after_a_cut(chance))


def _enter(entries: dict[str, _File | _Folder], change: dict[str, _File | _Folder | None]) -> None:
    for name, entry in change.items():
        if entry is None:
            entries.pop(name, None)
        else:
            entries[name] = entry


def _existing(path: Path) -> _File | _Folder:
    if path.is_dir():
        folder = _Folder()
        for child in path.iterdir():
            folder.now[child.name] = _existing(child)
        folder.sync()
        return folder
    data = path.read_bytes()
    return _File(data, bytearray(data))


class Disk:
    """The tree below `root`, which exists and is on disk with all that it has."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._tree = _existing(root)
        self._positions: dict[str, int] = {}
        self.acknowledged: list[str] = []

    def run(self, operation: Operation, acknowledgements: Path) -> None:
        """`acknowledgements`: a file outside of the tree; what is written there is acknowledged."""
        if operation.handle == str(acknowledgements) and operation.name == "write":
            self.acknowledged.append(operation.data.decode())
            return
        handler = getattr(self, f"_{operation.name}", None)
        assert handler is not None, f"{operation.name} is not in the model"
        handler(operation)

    def after_a_cut(self, target: Path, chance: random.Random) -> None:
        """Write one of the states that a cut may leave here to `target`."""
        assert isinstance(self._tree, _Folder)
        self._tree.after_a_cut(target, chance)

    def _entry(self, path: str) -> _File | _Folder | None:
        if path != self._root and not path.startswith(self._root + "/"):
            return None
        entry: _File | _Folder | None = self._tree
        for name in path[len(self._root) + 1 :].split("/") if path != self._root else ():
            entry = entry.now.get(name) if isinstance(entry, _Folder) else None
        return entry

    def _file(self, path: str) -> _File | None:
        entry = self._entry(path)
        return entry if isinstance(entry, _File) else None

    def _change(self, path: str, entry: _File | _Folder | None) -> None:
        parent, _, name = path.rpartition("/")
        folder = self._entry(parent)
        if isinstance(folder, _Folder):
            folder.change({name: entry})

    def _absolute(self, operation: Operation, number: int = 0) -> str:
        path = operation.paths[number]
        return path if path.startswith("/") else f"{operation.handle}/{path}"

    # Calls

    def _openat(self, operation: Operation) -> None:
        path = self._absolute(operation)
        if self._entry(path) is None and "O_CREAT" in operation.flags:
            self._change(path, _File())
        file = self._file(path)
        if file is not None:
            if "O_TRUNC" in operation.flags and file.content:
                file.change(0, None)
            self._positions[f"{path} {operation.result}"] = -1 if "O_APPEND" in operation.flags else 0

    def _write(self, operation: Operation) -> None:
        file = self._file(operation.handle)
        if file is not None:
            key = self._position_of(operation)
            at = self._positions.get(key, -1)
            offset = len(file.content) if at < 0 else at
            file.change(offset, operation.data[: operation.result])
            self._positions[key] = -1 if at < 0 else offset + operation.result

    _writev = _write

    def _position_of(self, operation: Operation) -> str:
        number = re.match(r"(\d+)", operation.flags)
        return f"{operation.handle} {number[1] if number else ''}"

    def _pwrite64(self, operation: Operation) -> None:
        file = self._file(operation.handle)
        if file is not None:
            file.change(operation.numbers[-1], operation.data[: operation.result])

    _pwritev = _pwrite64

    def _lseek(self, operation: Operation) -> None:
        if self._file(operation.handle) is not None:
            self._positions[self._position_of(operation)] = operation.result

    def _fsync(self, operation: Operation) -> None:
        entry = self._entry(operation.handle)
        if entry is not None:
            entry.sync()

    _fdatasync = _fsync

    def _rename(self, operation: Operation) -> None:
        old, new = self._absolute(operation), self._absolute(operation, 1)
        entry = self._entry(old)
        if entry is None:
            return
        parent, _, name = old.rpartition("/")
        if parent == new.rpartition("/")[0]:
            folder = self._entry(parent)
            assert isinstance(folder, _Folder)
            folder.change({name: None, new.rpartition("/")[2]: entry})
        else:
            self._change(new, entry)
            self._change(old, None)

    _renameat = _renameat2 = _rename

    def _unlink(self, operation: Operation) -> None:
        self._change(self._absolute(operation), None)

    _unlinkat = _rmdir = _unlink

    def _mkdir(self, operation: Operation) -> None:
        self._change(self._absolute(operation), _Folder())

    _mkdirat = _mkdir

    def _ftruncate(self, operation: Operation) -> None:
        file = self._file(operation.handle or operation.paths[0])
        if file is not None:
            file.change(operation.numbers[-1], None)

    _truncate = _ftruncate

    def _fallocate(self, operation: Operation) -> None:
        file = self._file(operation.handle)
        if file is not None and "KEEP_SIZE" not in operation.flags:
            end = operation.numbers[-2] + operation.numbers[-1]
            if end > len(file.content):
                file.change(end, None)

    def _link(self, operation: Operation) -> None:
        entry = self._entry(self._absolute(operation))
        if entry is not None:
            self._change(self._absolute(operation, 1), entry)

    _linkat = _link

    def _msync(self, operation: Operation) -> None:
        """Only the shared memory of SQLite is mapped for writing, which no cut keeps."""

    def _copy_file_range(self, operation: Operation) -> None:
        assert self._entry(operation.handle) is None, "copies inside the kernel are not in the model"

    _sendfile = _copy_file_range
