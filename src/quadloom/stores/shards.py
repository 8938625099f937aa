"""The unit of partition: a site belongs to one of 256 shards, fixed forever, because stored rows carry the number.

By site and not by host, since links, robots habits and budgets are shared within a registered domain, and four of
five links stay in it. 256 is enough to share fairly among some tens of workers and little enough to lease all in one
statement. CRC-32, because it is the same in every language that may ever look at the tables.
"""

from __future__ import annotations

from functools import lru_cache
from zlib import crc32

from quadloom.model.url import site_of

SHARDS = 256


@lru_cache(maxsize=65536)
def shard_of(host: str) -> int:
    return crc32(site_of(host).encode()) % SHARDS
