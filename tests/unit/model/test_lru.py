"""The bounded memory."""

from __future__ import annotations

from quadloom.model.lru import LruCache


def test_the_least_recently_used_entry_goes_first() -> None:
    cache = LruCache[str, int](2)
    assert cache.put("a", 1) == [] and cache.put("b", 2) == []
    assert cache.get("a") == 1
    assert cache.put("c", 3) == [2]
    assert (cache.get("b"), cache.get("a"), cache.get("c"), len(cache)) == (None, 1, 3, 2)


def test_a_second_entry_of_a_key_replaces_the_first() -> None:
    cache = LruCache[str, int](2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.put("a", 3) == []
    assert cache.put("c", 4) == [2]
    assert cache.get("a") == 3 and "b" not in cache


def test_entries_are_taken_out() -> None:
    cache = LruCache[str, int](2)
    cache.put("a", 1)
    assert cache.pop("a") == 1 and cache.pop("a") is None
    cache.put("b", 2)
    cache.clear()
    assert len(cache) == 0
