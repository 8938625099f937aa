"""The list of subscriptions: what may be subscribed to, and what begins and ends with it.

`checked` does all that may take time or fail, before the crawl's own thread is troubled; `add_subscription` then is one
transaction: the subscription, the place in the outbox where its webhook begins, and a wish to read its pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from quadloom.asking.sparql.service import QueryService
from quadloom.errors import NothingFound, UsageError
from quadloom.model.link import Discovery
from quadloom.model.subscription import Subscription
from quadloom.model.url import Url
from quadloom.phases.extract import seed_discoveries
from quadloom.settings import LimitSettings
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier
from quadloom.stores.protocols.outbox import Delivery, Outbox
from quadloom.subscriptions.deliver import key_of
from quadloom.subscriptions.standing_queries import StandingQueryFailure, forget, parse
from quadloom.syntaxes.terms import iri

MOST = 10_000  # subscriptions of a warehouse
NAMES = 10_000  # pages, sites and types of one subscription
_SUBSCRIPTIONS = NamedValue("subscriptions", list[Subscription])
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def checked(subscription: Subscription, queries: Callable[[], QueryService], limits: LimitSettings) -> Subscription:
    """The subscription with canonical names. Raises `UsageError` or `QueryError` for what makes no sense."""
    subscription.check()
    if not _ID.fullmatch(subscription.id):
        raise UsageError(
            f"{subscription.id[:80]!r} cannot be an id", hint="up to 64 letters, digits, dots, hyphens, underscores"
        )
    names = len(subscription.urls) + len(subscription.sites) + len(subscription.types)
    if names > NAMES:
        raise UsageError(f"{names} pages, sites and types in one subscription", hint=f"{NAMES} at most: use several")
    for name in subscription.types:
        if iri(name) is None:
            raise UsageError(f"{name[:200]!r} is not an IRI", hint="give a class as schema:Event or as a full IRI")
    if subscription.webhook:
        Url.parse(subscription.webhook)
        key_of(subscription.secret)
    if subscription.query:
        parse(queries(), subscription.query, limits)
    return msgspec.structs.replace(
        subscription,
        urls=tuple(dict.fromkeys(Url.parse(text).key for text in subscription.urls)),
        sites=tuple(dict.fromkeys(_site(text) for text in subscription.sites)),
    )


def read_subscriptions(catalog: Catalog) -> list[Subscription]:
    return _SUBSCRIPTIONS.get(catalog) or []


def add_subscription(
    subscription: Subscription, *, catalog: Catalog, outbox: Outbox, frontier: Frontier, now: float
) -> None:
    """Make a `checked` one durable. It hears of what changes from now on; pages never read yet are asked for first."""
    existing = read_subscriptions(catalog)
    if any(item.id == subscription.id for item in existing):
        raise UsageError(f"there is a subscription {subscription.id!r} already", hint="choose another --id")
    if len(existing) >= MOST:
        raise UsageError(f"there are {len(existing)} subscriptions already", hint="remove some: `subscribe remove ID`")
    with catalog.transaction():
        _SUBSCRIPTIONS.put(catalog, [*existing, subscription])
        outbox.put_delivery(Delivery(subscription=subscription.id, delivered=outbox.last_id()))
        fresh = _unknown(subscription.urls, frontier, now)
        if fresh:
            frontier.request(fresh, now)


def remove_subscription(id: str, *, catalog: Catalog, outbox: Outbox) -> None:
    """Its notices stay in the outbox until they are trimmed; nothing else of it does."""
    existing = read_subscriptions(catalog)
    kept = [item for item in existing if item.id != id]
    if len(kept) == len(existing):
        raise NothingFound(f"there is no subscription {id!r}", hint="`quadloom subscribe list` shows all")
    with catalog.transaction():
        _SUBSCRIPTIONS.put(catalog, kept)
        outbox.forget_delivery(id)
        forget(catalog, id)


def state_of(delivery: Delivery, trouble: StandingQueryFailure | None) -> str:
    """How a subscription fares, in words: `ok`, or what is wrong with its query or its webhook."""
    wrong = []
    if trouble is not None:
        wrong.append(f"query fails since {date(trouble.since)}, next try {date(trouble.retry_at)}: {trouble.error}")
    if delivery.error:
        wrong.append(f"webhook fails, next try {date(delivery.retry_at)}: {delivery.error}")
    if delivery.lost:
        wrong.append(f"{delivery.lost} notices lost")
    return "; ".join(wrong) or "ok"


def date(at: float) -> str:
    """A moment for people."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _unknown(urls: Sequence[str], frontier: Frontier, now: float) -> list[Discovery]:
    """Who subscribes to a page wants it read, in scope or not, as with `quadloom refresh`."""
    found = seed_discoveries(urls, kind="published", priority=0)
    return [item for item in found if frontier.explain(item.key, now) is None]


def _site(text: str) -> str:
    """A site as hosts are written: `https://Example.org/` and `example.org` are one."""
    text = text.strip()
    return Url.parse(text if "://" in text else f"https://{text}").host
