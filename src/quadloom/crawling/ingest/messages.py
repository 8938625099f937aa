"""What other threads and processes send to the thread that owns the stores: one union, delivered by `Inbox`."""

from __future__ import annotations

import msgspec

from quadloom.crawling.ingest.index.indexer import IndexAcks, LinksFound
from quadloom.crawling.workers.pool import PoolChanged, SlowPage, TransformResult
from quadloom.fetching.fetcher import FetchResult
from quadloom.model.event import EventKind
from quadloom.model.visit import Visit


class EventMessage(msgspec.Struct, frozen=True):
    """Something that a person should see, from another thread."""

    kind: EventKind
    text: str


class FetchedVisits(msgspec.Struct, frozen=True):
    """Visits that came back from the fetch process."""

    results: tuple[FetchResult, ...]


class VisitsLost(msgspec.Struct, frozen=True):
    """Visits that were in the fetch process when it died."""

    visits: tuple[Visit, ...]


class NetworkProbed(msgspec.Struct, frozen=True):
    """What a probe of the network found."""

    works: bool


Message = (
    FetchedVisits
    | VisitsLost
    | NetworkProbed
    | TransformResult
    | SlowPage
    | PoolChanged
    | IndexAcks
    | LinksFound
    | EventMessage
)
