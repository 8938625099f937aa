"""Which URL of a host is read next under a quota: the classes of visits take turns, as their shares say."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence

from quadloom.stores.frontier.guided import GuidedReads
from quadloom.stores.frontier.host_table import FINGERPRINT, KNOWN, PRIORITY, HostState, QueuedUrl
from quadloom.stores.protocols.frontier import Quota, VisitClass
from quadloom.stores.sql.queue import SqlQueue

# Priorities at which a queue that is leased by quota holds each class: refreshes share priority 1 with the seeds, which
# are ordinary pages if suspects have no share.
_PRIORITIES: dict[VisitClass, tuple[tuple[int, ...], ...]] = {
    VisitClass.REFRESH: ((1,),),
    VisitClass.SUSPECTS: ((1,), (2,)),
    VisitClass.PAGES: ((1,), (3, 4)),
}


class ClassTurns:
    """Takes URLs from the buffers of hosts, or from their queues. `leases`: fingerprints that are handed out."""

    def __init__(self, queue: SqlQueue, leases: Container[int], guided: GuidedReads) -> None:
        self._queue = queue
        self._leases = leases
        self._guided = guided

    def next(self, host: HostState, quota: Quota) -> QueuedUrl | None:
        """What this host serves next, counted in the quota: a request, or the first URL of the class whose turn it is
        among those that the quota allows."""
        if host.buffer[0][PRIORITY] == 0:
            quota.take(0, host.buffer[0][KNOWN])
            return host.buffer.pop(0)
        places = _first_of_each(host.buffer, quota)
        waiting = [kind for kind in _classes(host, places) if quota.left_of[kind] > 0]
        while waiting:
            kind = host.turns.next(quota.shares, waiting)
            url = host.buffer[places[kind]] if kind in places else self._seek(host, kind, quota)
            if url is not None:
                url = self._guided.take(host, url)
                host.turns.served(kind, quota.shares, waiting)
                quota.take(url[PRIORITY], url[KNOWN])
                return url
            waiting.remove(kind)
        return None

    def _seek(self, host: HostState, kind: VisitClass, quota: Quota) -> QueuedUrl | None:
        """The first URL of a class of which the buffer has none."""
        for priorities in _PRIORITIES[kind]:
            for url in self._queue.front(host.id, 4 + host.leased, priorities):
                if url[FINGERPRINT] not in self._leases and quota.class_of(url[PRIORITY], url[KNOWN]) is kind:
                    return url
        host.absent.add(kind)
        return None


def has_open_class(host: HostState, quota: Quota) -> bool:
    """Whether the host may have a URL of a class that has a share."""
    shares = quota.shares
    if 0.0 not in shares:
        return True
    return any(shares[kind] for kind in _classes(host, _first_of_each(host.buffer, quota)))


def _classes(host: HostState, places: Collection[VisitClass]) -> list[VisitClass]:
    """The classes of which the host may have URLs, if its buffer has those of `places`."""
    return [kind for kind in VisitClass if kind in places or host.may_have(kind)]


def _first_of_each(buffer: Sequence[QueuedUrl], quota: Quota) -> dict[VisitClass, int]:
    """Index of the first URL of each class."""
    places: dict[VisitClass, int] = {}
    for place, url in enumerate(buffer):
        kind = quota.class_of(url[PRIORITY], url[KNOWN])
        if kind not in places:
            places[kind] = place
            if len(places) == len(VisitClass):
                break
    return places
