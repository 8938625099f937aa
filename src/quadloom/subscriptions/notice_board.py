"""Subscriptions and notices of a warehouse, as a library and the web see them."""

from __future__ import annotations

import time

from quadloom.asking.questions import WarehouseQueries
from quadloom.model.notice import Notice
from quadloom.model.subscription import Subscription
from quadloom.stores.protocols.outbox import Outbox
from quadloom.subscriptions.deliver import NoticeMessage, message
from quadloom.subscriptions.notify import difference
from quadloom.subscriptions.registry import add_subscription, checked, read_subscriptions, remove_subscription
from quadloom.subscriptions.retention import TrimReport, trim_notices, trimmed_notices


class NoticeBoard(WarehouseQueries):
    """The part of a warehouse that tells people of changes."""

    outbox: Outbox

    def subscriptions(self) -> list[Subscription]:
        return read_subscriptions(self.catalog)

    def checked(self, subscription: Subscription) -> Subscription:
        """With canonical names. Raises `UsageError` or `QueryError` where it makes no sense; takes no lock."""
        return checked(subscription, lambda: self.queries, self.settings.limits)

    def subscribe(self, subscription: Subscription) -> None:
        """Make a checked subscription durable, and ask for the pages it names. Raises `UsageError`."""
        add_subscription(
            subscription, catalog=self.catalog, outbox=self.outbox, frontier=self.frontier, now=time.time()
        )

    def unsubscribe(self, id: str) -> None:
        remove_subscription(id, catalog=self.catalog, outbox=self.outbox)

    def trim_notices(self) -> TrimReport:
        """Drop notices that are older than `subscriptions.keep` says."""
        return trim_notices(self.catalog, self.outbox, self.settings.subscriptions, time.time())

    def trimmed_notices(self) -> set[int]:
        """Ids of those that `trim_notices` would drop; drops nothing."""
        return trimmed_notices(self.catalog, self.outbox, self.settings.subscriptions, time.time())

    def notices(self, since: int = 0, *, subscription: str = "", limit: int = 1000) -> list[NoticeMessage]:
        """Notices after an id, oldest first, each with what was added and removed."""
        return self._told(self.outbox.since(since, limit=limit, subscription=subscription))

    def newest_notices(self, *, subscription: str = "", limit: int = 100) -> list[NoticeMessage]:
        """The last ones, oldest first. Looks further and further back, since a subscription's ids have gaps."""
        last, span = self.outbox.last_id(), limit
        found: list[Notice] = []
        while last > 0:
            begin = max(last - span, 0)
            found = self.outbox.since(begin, limit=span, subscription=subscription)
            if begin == 0 or len(found) >= limit:
                break
            span *= 4
        return self._told(found[-limit:])

    def _told(self, notices: list[Notice]) -> list[NoticeMessage]:
        names = {item.id: item.name for item in self.subscriptions()}
        return [
            message(notice, difference(notice, self.archive, self.settings), names.get(notice.subscription, ""))
            for notice in notices
        ]
