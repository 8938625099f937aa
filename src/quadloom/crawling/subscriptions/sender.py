"""A thread of a running crawl that sends notices, asks standing queries and hubs, and drops old notices.

It uses no store itself: the crawl's own thread reads and writes for it, between two steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quadloom.crawling.ingest.inbox import Inbox
from quadloom.crawling.subscriptions.notify import ChangeNotifier, difference
from quadloom.crawling.subscriptions.retention import trim_notices
from quadloom.crawling.subscriptions.standing_queries import StandingQueries, lines_of
from quadloom.crawling.subscriptions.webhooks import DeliveryOutbox, WebhookDeliverer
from quadloom.crawling.subscriptions.websub import HubRequest, HubSubscriptions
from quadloom.crawling.workers.version_reader import ArchivedVersions
from quadloom.fetching.transport import ACCEPT_ANY, FetchRequest, Result
from quadloom.model.event import EventKind, Notice
from quadloom.process.clock import unix_time
from quadloom.process.threads import start
from quadloom.settings import Settings
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.outbox import Delivery, Outbox
from quadloom.stores.protocols.quads import Difference

if TYPE_CHECKING:
    from quadloom.asking.sparql.service import QueryService
    from quadloom.fetching.http.transport import CurlTransport

_EVERY = 0.5  # seconds between two turns
_TRIM_EVERY = 3600.0
_ANSWER_BYTES = 4096  # of a hub's answer: only its status is read

RunInOwner = Callable[[Callable[[], None]], None]


class NotificationSender:
    """`start` starts the thread, `close` ends it; `flush` does a last turn in the caller's thread, which must own the
    stores.

    `inbox`: of the thread that owns the stores. `indexed` grows when queries can find new pages. `is_leader`: of
    several workers on one outbox, one sends. `notice` is called in the owner's thread.
    """

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        inbox: Inbox,
        notifier: ChangeNotifier,
        hubs: HubSubscriptions,
        queries: Callable[[], QueryService],
        *,
        indexed: Callable[[], int],
        notice: Callable[[EventKind, str], None],
        is_leader: Callable[[], bool] = lambda: True,
    ) -> None:
        self._is_leader = is_leader
        self._inbox = inbox
        self._notifier = notifier
        self._hubs = hubs
        self._catalog = stores.catalog
        self._outbox = stores.outbox
        self._versions = ArchivedVersions(stores.archive, settings)
        self._queries = queries
        self._indexed = indexed
        self._settings = settings
        self._publish = notice
        self._standing_queries = self._queries_with(self._in_owner)
        self._trim_at = 0.0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def _notice(self, text: str) -> None:
        self._publish("notice", text)

    def start(self) -> None:
        self._thread = start("outgoing", self._run, self._failed)

    def close(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            longest = max(self._settings.subscriptions.webhook_seconds, self._settings.limits.query_seconds)
            self._thread.join(timeout=longest + 5.0)

    def flush(self) -> None:
        """After the crawl: ask every query once more and send what is due once; what fails waits for the next crawl."""
        if not self._notifier.interests.subscriptions or not self._is_leader():
            return
        self._standing_queries = self._queries_with(lambda action: action())
        with closing(self._client()) as client:
            self._turn(lambda action: action(), lambda: self._deliverer_on(self._outbox, client))

    def _run(self) -> None:
        owned = _OwnerOutbox(self._inbox, self._outbox)
        with ExitStack() as opened, suppress(TimeoutError):  # the crawl has ended; `flush` does the rest
            # Opened when there is something to send: most crawls have no subscription.
            client = cache(lambda: opened.enter_context(closing(self._client())))
            deliverer = cache(lambda: self._deliverer_on(owned, client()))
            while not self._stopping.wait(_EVERY):
                if not self._is_leader():
                    continue
                self._turn(self._in_owner, deliverer)
                if self._hubs.enabled:
                    self._ask_hubs(self._in_owner, client)

    def _failed(self, error: BaseException) -> None:
        """Go on crawling without notices: they wait in the outbox for the next start."""
        with suppress(TimeoutError):
            self._inbox.call(lambda: self._notice(f"sending notices has stopped: {type(error).__name__}: {error}"))

    def _turn(self, run: RunInOwner, deliverer: Callable[[], WebhookDeliverer]) -> None:
        interests = self._notifier.interests
        if interests.queries:
            self._standing_queries.turn(interests.queries, self._indexed())
        if any(item.webhook for item in interests.subscriptions):
            deliverer().turn(interests.subscriptions)
        if time.monotonic() >= self._trim_at:
            self._trim_at = time.monotonic() + _TRIM_EVERY
            run(self._trim)

    def _ask_hubs(self, run: RunInOwner, client: Callable[[], CurlTransport]) -> None:
        due: list[HubRequest] = []
        run(lambda: due.extend(self._hubs.due(unix_time())))
        if not due:
            return
        transport = client()
        answers: list[tuple[str, Result]] = []

        def send(request: HubRequest) -> None:
            transport.submit(_post(request), lambda result: answers.append((request.id, result)))

        for request in due:
            send(request)
        while transport.in_flight:
            transport.step(1.0)

        def store() -> None:
            for id, result in answers:
                self._hubs.answered(id, result, unix_time())

        run(store)

    def _trim(self) -> None:
        trimmed = trim_notices(self._catalog, self._outbox, self._settings.subscriptions, unix_time())
        for id, count in trimmed.lost.items():
            self._notice(f"{count} notices of {id} were dropped: its webhook did not accept them for too long")

    def _queries_with(self, write: RunInOwner) -> StandingQueries:
        return StandingQueries(self._ask, self._catalog, self._outbox, write=write, notice=self._notice)

    def _in_owner(self, action: Callable[[], None]) -> None:
        self._inbox.call(action)

    def _ask(self, query: str) -> list[str]:
        return lines_of(self._queries(), query, self._settings.limits)

    def _deliverer_on(self, outbox: DeliveryOutbox, client: CurlTransport) -> WebhookDeliverer:
        return WebhookDeliverer(outbox, client, self._difference, unix_time)

    def _client(self) -> CurlTransport:
        """As the crawl's own, but without pauses: a receiver asked for these requests and gets one at a time."""
        from quadloom.fetching.http.transport import CurlTransport  # the owner of a crawl needs no other

        settings, seconds = self._settings, self._settings.subscriptions.webhook_seconds
        return CurlTransport(
            replace(
                settings,
                limits=replace(settings.limits, total_seconds=seconds),
                politeness=replace(settings.politeness, ip_delay=0.0),
            )
        )

    def _difference(self, notice: Notice) -> Difference:
        return difference(notice, self._versions)


def _post(request: HubRequest) -> FetchRequest:
    form = ("Content-Type", "application/x-www-form-urlencoded")
    return FetchRequest(
        href=request.url,
        accept=ACCEPT_ANY,
        method="POST",
        payload=request.body,
        headers=(form,),
        max_bytes=_ANSWER_BYTES,
    )


class _OwnerOutbox:
    """The outbox for another thread: every call runs in the thread of its owner."""

    def __init__(self, inbox: Inbox, outbox: Outbox) -> None:
        self._inbox = inbox
        self._outbox = outbox

    def since(self, id: int, *, limit: int = 1000, subscription: str = "") -> list[Notice]:
        return self._inbox.call(lambda: self._outbox.since(id, limit=limit, subscription=subscription))

    def last_id(self) -> int:
        return self._inbox.call(self._outbox.last_id)

    def delivery(self, subscription: str) -> Delivery:
        return self._inbox.call(lambda: self._outbox.delivery(subscription))

    def put_delivery(self, delivery: Delivery) -> None:
        self._inbox.call(lambda: self._outbox.put_delivery(delivery))
