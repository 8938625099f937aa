"""A 64-bit fingerprint of a text: texts that share nearly all of their words differ in few bits (Charikar's simhash).

Each word has a hash; a bit of the fingerprint is that which most words have. The counts of all 64 bits are lanes of one
long integer, so that a word that was seen before costs one addition: some 60 µs a page.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from struct import Struct

_LANES = Struct(">64H")
_MOST_WORDS = 30_000  # of a text: a lane holds 65,535
_REMEMBERED = 50_000


def simhash(text: str) -> int:
    """0 for a text without words."""
    words = set(text.lower().split()[:_MOST_WORDS])
    counts = _LANES.unpack(sum(map(_spread, words)).to_bytes(_LANES.size, "big"))
    half = len(words) / 2
    found = 0
    for count in counts:
        found = found << 1 | (count > half)
    return found


def distance(one: int, other: int) -> int:
    """Bits in which two fingerprints differ."""
    return (one ^ other).bit_count()


@lru_cache(maxsize=_REMEMBERED)
def _spread(word: str) -> int:
    """The hash of a word, each bit in a lane of its own."""
    hashed = int.from_bytes(blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return int(format(hashed, "064b").replace("0", "0000").replace("1", "0001"), 16)
