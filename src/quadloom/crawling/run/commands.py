"""Control commands of a running crawl: one table of verb → argument record → handler.

Handlers run in the crawl's own thread, between two steps, so none of them needs a lock. A command that has to wait for
another process (`subscribe` checks its query) does so first, in the thread of the control server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from quadloom.crawling.ingest.link_queries import check_strategies
from quadloom.crawling.run.control import ControlRequest, arguments
from quadloom.crawling.run.loop import Crawl
from quadloom.crawling.run.publication import Publication, pushed, rhythm_of
from quadloom.crawling.run.requests import CrawlRequests, RefreshRequest
from quadloom.crawling.run.scope import CrawlScope, ScopeChange
from quadloom.crawling.subscriptions.notify import ChangeNotifier
from quadloom.crawling.subscriptions.saved_queries import QueryRemoval, SavedQuery
from quadloom.crawling.subscriptions.service import Subscriptions
from quadloom.crawling.subscriptions.websub import HubCallback, HubSubscriptions
from quadloom.errors import UsageError
from quadloom.model.event import Event, EventKind
from quadloom.model.subscription import Subscription
from quadloom.model.wire import Value
from quadloom.planning.refresh.scheduler import RefreshScheduler
from quadloom.planning.refresh.shares_change import SharesChange
from quadloom.process.clock import unix_time
from quadloom.stores.opened import Stores

T = TypeVar("T")


class NoArguments(msgspec.Struct, frozen=True):
    """Control requests `status`, `pause`, `resume` and `stop`."""


class EventsRequest(msgspec.Struct, frozen=True):
    """Control request `events`: those with a larger id."""

    after: int = 0


class SeedsRequest(msgspec.Struct, frozen=True):
    """Control request `seeds`."""

    urls: list[str] = []


class StrategiesChange(msgspec.Struct, frozen=True):
    """Control request `strategies`: None = tell those in effect. `stored`: also for pages that were read before."""

    strategies: list[str] | None = None
    stored: bool = False


class WhyRequest(msgspec.Struct, frozen=True):
    """Control request `why`."""

    url: str = ""


class UnsubscribeRequest(msgspec.Struct, frozen=True):
    """Control request `unsubscribe`."""

    id: str = ""


class TopicRemoval(msgspec.Struct, frozen=True):
    """Control request `forget-topic`."""

    name: str = ""


class Command(NamedTuple, Generic[T]):
    """`first` turns the arguments into others, in the caller's thread; `run` works in the crawl's own."""

    arguments: type[T]
    run: Callable[[T], Value]
    first: Callable[[T], T] | None = None


class CrawlCommands:
    """What can be asked of a running crawl."""

    def __init__(
        self,
        crawl: Crawl,
        scheduler: RefreshScheduler,
        scope: CrawlScope,
        requests: CrawlRequests,
        subscriptions: Subscriptions,
        notifier: ChangeNotifier,
        hubs: HubSubscriptions,
        stores: Stores,
        *,
        notice: Callable[[EventKind, str], None],
    ) -> None:
        self._crawl = crawl
        self._scheduler = scheduler
        self._scope = scope
        self._requests = requests
        self._subscriptions = subscriptions
        self._notifier = notifier
        self._hubs = hubs
        self._bus = stores.bus
        self._catalog = stores.catalog
        self._notice = notice
        self._table: dict[str, Command[Any]] = {
            "status": Command(NoArguments, self._status),
            "pause": Command(NoArguments, self._pause),
            "resume": Command(NoArguments, self._resume),
            "stop": Command(NoArguments, self._stop),
            "events": Command(EventsRequest, self._recent_events),
            "seeds": Command(SeedsRequest, self._add_seeds),
            "scope": Command(ScopeChange, self._change_scope),
            "refresh": Command(RefreshRequest, self._refresh),
            "freshness": Command(SharesChange, self._scheduler.change),
            "strategies": Command(StrategiesChange, self._change_strategies, first=self._checked_strategies),
            "why": Command(WhyRequest, self._why),
            "publish": Command(Publication, self._publish),
            "websub": Command(HubCallback, self._hub_callback),
            "subscribe": Command(Subscription, self._subscribe, first=self._subscriptions.checked),
            "save-query": Command(SavedQuery, self._save_query),
            "forget-query": Command(QueryRemoval, self._forget_query),
            "unsubscribe": Command(UnsubscribeRequest, self._unsubscribe),
        }

    def _topic_commands(self) -> dict[str, Command[Any]]:
        """Imported when one is asked for: few crawls have to do with topics, and their modules are many."""
        from quadloom.crawling.topical.watched_topics import WatchedTopic, forget, watch

        def add(watched: WatchedTopic) -> Value:
            watch(self._catalog, watched)
            return watched.name

        return {
            "watch-topic": Command(WatchedTopic, add),
            "forget-topic": Command(TopicRemoval, lambda removal: forget(self._catalog, removal.name)),
        }

    def answer(self, request: ControlRequest, call: Callable[[Callable[[], Value]], Value]) -> Value:
        """Answer one request; runs in a thread of the control server. `call` runs an action in the crawl's thread.
        Raises `UsageError` for an unknown verb or wrong arguments."""
        command = self._table.get(request.verb) or self._topic_commands().get(request.verb)
        if command is None:
            raise UsageError(
                f"a running crawl does not know {request.verb!r}", hint="both sides must be of the same version"
            )
        given = arguments(request, command.arguments)
        if command.first is not None:
            given = command.first(given)
        return call(lambda: command.run(given))

    def _status(self, _: NoArguments) -> Value:
        expected = self._scheduler.planner.expected()
        return _builtins(msgspec.structs.replace(self._crawl.report(), expected=expected))

    def _pause(self, _: NoArguments) -> Value:
        self._crawl.pause()
        self._notice("paused", "")
        return "paused"

    def _resume(self, _: NoArguments) -> Value:
        self._crawl.resume()
        self._notice("resumed", "")
        return "running"

    def _stop(self, _: NoArguments) -> Value:
        self._crawl.stop()
        return "stopping"

    def _recent_events(self, request: EventsRequest) -> Value:
        return [_event(event) for event in self._bus.recent(request.after)]

    def _add_seeds(self, request: SeedsRequest) -> Value:
        report = self._requests.add_seeds(request.urls)
        self._crawl.scope_changed()
        return {"new": report.new, "known": report.known, "refused": report.refused}

    def _change_scope(self, change: ScopeChange) -> Value:
        moved = self._scope.change(change.rules, remove=change.remove)
        self._crawl.scope_changed()
        self._notice("scope", f"{moved} URLs moved")
        return moved

    def _checked_strategies(self, change: StrategiesChange) -> StrategiesChange:
        """Paths are the caller's: the command makes them absolute."""
        if change.strategies is not None:
            crawl = msgspec.structs.replace(self._crawl.settings.crawl, strategies=change.strategies)
            check_strategies(msgspec.structs.replace(self._crawl.settings, crawl=crawl))
        return change

    def _change_strategies(self, change: StrategiesChange) -> Value:
        again = 0
        if change.strategies is not None:
            again = self._crawl.change_strategies(change.strategies, stored=change.stored)
            self._notice("scope", f"link strategies: {', '.join(change.strategies) or 'none'}")
        return {"strategies": [*self._crawl.settings.crawl.strategies], "pages": again}

    def _refresh(self, request: RefreshRequest) -> Value:
        return self._requests.refresh(request.urls, site=request.site, read_before=request.read_before)

    def _why(self, request: WhyRequest) -> Value:
        return _builtins(self._requests.why(request.url, self._scheduler.schedule))

    def _publish(self, publication: Publication) -> Value:
        report = self._requests.publish(publication)
        self._scheduler.mark_pushed(pushed(publication, report))
        self._scheduler.state_rhythm(*rhythm_of(publication))
        return {**msgspec.structs.asdict(report)}

    def _subscribe(self, subscription: Subscription) -> Value:
        self._subscriptions.add(subscription)
        self._notifier.reload()
        return subscription.id

    def _unsubscribe(self, request: UnsubscribeRequest) -> Value:
        self._subscriptions.remove(request.id)
        self._notifier.reload()
        return request.id

    def _save_query(self, saved: SavedQuery) -> Value:
        self._subscriptions.save_query(saved)
        return saved.name

    def _forget_query(self, removal: QueryRemoval) -> Value:
        self._subscriptions.forget_query(removal.name)
        return removal.name

    def _hub_callback(self, callback: HubCallback) -> Value:
        """The challenge to echo; or whether a push counted."""
        now = unix_time()
        if callback.verifies:
            return self._hubs.verify(callback.id, callback.query, now)
        page = self._hubs.receive(callback.id, callback.body, callback.signature, now)
        if page is not None:
            self._scheduler.mark_page_pushed(page)
        return page is not None


def _builtins(record: msgspec.Struct) -> Value:
    plain = msgspec.to_builtins(record)
    return plain if isinstance(plain, dict) else {}


def _event(event: Event) -> Value:
    data: dict[str, Value] = {
        name: [*value] if isinstance(value, list) else value for name, value in event.data.items()
    }
    return {"id": event.id, "kind": event.kind, "at": event.at, "subject": event.subject, "data": data}
