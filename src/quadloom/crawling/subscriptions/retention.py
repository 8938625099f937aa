"""How long notices stay: `subscriptions.keep`, and longer while an active webhook has not received them.

Notices are stored for readers that come back (`quadloom changes --since`, feeds). They refer to archived versions of
pages, which `quadloom prune` does not delete as long as a notice names them, so notices must go at some time. A notice
that a webhook has not acknowledged stays beyond `keep`, up to `subscriptions.keep_undelivered`; a receiver that is
silent for longer loses notices, and its delivery record says how many.
"""

from __future__ import annotations

import msgspec

from quadloom.crawling.subscriptions.registry import read_subscriptions
from quadloom.settings import SubscriptionSettings, length_of
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.outbox import Delivery, Outbox, is_trimmed

_BATCH = 1000


class TrimReport(msgspec.Struct, frozen=True):
    """`lost`: those of `dropped` that a webhook had not received, by subscription."""

    dropped: int = 0
    lost: dict[str, int] = {}


class _Cutoffs(msgspec.Struct, frozen=True):
    """Older notices are dropped. `delivered`: for notices that no webhook waits for; `all`: for the others, too."""

    delivered: float  # unix times
    all: float
    webhooks: tuple[Delivery, ...]

    @property
    def waiting(self) -> dict[str, int]:
        return {delivery.subscription: delivery.delivered for delivery in self.webhooks}


def trim_notices(catalog: Catalog, outbox: Outbox, settings: SubscriptionSettings, now: float) -> TrimReport:
    """Drop notices that are too old, in one transaction."""
    lost = {}
    with catalog.transaction():
        cutoffs = _cutoffs(catalog, outbox, settings, now)
        for delivery in cutoffs.webhooks:
            late = _older(outbox, delivery.subscription, delivery.delivered, cutoffs.all)
            if late:
                lost[delivery.subscription] = late
                outbox.put_delivery(msgspec.structs.replace(delivery, lost=delivery.lost + late))
        dropped = outbox.trim(cutoffs.all) + outbox.trim(cutoffs.delivered, waiting=cutoffs.waiting)
    return TrimReport(dropped, lost)


def trimmed_notices(catalog: Catalog, outbox: Outbox, settings: SubscriptionSettings, now: float) -> set[int]:
    """Ids of the notices that `trim_notices` would drop; drops nothing."""
    cutoffs = _cutoffs(catalog, outbox, settings, now)
    waiting = cutoffs.waiting
    found: set[int] = set()
    last = 0
    while notices := outbox.since(last, limit=_BATCH):
        last = notices[-1].id
        found.update(n.id for n in notices if is_trimmed(n, cutoffs.all) or is_trimmed(n, cutoffs.delivered, waiting))
    return found


def _cutoffs(catalog: Catalog, outbox: Outbox, settings: SubscriptionSettings, now: float) -> _Cutoffs:
    keep = length_of("subscriptions.keep", settings.keep)
    longest = max(length_of("subscriptions.keep_undelivered", settings.keep_undelivered), keep)
    webhooks = tuple(outbox.delivery(item.id) for item in read_subscriptions(catalog) if item.webhook)
    return _Cutoffs(now - keep, now - longest, webhooks)


def _older(outbox: Outbox, subscription: str, after: int, before: float) -> int:
    """The number of notices of a subscription after an id and before a time."""
    count = 0
    while notices := outbox.since(after, limit=_BATCH, subscription=subscription):
        late = sum(notice.at < before for notice in notices)
        count += late
        if not late:
            break
        after = notices[-1].id
    return count
