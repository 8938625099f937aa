"""The list of subscriptions: what can be subscribed to, and what happens when one is added or removed.

`checked` does everything that may take time or fail, outside the crawl's own thread. `add_subscription` is then one
transaction: the subscription, the position in the outbox where its webhook begins, and requests for its pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from quadloom.crawling.subscriptions.standing_queries import StandingQueryFailure, forget, parse
from quadloom.crawling.subscriptions.webhooks import key_of
from quadloom.documents.extract import seed_discoveries
from quadloom.documents.syntaxes.terms import iri
from quadloom.errors import NothingFound, UsageError
from quadloom.model.link import Discovery
from quadloom.model.subscription import Subscription
from quadloom.model.timestamps import readable_time
from quadloom.model.url import Url
from quadloom.settings import LimitSettings
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier
from quadloom.stores.protocols.outbox import Delivery, Outbox

if TYPE_CHECKING:
    from quadloom.asking.sparql.service import QueryService

MOST = 10_000  # subscriptions of a warehouse
NAMES = 10_000  # pages, sites and types of one subscription
_SUBSCRIPTIONS = NamedValue("subscriptions", list[Subscription])
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def checked(subscription: Subscription, queries: Callable[[], QueryService], limits: LimitSettings) -> Subscription:
    """The subscription with canonical names. Raises `UsageError` or `QueryError` if it is not valid."""
    subscription.check()
    if not _ID.fullmatch(subscription.id):
        raise UsageError(
            f"{subscription.id[:80]!r} cannot be an id", hint="up to 64 letters, digits, dots, hyphens, underscores"
        )
    names = len(subscription.urls) + len(subscription.sites) + len(subscription.types)
    if names > NAMES:
        raise UsageError(
            f"the subscription has {names} pages, sites and types; at most {NAMES} are allowed",
            hint="divide it into several subscriptions",
        )
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
    """Store a `checked` subscription. It covers changes from now on; pages that were never read are requested."""
    existing = read_subscriptions(catalog)
    if any(item.id == subscription.id for item in existing):
        raise UsageError(f"a subscription {subscription.id!r} already exists", hint="choose another --id")
    if len(existing) >= MOST:
        raise UsageError(f"there are already {len(existing)} subscriptions", hint="remove some: `subscribe remove ID`")
    with catalog.transaction():
        _SUBSCRIPTIONS.put(catalog, [*existing, subscription])
        outbox.put_delivery(Delivery(subscription=subscription.id, delivered=outbox.last_id()))
        fresh = _unknown(subscription.urls, frontier, now)
        if fresh:
            frontier.request(fresh, now)


def remove_subscription(id: str, *, catalog: Catalog, outbox: Outbox) -> None:
    """Delete everything about a subscription but its notices, which stay in the outbox until they are trimmed."""
    existing = read_subscriptions(catalog)
    remaining = [item for item in existing if item.id != id]
    if len(remaining) == len(existing):
        raise NothingFound(f"there is no subscription {id!r}", hint="`quadloom subscribe list` shows all")
    with catalog.transaction():
        _SUBSCRIPTIONS.put(catalog, remaining)
        outbox.forget_delivery(id)
        forget(catalog, id)


def state_of(delivery: Delivery, failure: StandingQueryFailure | None) -> str:
    """The state of a subscription: `ok`, or what is wrong with its query or its webhook."""
    problems = []
    if failure is not None:
        times = f"since {readable_time(failure.since)}, next try {readable_time(failure.retry_at)}"
        problems.append(f"query has failed {times}: {failure.error}")
    if delivery.error:
        problems.append(f"webhook fails, next try {readable_time(delivery.retry_at)}: {delivery.error}")
    if delivery.lost:
        problems.append(f"{delivery.lost} notices lost")
    return "; ".join(problems) or "ok"


def _unknown(urls: Sequence[str], frontier: Frontier, now: float) -> list[Discovery]:
    """Pages to request: those never seen before, in scope or not, as with `quadloom refresh`."""
    found = seed_discoveries(urls, kind="published", priority=0)
    return [item for item in found if frontier.explain(item.key, now) is None]


def _site(text: str) -> str:
    """The host of a site: the same for `https://Example.org/` and `example.org`."""
    text = text.strip()
    return Url.parse(text if "://" in text else f"https://{text}").host
