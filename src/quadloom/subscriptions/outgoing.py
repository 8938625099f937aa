"""The thread beside a running crawl that sends notices, asks standing queries and hubs, and drops old notices.

It touches no store itself: reads and writes are done for it by the crawl's own thread, between two steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress

from msgspec.structs import replace

from quadloom.asking.sparql.service import QueryService
from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.transport import ACCEPT_ANY, FetchRequest, Result
from quadloom.ingest.inbox import Inbox
from quadloom.model.event import EventKind
from quadloom.model.notice import Notice
from quadloom.process.threads import start
from quadloom.settings import Settings
from quadloom.stores.protocols.outbox import Delivery, Outbox
from quadloom.stores.protocols.quads import Difference
from quadloom.stores.stores import Stores
from quadloom.subscriptions.deliver import DeliveryOutbox, WebhookDeliverer
from quadloom.subscriptions.notify import ChangeNotifier, difference
from quadloom.subscriptions.retention import trim_notices
from quadloom.subscriptions.standing_queries import StandingQueries, lines_of, troubles
from quadloom.subscriptions.websub import HubRequest, HubSubscriptions

_EVERY = 0.5  # seconds between two looks into the outbox
_TRIM_EVERY = 3600.0
_ANSWER_BYTES = 4096  # of a hub's answer: only its status is read

Do = Callable[[Callable[[], None]], None]


class NotificationSender:
    """`start` begins, `close` ends; `flush` does a last turn in the caller's thread, which must own the stores.

    `inbox`: of the thread that owns the stores. `indexed` grows when new pages can be asked for. `is_leader`: of many
    workers on one outbox one sends. `notice` is called in the owner's thread.
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
        self._archive = stores.archive
        self._queries = queries
        self._indexed = indexed
        self._settings = settings
        self._event = notice
        self._standing = StandingQueries(self._ask, troubles(stores.catalog), self._notice)
        self._trim_at = 0.0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def _notice(self, text: str) -> None:
        self._event("notice", text)

    def start(self) -> None:
        self._thread = start("outgoing", self._run, self._broken)

    def close(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            longest = max(self._settings.subscriptions.webhook_seconds, self._settings.limits.query_seconds)
            self._thread.join(timeout=longest + 5.0)

    def flush(self) -> None:
        """After the crawl: every query is asked once more, what is due goes out once; what fails waits for the next."""
        if not self._notifier.interests.subscriptions or not self._is_leader():
            return
        self._standing = StandingQueries(self._ask, troubles(self._catalog), self._notice)
        with closing(self._client()) as client:
            self._turn(lambda action: action(), self._delivering(self._outbox, client))

    def _run(self) -> None:
        owned = _Owned(self._inbox, self._outbox)
        with closing(self._client()) as client, suppress(TimeoutError):  # the crawl has ended; `flush` does the rest
            delivering = self._delivering(owned, client)
            while not self._stopping.wait(_EVERY):
                if not self._is_leader():
                    continue
                self._turn(owned.do, delivering)
                if self._hubs.enabled:
                    self._ask_hubs(owned.do, client)

    def _broken(self, error: BaseException) -> None:
        """A crawl without notices is better than none: they wait in the outbox for the next start."""
        with suppress(TimeoutError):
            self._inbox.call(lambda: self._notice(f"no more notices are sent: {type(error).__name__}: {error}"))

    def _turn(self, do: Do, delivering: WebhookDeliverer) -> None:
        interests = self._notifier.interests
        if interests.queries:
            self._standing.turn(interests.queries, self._catalog, self._outbox, self._indexed(), do, time.time)
        if any(item.webhook for item in interests.subscriptions):
            delivering.turn(interests.subscriptions)
        if time.monotonic() >= self._trim_at:
            self._trim_at = time.monotonic() + _TRIM_EVERY
            do(self._trim)

    def _ask_hubs(self, do: Do, client: CurlTransport) -> None:
        due: list[HubRequest] = []
        do(lambda: due.extend(self._hubs.due(time.time())))
        answers: list[tuple[str, Result]] = []

        def send(request: HubRequest) -> None:
            client.submit(_post(request), lambda result: answers.append((request.id, result)))

        for request in due:
            send(request)
        while client.in_flight:
            client.step(1.0)

        def note() -> None:
            for id, result in answers:
                self._hubs.answered(id, result, time.time())

        if answers:
            do(note)

    def _trim(self) -> None:
        trimmed = trim_notices(self._catalog, self._outbox, self._settings.subscriptions, time.time())
        for id, count in trimmed.lost.items():
            self._notice(f"{count} notices of {id} were dropped: its webhook has not taken them for too long")

    def _ask(self, query: str) -> list[str]:
        return lines_of(self._queries(), query, self._settings.limits)

    def _delivering(self, progress: DeliveryOutbox, client: CurlTransport) -> WebhookDeliverer:
        return WebhookDeliverer(progress, client, self._difference, time.time)

    def _client(self) -> CurlTransport:
        """As the crawl's own, but for the pace: a receiver asked for these, and gets one at a time."""
        settings, seconds = self._settings, self._settings.subscriptions.webhook_seconds
        return CurlTransport(
            replace(
                settings,
                limits=replace(settings.limits, total_seconds=seconds),
                politeness=replace(settings.politeness, ip_delay=0.0),
            )
        )

    def _difference(self, notice: Notice) -> Difference:
        return difference(notice, self._archive, self._settings)


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


class _Owned:
    """The outbox, used by its owner on behalf of another thread."""

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
        self.do(lambda: self._outbox.put_delivery(delivery))

    def do(self, action: Callable[[], None]) -> None:
        self._inbox.call(action)
