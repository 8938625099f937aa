"""Archive records that were read from far away, kept in memory for a while."""

from __future__ import annotations

import threading
from collections import OrderedDict

from quadloom.model.outcome import ArchiveRef


class RecordCache:
    """The least recently used ones are given up first. Safe for many threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._size = 0
        self._kept: OrderedDict[ArchiveRef, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, ref: ArchiveRef) -> bytes | None:
        with self._lock:
            data = self._kept.get(ref)
            if data is not None:
                self._kept.move_to_end(ref)
            return data

    def put(self, ref: ArchiveRef, data: bytes) -> None:
        with self._lock:
            if ref not in self._kept:
                self._size += len(data)
            self._kept[ref] = data
            while self._size > self._most:
                _, dropped = self._kept.popitem(last=False)
                self._size -= len(dropped)

    def forget(self, file: str) -> None:
        with self._lock:
            for ref in [ref for ref in self._kept if ref.file == file]:
                self._size -= len(self._kept.pop(ref))
