"""First reads guided by importance: a share of them goes to the most important unread URL of a host.

The queue of a host is in breadth-first order, which reaches every part of a site and needs no knowledge. A URL that
many important pages link to may be far back in it. So every host gives a share of its turns for first reads to the URL
with the highest score instead; both come from one queue, by its key and by an index over the scores. Explicit requests,
seeds and refreshes stay where they are, and so does the order of priorities.
"""

from __future__ import annotations

from collections.abc import Container

from quadloom.stores.frontier.host_table import FINGERPRINT, KNOWN, PRIORITY, SCORE, HostState, QueuedUrl
from quadloom.stores.sql.queue import SqlQueue

_AT_ONCE = 8  # URLs read in the order of importance: few, since their order changes with every link that is found
_LEAST_PRIORITY = 2  # seeds and refreshes have priority 1


def gives_turn(credit: float, share: float) -> tuple[bool, float]:
    """Whether the next of many turns belongs to the share, and the credit that is left. With 0.4 it is the third and
    the fifth of five."""
    credit += share
    return (True, credit - 1.0) if credit >= 1.0 else (False, credit)


class GuidedReads:
    """Takes URLs from the buffers of hosts. `leases`: fingerprints that are handed out. `share` needs
    `SqlQueue.index_importance`, unless it is 0."""

    def __init__(self, queue: SqlQueue, leases: Container[int]) -> None:
        self.share = 0.0
        self._queue = queue
        self._leases = leases

    def take(self, host: HostState, url: QueuedUrl) -> QueuedUrl:
        """Remove `url` from the buffer and return it; or, if it is a first read and importance has its turn, the most
        important URL of the same priority."""
        if self.share and url[PRIORITY] >= _LEAST_PRIORITY and not url[KNOWN]:
            guided, host.guided_credit = gives_turn(host.guided_credit, self.share)
            if guided:
                url = self._most_important(host, url[PRIORITY]) or url
        host.remove(url[FINGERPRINT])
        return url

    def _most_important(self, host: HostState, priority: int) -> QueuedUrl | None:
        if host.complete:
            unread = [url for url in host.buffer if url[PRIORITY] == priority and not url[KNOWN]]
            return min(unread, key=lambda url: (-url[SCORE], url[FINGERPRINT]), default=None)
        if not host.important or host.important[0][PRIORITY] != priority:
            best = self._queue.most_important(host.id, priority, _AT_ONCE + host.leased)
            host.important = [url for url in best if not url[KNOWN] and url[FINGERPRINT] not in self._leases]
        return host.important[0] if host.important else None
