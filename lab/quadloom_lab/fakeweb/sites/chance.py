"""Random numbers that depend only on names: the one source of randomness in the fake web.

Everything about a page follows from (seed, host, path), so nothing has to be stored and two runs give the same
bytes. Python's own `hash` is salted per process, therefore BLAKE2.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


def number(*key: object) -> int:
    """64 random bits that depend on the key."""
    text = "\x1f".join(map(str, key))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def share(*key: object) -> float:
    """A random number in [0, 1) that depends on the key."""
    return (number(*key) >> 11) / (1 << 53)


def pick(choices: Sequence[T], *key: object) -> T:
    return choices[number(*key) % len(choices)]


def stream(*key: object) -> random.Random:
    """A random generator for the key, for many numbers."""
    return random.Random(number(*key))
