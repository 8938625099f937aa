"""A bounded memory: the least recently used entry goes first."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """At most `size` entries. `get` and `put` both count as use. Not safe for threads: its owner takes the lock.

    For functions, `functools.lru_cache` does the same natively; this is for entries that are put in and taken out.
    """

    __slots__ = ("_entries", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The entry, or None if there is none (or no longer)."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: K, entry: V) -> list[V]:
        """Keep an entry; returns those that had to go for it: at most one, none if there is room."""
        self._entries[key] = entry
        self._entries.move_to_end(key)
        gone: list[V] = []
        while len(self._entries) > self._size:
            gone.append(self._entries.popitem(last=False)[1])
        return gone

    def pop(self, key: K) -> V | None:
        """Take an entry out."""
        return self._entries.pop(key, None)

    def clear(self) -> None:
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries
