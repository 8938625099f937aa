"""Pages on their way through the indexer: settled, given to it, and not marked as indexed yet.

Until the mark is written nobody else can know that a page is indexed. So a worker keeps a shard for as long as pages of
it are here: whoever took it before would weave them a second time, from the archive or, where he cannot read our newest
file, from the web.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from quadloom.ingest.indexer import IndexJob
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.shards import shard_of


class PendingIndex:
    """One thread. Its length is the number of entries; a page that was read twice meanwhile counts twice."""

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()
        self._hosts: dict[int, str] = {}

    def __len__(self) -> int:
        return self._times.total()

    def __contains__(self, fingerprint: int) -> bool:
        return fingerprint in self._times

    def put(self, entries: Sequence[IndexJob]) -> None:
        for entry in entries:
            self._times[entry.fingerprint] += 1
            self._hosts[entry.fingerprint] = entry.host

    def marked(self, marks: Iterable[IndexedPage]) -> None:
        for fingerprint, _, _ in marks:
            self._times[fingerprint] -= 1
            if self._times[fingerprint] <= 0:
                del self._times[fingerprint]
                self._hosts.pop(fingerprint, None)

    def shards(self) -> frozenset[int]:
        return frozenset(map(shard_of, self._hosts.values()))
