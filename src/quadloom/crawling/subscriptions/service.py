"""Subscriptions and notices of a warehouse, for the library, the command line and the web."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from quadloom.crawling.subscriptions.notify import difference
from quadloom.crawling.subscriptions.registry import add_subscription, checked, read_subscriptions, remove_subscription
from quadloom.crawling.subscriptions.retention import TrimReport, trim_notices, trimmed_notices
from quadloom.crawling.subscriptions.saved_queries import SavedQuery, checked_query, forget_query, save_query
from quadloom.crawling.subscriptions.webhooks import NoticeMessage, message
from quadloom.crawling.workers.version_reader import ArchivedVersions
from quadloom.model.event import Notice
from quadloom.model.subscription import Subscription
from quadloom.process.clock import unix_time
from quadloom.stores.opened import Stores

if TYPE_CHECKING:
    from quadloom.asking.sparql.service import QueryService


class Subscriptions:
    """`queries` returns the query service; it starts with the first standing query that is checked."""

    def __init__(self, stores: Stores, queries: Callable[[], QueryService]) -> None:
        self._stores = stores
        self._settings = stores.settings
        self._versions = ArchivedVersions(stores.archive, stores.settings)
        self._queries = queries

    def all(self) -> list[Subscription]:
        return read_subscriptions(self._stores.catalog)

    def checked(self, subscription: Subscription) -> Subscription:
        """With canonical names. Raises `UsageError` or `QueryError` if it is not valid; takes no lock."""
        return checked(subscription, self._queries, self._settings.limits)

    def add(self, subscription: Subscription) -> None:
        """Make a checked subscription durable, and request the pages that it names. Raises `UsageError`."""
        stores = self._stores
        add_subscription(
            subscription, catalog=stores.catalog, outbox=stores.outbox, frontier=stores.frontier, now=unix_time()
        )

    def remove(self, id: str) -> None:
        remove_subscription(id, catalog=self._stores.catalog, outbox=self._stores.outbox)

    def save_query(self, saved: SavedQuery) -> None:
        """Keep a query under its name. Raises `UsageError`."""
        save_query(self._stores.catalog, checked_query(saved, self._settings.limits))

    def forget_query(self, name: str) -> None:
        """Raises `NothingFound` if there is none of this name."""
        forget_query(self._stores.catalog, name)

    def trim_notices(self) -> TrimReport:
        """Drop notices that are older than `subscriptions.keep`."""
        return trim_notices(self._stores.catalog, self._stores.outbox, self._settings.subscriptions, unix_time())

    def trimmed_notices(self) -> set[int]:
        """Ids of the notices that `trim_notices` would drop; drops nothing."""
        return trimmed_notices(self._stores.catalog, self._stores.outbox, self._settings.subscriptions, unix_time())

    def notices(self, since: int = 0, *, subscription: str = "", limit: int = 1000) -> list[NoticeMessage]:
        """Notices after an id, oldest first, each with what was added and removed."""
        return self._messages(self._stores.outbox.since(since, limit=limit, subscription=subscription))

    def newest_notices(self, *, subscription: str = "", limit: int = 100) -> list[NoticeMessage]:
        """The last notices, oldest first. Searches back in growing steps: a subscription's ids have gaps."""
        outbox = self._stores.outbox
        last, span = outbox.last_id(), limit
        found: list[Notice] = []
        while last > 0:
            begin = max(last - span, 0)
            found = outbox.since(begin, limit=span, subscription=subscription)
            if begin == 0 or len(found) >= limit:
                break
            span *= 4
        return self._messages(found[-limit:])

    def _messages(self, notices: list[Notice]) -> list[NoticeMessage]:
        names = {item.id: item.name for item in self.all()}
        return [
            message(notice, difference(notice, self._versions), names.get(notice.subscription, ""))
            for notice in notices
        ]
