"""The thread beside a running crawl that sends notices and asks standing queries.

It touches no store itself: reads and writes are done for it by the crawl's own thread, between two steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from quadloom.asking.sparql import QueryService
from quadloom.fetching.transport import HttpTransport
from quadloom.model.notice import Notice
from quadloom.model.page import Page
from quadloom.run.control import Value
from quadloom.run.delivering import Delivering, Progress
from quadloom.run.notifying import Notifying, difference
from quadloom.run.standing import Standing, lines_of
from quadloom.settings import Settings
from quadloom.stores.outbox import Delivery, Outbox
from quadloom.stores.protocols import Archive, Catalog, Difference

T = TypeVar("T")
_EVERY = 0.5  # seconds between two looks into the outbox


class Owner(Protocol):
    """The crawl: does things in its own thread."""

    def call(self, action: Callable[[], Value]) -> Value: ...


class Outgoing:
    """`start` begins, `close` ends; `flush` does a last turn in the caller's thread, which must own the stores.

    `leads`: of many workers on one outbox only one sends.
    """

    def __init__(
        self,
        owner: Owner,
        notifying: Notifying,
        catalog: Catalog,
        outbox: Outbox,
        archive: Archive,
        queries: Callable[[], QueryService],
        indexed: Callable[[], int],
        settings: Settings,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._leads = leads
        self._owner = owner
        self._notifying = notifying
        self._catalog = catalog
        self._outbox = outbox
        self._archive = archive
        self._queries = queries
        self._indexed = indexed
        self._settings = settings
        self._standing = Standing(self._ask)
        self._transport: HttpTransport | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="outgoing", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def flush(self) -> None:
        """After the crawl: every query is asked once more, what is due goes out once; what fails waits for the next."""
        if not self._leads():
            return
        self._standing = Standing(self._ask)
        self._turn(lambda action: action(), self._outbox)
        if self._transport is not None:
            self._transport.close()

    def _run(self) -> None:
        owned = _Owned(self._owner, self._outbox)
        while not self._stopping.wait(_EVERY):
            if not self._notifying.interests.subscriptions or not self._leads():
                continue
            try:
                self._turn(owned.do, owned)
            except TimeoutError:
                return  # the crawl has ended; `flush` does the rest

    def _turn(self, write: Callable[[Callable[[], None]], None], progress: Progress) -> None:
        interests = self._notifying.interests
        if interests.queries:
            self._standing.turn(interests.queries, self._catalog, self._outbox, self._indexed(), write, time.time)
        Delivering(progress, self._post, self._difference).turn(interests.subscriptions, time.time())

    def _ask(self, query: str) -> list[str]:
        return lines_of(self._queries(), query, self._settings.limits)

    def _post(self, url: str, body: bytes, headers: tuple[tuple[str, str], ...]) -> Page:
        if self._transport is None:
            self._transport = HttpTransport(self._settings)
        return self._transport.fetch_one(url, accept="*/*", method="POST", payload=body, headers=headers)

    def _difference(self, notice: Notice) -> Difference:
        return difference(notice, self._archive, self._settings)


class _Owned:
    """The outbox, used by its owner on behalf of another thread."""

    def __init__(self, owner: Owner, outbox: Outbox) -> None:
        self._owner = owner
        self._outbox = outbox

    def since(self, id: int, *, limit: int = 1000, subscription: str = "") -> list[Notice]:
        return self._answer(lambda: self._outbox.since(id, limit=limit, subscription=subscription))

    def delivery(self, subscription: str) -> Delivery:
        return self._answer(lambda: self._outbox.delivery(subscription))

    def put_delivery(self, delivery: Delivery) -> None:
        self.do(lambda: self._outbox.put_delivery(delivery))

    def do(self, action: Callable[[], None]) -> None:
        self._owner.call(action)

    def _answer(self, action: Callable[[], T]) -> T:
        answers: list[T] = []
        self._owner.call(lambda: answers.append(action()))
        return answers[0]
