"""What waits for the next transaction besides visits.

Take it, write it, and drop it once it is durable; if nothing was written, put it back in front of what has arrived
meanwhile.
"""

from __future__ import annotations

import msgspec

from quadloom.crawling.ingest.index.indexer import IndexAcks
from quadloom.model.link import Discovery
from quadloom.model.page import RobotsUpdate
from quadloom.stores.protocols.catalog import VisitKey


class Outgoing(msgspec.Struct):
    """`acks`: of the indexer. `links`: of pages that were settled before. `requests`: pages to be read again. `robots`:
    what hosts' robots.txt files said. `extracted`: pages whose links are among `links`, found by the phase extract."""

    acks: list[IndexAcks] = []
    links: list[Discovery] = []
    requests: list[Discovery] = []
    robots: list[RobotsUpdate] = []
    extracted: list[VisitKey] = []

    def __bool__(self) -> bool:
        return bool(self.acks or self.links or self.requests or self.robots or self.extracted)


class OutgoingBuffer:
    """One thread. `waiting` is added to from many places, and taken by the writer as a whole."""

    def __init__(self) -> None:
        self.waiting = Outgoing()

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def take(self) -> Outgoing:
        """All that waits. The caller writes it, or calls `put_back`."""
        taken, self.waiting = self.waiting, Outgoing()
        return taken

    def put_back(self, taken: Outgoing) -> None:
        """Nothing of it was written."""
        now = self.waiting
        self.waiting = Outgoing(
            taken.acks + now.acks,
            taken.links + now.links,
            taken.requests + now.requests,
            taken.robots + now.robots,
            taken.extracted + now.extracted,
        )
