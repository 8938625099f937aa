"""Which processes may write to a warehouse: one that owns it, or several that run different phases.

The lock is a POSIX record lock: the kernel drops it with the process, however it ends, and a forked child does not
inherit it, so a transform worker that outlives a killed owner does not keep the warehouse locked. Each process also
locks a byte of its own, so the others can tell whether a process that leased pages is still there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Sequence
from itertools import repeat
from pathlib import Path

from quadloom.errors import StoreError, WarehouseLocked
from quadloom.process.retry import retry, within

# Files of held locks. Record locks do not exclude a second open within one process, so this does.
_held: dict[str, int] = {}
LOCK_PARTS = ("frontier", "indexes")
# Bytes of the lock file, which need not exist. Older programs lock all of them, so they share with nobody.
_SHARED_BYTE = 1 << 20
_PART_BYTES = {"frontier": (1 << 20) + 1, "indexes": (1 << 20) + 2}
_FIRST_PROCESS = 1 << 24
_PID_SLOTS = {"warehouse": 0, "process": 0, "frontier": 16, "indexes": 32}
_BUSY = (BlockingIOError, PermissionError)  # EAGAIN and EACCES: which of them depends on the system
_PATIENCE, _PAUSE = 1.0, 0.02  # seconds
_PART_HINTS = {"frontier": "fetches pages", "indexes": "writes the indexes"}
_PART_HINT = "each of these can be done by one process at a time; the other phases may run beside it, see `--phases`"


class WarehouseLock:
    """Held by a process that may write: all of the warehouse, or with `parts` only what some phases write.

    `parts` are of `LOCK_PARTS`. Any number of processes may hold none of them (they only transform, say), but each part
    has one holder, and who holds all of the warehouse shares it with nobody. Raises `WarehouseLocked` with the pid of
    the other process, after a second: commands such as `seeds add` hold it for a moment only.
    """

    def __init__(
        self, directory: Path, parts: Sequence[str] | None = None, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._sleep = sleep
        self._path = str(directory.resolve() / "lock")
        self._directory = directory
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644) if self._path not in _held else -1
        except OSError as error:
            raise StoreError(
                f"cannot write to {directory}: {error.strerror}",
                hint="copy the warehouse to a disk that can be written, or change its permissions",
            ) from None
        if self._file < 0:
            raise self._refusal(BlockingIOError(errno.EAGAIN, "held by this process"), "warehouse")
        try:
            if parts is None:
                self._lock("warehouse", fcntl.LOCK_EX, 0, 0)
            else:
                self._lock("warehouse", fcntl.LOCK_SH, _SHARED_BYTE)
                self._lock("process", fcntl.LOCK_EX, _FIRST_PROCESS + os.getpid())
                for part in sorted(parts):
                    self._lock(part, fcntl.LOCK_EX, _PART_BYTES[part])
        except StoreError:
            os.close(self._file)
            raise
        _held[self._path] = self._file
        if parts is None:
            os.ftruncate(self._file, 0)
        self._places = ("warehouse", *(parts or ()))
        self._write_pid(f"{os.getpid():<15}\n")

    def _write_pid(self, text: str) -> None:
        for place in self._places:
            os.pwrite(self._file, text.encode(), _PID_SLOTS[place])

    def _lock(self, part: str, how: int, start: int, length: int = 1) -> None:
        def lock() -> None:
            fcntl.lockf(self._file, how | fcntl.LOCK_NB, length, start)

        try:
            retry(lock, within(_PATIENCE, repeat(_PAUSE)), _BUSY, sleep=self._sleep)
        except OSError as error:
            raise self._refusal(error, part) from None

    def _refusal(self, error: OSError, part: str) -> StoreError:
        directory = self._directory
        if not isinstance(error, _BUSY):
            return StoreError(f"cannot lock {directory}: {error.strerror}", hint="use a directory on a local disk")
        pid = str(os.getpid())
        if self._file >= 0:
            pid = self._pid_of(part)
        if part in _PART_HINTS:
            return WarehouseLocked(f"process {pid} {_PART_HINTS[part]} of {directory} already", hint=_PART_HINT)
        return WarehouseLocked(
            f"the warehouse {directory} is in use by process {pid}",
            hint="wait for it or end it with `quadloom stop`; status, search and sparql work meanwhile",
        )

    def _pid_of(self, part: str) -> str:
        """As its holder has written it. Who holds all of the warehouse has written only that."""
        text = os.pread(self._file, 64, 0).decode("ascii", "replace")
        slots = [text[at : at + 16].strip(" \n\0") for at in range(0, 64, 16)]
        found = [slots[_PID_SLOTS[part] // 16], *slots]
        return next((pid for pid in found if pid), "unknown")

    def release(self) -> None:
        if self._path in _held:
            del _held[self._path]
            self._write_pid(" " * 16)
            os.close(self._file)  # the file stays: if it were removed, two owners could lock two different files


def is_working(directory: Path, pid: int) -> bool:
    """Whether a process with this number has locked parts of the warehouse. The caller holds a lock of it, too."""
    file = _held.get(str(directory.resolve() / "lock"))
    if file is None or pid == os.getpid():
        return file is not None
    place = _FIRST_PROCESS + pid
    try:
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, place)
    except OSError:
        return True
    fcntl.lockf(file, fcntl.LOCK_UN, 1, place)
    return False
