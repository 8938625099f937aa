"""Numbers shared with the server process: the state of the web, set by a test, and counters kept by the server.

A mapped file instead of a control address: it works with several server processes, costs 0.1 µs per request, and no
crawler can find it.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import NamedTuple

WORKERS = 16  # server processes at most
_STATE = struct.Struct("<qq")
_COUNTERS = struct.Struct("<qq")
_SIZE = _STATE.size + WORKERS * _COUNTERS.size


class ServerLoad(NamedTuple):
    """What the server has done so far, all its processes together."""

    requests: int
    cpu_seconds: float


class ServerCounters:
    """Revision and robots outage (written by tests), requests and CPU time (written by the server)."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_SIZE))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _SIZE)

    def state(self) -> tuple[int, int]:
        """The revision of the web, and the status that every robots.txt answers with (0 = as planned)."""
        revision, robots_status = _STATE.unpack_from(self._memory)
        return revision, robots_status

    def set_state(self, revision: int, robots_status: int) -> None:
        _STATE.pack_into(self._memory, 0, revision, robots_status)

    def count(self, worker: int, requests: int, cpu_nanoseconds: int) -> None:
        _COUNTERS.pack_into(self._memory, _STATE.size + worker * _COUNTERS.size, requests, cpu_nanoseconds)

    def load(self) -> ServerLoad:
        rows = list(_COUNTERS.iter_unpack(self._memory[_STATE.size :]))
        return ServerLoad(sum(row[0] for row in rows), sum(row[1] for row in rows) / 1e9)

    def close(self) -> None:
        self._memory.close()
