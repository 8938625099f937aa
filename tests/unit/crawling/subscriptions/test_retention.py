"""Notices stay as long as a reader may come back for them, and no longer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from quadloom.crawling.subscriptions.registry import add_subscription, remove_subscription
from quadloom.crawling.subscriptions.retention import TrimReport, trim_notices, trimmed_notices
from quadloom.errors import SettingsError
from quadloom.model.event import Notice
from quadloom.model.subscription import Subscription
from quadloom.settings import SubscriptionSettings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.protocols.outbox import Delivery
from quadloom_lab.memory.catalog import MemoryCatalog
from quadloom_lab.memory.frontier import MemoryFrontier
from quadloom_lab.memory.outbox import MemoryOutbox

DAY = 86400.0
NOW = 1000 * DAY
SETTINGS = SubscriptionSettings(keep="30d", keep_undelivered="90d")


class Stores:
    def __init__(self) -> None:
        self.frontier = MemoryFrontier(FrontierPolicy(), now=NOW)
        self.catalog = MemoryCatalog(self.frontier)
        self.outbox = MemoryOutbox(self.catalog)
        for id, webhook in (("feed", ""), ("hook", "https://hook.example/")):
            subscription = Subscription(id=id, sites=("a.example",), webhook=webhook)
            add_subscription(
                subscription, catalog=self.catalog, outbox=self.outbox, frontier=self.frontier, now=NOW - 200 * DAY
            )
        for age in (120, 100, 80, 60, 40, 20, 0):  # ids 1, 3, 5 … are the feed's, 2, 4, 6 … the hook's
            at = NOW - age * DAY
            self.outbox.append([Notice(at=at, subscription=id, kind="new") for id in ("feed", "hook")])

    def trim(self, settings: SubscriptionSettings = SETTINGS) -> TrimReport:
        """`trimmed_notices` names what `trim_notices` drops."""
        announced = trimmed_notices(self.catalog, self.outbox, settings, NOW)
        before = {notice.id for notice in self.outbox.since(0)}
        trimmed = trim_notices(self.catalog, self.outbox, settings, NOW)
        assert announced == before - {notice.id for notice in self.outbox.since(0)}
        return trimmed

    def ages(self, id: str) -> list[int]:
        return [round((NOW - notice.at) / DAY) for notice in self.outbox.since(0, subscription=id)]


@pytest.fixture
def stores() -> Stores:
    return Stores()


def test_notices_without_a_webhook_go_after_the_time_to_keep(stores: Stores) -> None:
    stores.outbox.put_delivery(Delivery(subscription="hook", delivered=14))
    assert stores.trim() == TrimReport(10)
    assert stores.ages("feed") == stores.ages("hook") == [20, 0]
    assert stores.trim() == TrimReport(0)


def test_undelivered_notices_stay_longer(stores: Stores) -> None:
    stores.outbox.put_delivery(Delivery(subscription="hook", delivered=6, attempts=9, error="HTTP 503"))
    assert stores.trim() == TrimReport(5 + 3)
    assert stores.ages("feed") == [20, 0]
    assert stores.ages("hook") == [60, 40, 20, 0]
    assert stores.outbox.delivery("hook").lost == 0


def test_a_receiver_that_is_silent_too_long_loses_notices_and_that_is_counted(stores: Stores) -> None:
    assert stores.trim() == TrimReport(5 + 2, {"hook": 2})
    assert stores.ages("hook") == [80, 60, 40, 20, 0]
    assert stores.outbox.delivery("hook") == Delivery(subscription="hook", lost=2)
    assert stores.trim().lost == {}, "counted once"


def test_a_removed_subscription_holds_no_notices(stores: Stores) -> None:
    remove_subscription("hook", catalog=stores.catalog, outbox=stores.outbox)
    stores.trim()
    assert stores.ages("hook") == [20, 0]


def test_forever_is_forever(stores: Stores) -> None:
    assert stores.trim(replace(SETTINGS, keep="forever")) == TrimReport(0)
    assert len(stores.outbox.since(0)) == 14


def test_an_invalid_duration_is_refused(stores: Stores) -> None:
    for wrong in ("soon", "-1d", ""):
        with pytest.raises(SettingsError, match="keep"):
            stores.trim(replace(SETTINGS, keep=wrong))
