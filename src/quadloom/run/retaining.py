"""How long notices stay: `subscriptions.keep`, and longer while a live webhook has not taken them.

Notices are kept for readers that come back (`quadloom changes --since`, feeds), and they hold archived versions of
pages, which `quadloom prune` leaves alone as long as a notice names them. So they must go at some time. What a webhook
has not acknowledged yet outlives `keep`, up to `subscriptions.keep_undelivered`; a receiver that is silent for longer
loses notices, and its delivery says how many.
"""

from __future__ import annotations

import msgspec

from quadloom.run.subscribing import read_subscriptions
from quadloom.settings import Subscriptions, length_of
from quadloom.stores.outbox import Outbox
from quadloom.stores.protocols import Catalog

_TOGETHER = 1000


class Trimmed(msgspec.Struct, frozen=True):
    """`lost`: of `dropped`, those that a webhook had not taken, by subscription."""

    dropped: int = 0
    lost: dict[str, int] = {}


def trim_notices(catalog: Catalog, outbox: Outbox, settings: Subscriptions, now: float) -> Trimmed:
    """Drop what is too old; one transaction."""
    keep = length_of("subscriptions.keep", settings.keep)
    longest = max(length_of("subscriptions.keep_undelivered", settings.keep_undelivered), keep)
    dropped, lost = 0, {}
    with catalog.transaction():
        deliveries = [outbox.delivery(item.id) for item in read_subscriptions(catalog) if item.webhook]
        for delivery in deliveries if now - longest > 0 else ():
            late = _older(outbox, delivery.subscription, delivery.delivered, now - longest)
            if late:
                lost[delivery.subscription] = late
                outbox.put_delivery(msgspec.structs.replace(delivery, lost=delivery.lost + late))
        if now - longest > 0:
            dropped += outbox.trim(now - longest)
        if now - keep > 0:
            waiting = {delivery.subscription: delivery.delivered for delivery in deliveries}
            dropped += outbox.trim(now - keep, waiting=waiting)
    return Trimmed(dropped, lost)


def _older(outbox: Outbox, subscription: str, after: int, before: float) -> int:
    """Notices of a subscription after an id and before a time."""
    count = 0
    while notices := outbox.since(after, limit=_TOGETHER, subscription=subscription):
        late = sum(notice.at < before for notice in notices)
        count += late
        if not late:
            break
        after = notices[-1].id
    return count
