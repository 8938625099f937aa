"""How long notices stay: `subscriptions.keep`, and longer while a live webhook has not taken them.

Notices are kept for readers that come back (`quadloom changes --since`, feeds), and they hold archived versions of
pages, which `quadloom prune` leaves alone as long as a notice names them. So they must go at some time. What a webhook
has not acknowledged yet outlives `keep`, up to `subscriptions.keep_undelivered`; a receiver that is silent for longer
loses notices, and its delivery says how many.
"""

from __future__ import annotations

import msgspec

from quadloom.settings import SubscriptionSettings, length_of
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.outbox import Delivery, Outbox, is_trimmed
from quadloom.subscriptions.registry import read_subscriptions

_TOGETHER = 1000


class TrimReport(msgspec.Struct, frozen=True):
    """`lost`: of `dropped`, those that a webhook had not taken, by subscription."""

    dropped: int = 0
    lost: dict[str, int] = {}


class _Terms(msgspec.Struct, frozen=True):
    """Unix times before which notices go: `taken` those that no webhook waits for, `all` the others too."""

    taken: float
    all: float
    webhooks: tuple[Delivery, ...]

    @property
    def waiting(self) -> dict[str, int]:
        return {delivery.subscription: delivery.delivered for delivery in self.webhooks}


def trim_notices(catalog: Catalog, outbox: Outbox, settings: SubscriptionSettings, now: float) -> TrimReport:
    """Drop what is too old; one transaction."""
    lost = {}
    with catalog.transaction():
        terms = _terms(catalog, outbox, settings, now)
        for delivery in terms.webhooks:
            late = _older(outbox, delivery.subscription, delivery.delivered, terms.all)
            if late:
                lost[delivery.subscription] = late
                outbox.put_delivery(msgspec.structs.replace(delivery, lost=delivery.lost + late))
        dropped = outbox.trim(terms.all) + outbox.trim(terms.taken, waiting=terms.waiting)
    return TrimReport(dropped, lost)


def trimmed_notices(catalog: Catalog, outbox: Outbox, settings: SubscriptionSettings, now: float) -> set[int]:
    """Ids of what `trim_notices` would drop; drops nothing."""
    terms = _terms(catalog, outbox, settings, now)
    waiting = terms.waiting
    found: set[int] = set()
    last = 0
    while notices := outbox.since(last, limit=_TOGETHER):
        last = notices[-1].id
        found.update(n.id for n in notices if is_trimmed(n, terms.all) or is_trimmed(n, terms.taken, waiting))
    return found


def _terms(catalog: Catalog, outbox: Outbox, settings: SubscriptionSettings, now: float) -> _Terms:
    keep = length_of("subscriptions.keep", settings.keep)
    longest = max(length_of("subscriptions.keep_undelivered", settings.keep_undelivered), keep)
    webhooks = tuple(outbox.delivery(item.id) for item in read_subscriptions(catalog) if item.webhook)
    return _Terms(now - keep, now - longest, webhooks)


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
