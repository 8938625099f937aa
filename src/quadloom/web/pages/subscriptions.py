"""`/subscriptions`, who is told of which changes, and `/changes.*`, what there was to tell, as JSON and as a feed.

Secrets and addresses of webhooks are shown to nobody.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from starlette.responses import Response

from quadloom.model.subscription import Subscription
from quadloom.subscriptions.deliver import NoticeMessage
from quadloom.subscriptions.feed import atom
from quadloom.subscriptions.registry import state_of
from quadloom.subscriptions.standing_queries import trouble_of
from quadloom.warehouse import Warehouse
from quadloom.web.server.rendering import json_response
from quadloom.web.server.requests import ViewResponse, WebRequest

_NOTICES = 200


class SubscriptionView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    urls: tuple[str, ...]
    sites: tuple[str, ...]
    types: tuple[str, ...]
    query: str
    has_webhook: bool
    created_at: float
    state: str  # `ok`, or what is wrong with the query or the webhook


def subscriptions_page(ask: WebRequest) -> ViewResponse:
    found = [_public(item, _state(ask.warehouse, item.id)) for item in ask.warehouse.subscriptions()]
    return ViewResponse("subscriptions.html", {"subscriptions": found})


def changes(ask: WebRequest) -> Response:
    """Notices after `since`, oldest first; give the last id back to go on."""
    return json_response({"notices": _notices(ask)})


def changes_feed(ask: WebRequest) -> Response:
    """The newest notices, or those after `since`. Entries are named by our public address where there is one, so they
    stay the same for whoever reads the feed by another name."""
    public = ask.desk.settings.web.public_url.rstrip("/")
    url = f"{public}/changes.atom" if public else str(ask.request.url.replace(query="", fragment=""))
    now = datetime.fromtimestamp(ask.desk.clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = _notices(ask) if ask.text("since") else _newest(ask)
    feed = atom(found, title="Changes that Quadloom found", self_url=url, updated=now)
    return Response(feed, media_type="application/atom+xml")


def _notices(ask: WebRequest) -> list[NoticeMessage]:
    since = ask.number("since", 0, low=0, high=1 << 62)
    return ask.warehouse.notices(since, subscription=ask.text("subscription"), limit=_NOTICES)


def _newest(ask: WebRequest) -> list[NoticeMessage]:
    return ask.warehouse.newest_notices(subscription=ask.text("subscription"), limit=_NOTICES)


def _state(warehouse: Warehouse, id: str) -> str:
    delivery = warehouse.outbox.delivery(id)
    if delivery.error:  # it may name the webhook's address
        delivery = msgspec.structs.replace(delivery, error="`quadloom subscribe list` says why")
    return state_of(delivery, trouble_of(warehouse.catalog, id))


def _public(item: Subscription, state: str) -> SubscriptionView:
    return SubscriptionView(
        id=item.id, name=item.name, urls=item.urls, sites=item.sites, types=item.types, query=item.query,
        has_webhook=bool(item.webhook), created_at=item.created_at, state=state,
    )  # fmt: skip
