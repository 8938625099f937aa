"""What the owner of a crawl finds in its inbox: everything that other threads and processes have for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future

import msgspec

from quadloom.crawl.control import Value
from quadloom.fetching.fetcher import FetchResult
from quadloom.ingest.indexer import IndexAcks
from quadloom.model.event import EventKind
from quadloom.model.visit import Visit
from quadloom.workers.pool import TransformResult


class EventMessage(msgspec.Struct, frozen=True):
    kind: EventKind
    text: str


class VisitsLost(msgspec.Struct, frozen=True):
    visits: tuple[Visit, ...]


class ThreadFailed(msgspec.Struct, frozen=True):
    """A thread of the owner has failed; the crawl ends with its error."""

    error: BaseException


class OwnerCall:
    """Something that another thread wants done by the owner, and the place where it waits for the answer."""

    def __init__(self, action: Callable[[], Value]) -> None:
        self.action = action
        self.answer: Future[Value] = Future()


InboxMessage = (
    Sequence[FetchResult] | TransformResult | IndexAcks | EventMessage | VisitsLost | OwnerCall | ThreadFailed
)
