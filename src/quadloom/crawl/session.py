"""A crawl on a warehouse, as other processes see it: it answers control requests and tells the bus what happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

import msgspec

from quadloom.asking.sparql.service import QueryService
from quadloom.crawl.control import ControlRequest, ControlServer, Value, arguments
from quadloom.crawl.explain import Why
from quadloom.crawl.loop import Crawl
from quadloom.crawl.publication import Publication, PublishReport, pushed
from quadloom.crawl.report import CrawlReport
from quadloom.crawl.requests import RefreshRequest
from quadloom.crawl.scope import ScopeChange, ScopeEdits
from quadloom.errors import UsageError
from quadloom.maintenance.replay import ReplayReport, replay_unindexed
from quadloom.model.event import Event, EventKind
from quadloom.model.outcome import Settlement
from quadloom.model.subscription import Subscription
from quadloom.refresh.scheduler import SharesChange
from quadloom.refresh.state import Schedule
from quadloom.settings import Settings
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.bus import Bus
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.outbox import Outbox
from quadloom.stores.stores import LinkRanking, Stores
from quadloom.subscriptions.outgoing import NotificationSender
from quadloom.subscriptions.websub import HubCallback


class CrawlWarehouse(Protocol):
    """The warehouse, as far as a running crawl needs it: `quadloom.warehouse.Warehouse`."""

    path: Path
    settings: Settings
    bus: Bus
    catalog: Catalog
    outbox: Outbox
    archive: Archive

    @property
    def queries(self) -> QueryService: ...

    @property
    def contact(self) -> str: ...

    def opened(self, links: LinkRanking | None = None) -> Stores: ...

    def ranking(self) -> LinkRanking: ...

    def add_seeds(self, urls: Sequence[str]) -> dict[str, Value]: ...

    def refresh(self, urls: Sequence[str] = (), *, site: str = "", read_before: float | None = None) -> int: ...

    def publish(self, publication: Publication) -> PublishReport: ...

    def checked(self, subscription: Subscription) -> Subscription: ...

    def subscribe(self, subscription: Subscription) -> None: ...

    def unsubscribe(self, id: str) -> None: ...

    def change_scope(self, rules: ScopeEdits, *, remove: bool = False) -> int: ...

    def why(self, url: str, schedule: Schedule | None = None) -> Why: ...


class ClusterMember(Protocol):
    """What makes a crawl one of many workers; see `quadloom.cluster.worker`."""

    def leads(self) -> bool:
        """Whether this worker does what only one may do, such as sending notices."""
        ...

    def beside(self, crawl: Crawl, tell: Callable[[str], None]) -> AbstractContextManager[object]:
        """Entered before the first step, left after the last."""
        ...


class CrawlSession:
    """A crawl on a warehouse, answering control requests. Iterate to run it.

    `waits`: does not end when nothing is due, since others may send work.
    """

    def __init__(
        self,
        warehouse: CrawlWarehouse,
        *,
        forever: bool = False,
        waits: bool = False,
        companion: ClusterMember | None = None,
        tell: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._tell = tell
        self._warehouse = warehouse
        self._companion = companion
        self._events = 0
        self.replayed: ReplayReport = replay_unindexed(warehouse.opened(), warehouse.settings, time.time())
        settings = warehouse.settings
        if not settings.crawl.contact and warehouse.contact:
            crawl = msgspec.structs.replace(settings.crawl, contact=warehouse.contact)
            settings = msgspec.structs.replace(settings, crawl=crawl)
        self.crawl = Crawl(
            warehouse.opened(warehouse.ranking()), settings, forever=forever, waits=waits,
            plainly=self.replayed.missing, notice=self._notice,
        )  # fmt: skip
        self._outgoing = NotificationSender(
            self.crawl,
            self.crawl.notifying,
            self.crawl.hubs,
            warehouse.catalog,
            warehouse.outbox,
            warehouse.archive,
            lambda: warehouse.queries,
            lambda: self.crawl.indexed,
            settings,
            lambda text: self._notice("notice", text),
            companion.leads if companion is not None else lambda: True,
        )

    def __iter__(self) -> Iterator[Settlement]:
        control = ControlServer(self._warehouse.path, self._asked)
        self._outgoing.start()
        beside = self._companion.beside(self.crawl, self._told) if self._companion is not None else nullcontext()
        try:
            with beside:
                for settlement in self.crawl:
                    self._published(settlement)
                    yield settlement
        finally:
            control.close()
            self._outgoing.close()
        self._outgoing.flush()

    def stop(self) -> None:
        self.crawl.stop()

    def report(self) -> CrawlReport:
        return self.crawl.report()

    def _asked(self, request: ControlRequest) -> Value:
        """Runs in a thread of the control server."""
        if request.verb == "subscribe":
            subscription = self._warehouse.checked(arguments(request, Subscription))  # may wait for a query process
            return self.crawl.call(lambda: self._subscribed(subscription))
        return self.crawl.call(lambda: self._handle(request))

    def _handle(self, request: ControlRequest) -> Value:
        """Runs in the crawl's own thread, between two steps: nothing here needs a lock."""
        if request.verb == "status":
            report = msgspec.to_builtins(self.crawl.report())
            return report if isinstance(report, dict) else {}
        if request.verb in ("pause", "resume"):
            self.crawl.paused = request.verb == "pause"
            self._notice("paused" if self.crawl.paused else "resumed", "")
            return "paused" if self.crawl.paused else "running"
        if request.verb == "stop":
            self.crawl.stop()
            return "stopping"
        if request.verb == "events":
            after = request.arguments.get("after")
            return [_event(event) for event in self._warehouse.bus.recent(after if isinstance(after, int) else 0)]
        if request.verb == "seeds":
            urls = request.arguments.get("urls")
            counts = self._warehouse.add_seeds([str(url) for url in urls] if isinstance(urls, list) else [])
            self.crawl.scope_changed()
            return counts
        if request.verb in ("refresh", "why", "scope", "freshness"):
            return self._steer(request)
        if request.verb == "publish":
            publication = arguments(request, Publication)
            published = self._warehouse.publish(publication)
            self.crawl.refreshing.hear_push(pushed(publication, published))
            return {**msgspec.structs.asdict(published)}
        if request.verb == "websub":
            return self._hub_said(arguments(request, HubCallback))
        if request.verb == "unsubscribe":
            return self._unsubscribed(str(request.arguments.get("id", "")))
        raise UsageError(
            f"a running crawl does not know {request.verb!r}", hint="both sides must be of the same version"
        )

    def _steer(self, request: ControlRequest) -> Value:
        """What a person changes or asks about the schedule while it runs."""
        given = request.arguments
        refreshing = self.crawl.refreshing
        if request.verb == "refresh":
            wish = arguments(request, RefreshRequest)
            return self._warehouse.refresh(wish.urls, site=wish.site, read_before=wish.read_before)
        if request.verb == "scope":
            change = arguments(request, ScopeChange)
            moved = self._warehouse.change_scope(change.rules, remove=change.remove)
            self.crawl.scope_changed()
            self._notice("scope", f"{moved} URLs moved")
            return moved
        if request.verb == "freshness":
            return refreshing.change(arguments(request, SharesChange))
        explained = msgspec.to_builtins(self._warehouse.why(str(given.get("url", "")), refreshing.schedule))
        return explained if isinstance(explained, dict) else {}

    def _subscribed(self, subscription: Subscription) -> Value:
        self._warehouse.subscribe(subscription)
        self.crawl.notifying.reload()
        return subscription.id

    def _unsubscribed(self, id: str) -> Value:
        self._warehouse.unsubscribe(id)
        self.crawl.notifying.reload()
        return id

    def _hub_said(self, said: HubCallback) -> Value:
        """The challenge to echo; or whether a push counted."""
        now = time.time()
        if said.verifies:
            return self.crawl.hubs.verify(said.id, said.query, now)
        page = self.crawl.hubs.receive(said.id, said.body, said.signature, now)
        if page is not None:
            self.crawl.refreshing.announced(page)
        return page is not None

    def _published(self, settlement: Settlement) -> None:
        page = settlement.page
        data: dict[str, str | int | float | bool | list[str]] = {"outcome": str(settlement.outcome)}
        if page is not None:
            data |= {"status": page.status, "kind": page.kind, "quads": page.quads, "title": page.title}
        self._publish("settled", settlement.visit.href, data)

    def _told(self, text: str) -> None:
        """By the companion, in a thread of its own."""
        self._notice("worker", text)
        self._tell(text)

    def _notice(self, kind: EventKind, text: str) -> None:
        self._publish(kind, text, {})

    def _publish(self, kind: EventKind, subject: str, data: dict[str, str | int | float | bool | list[str]]) -> None:
        # Milliseconds, so that ids go on growing when the next crawl begins: listeners resume by them.
        self._events = max(self._events + 1, int(time.time() * 1000))
        self._warehouse.bus.publish(Event(self._events, kind, time.time(), subject, data))


def _event(event: Event) -> Value:
    data: dict[str, Value] = {
        name: [*value] if isinstance(value, list) else value for name, value in event.data.items()
    }
    return {"id": event.id, "kind": event.kind, "at": event.at, "subject": event.subject, "data": data}
