"""`/subscriptions`, the subscriptions to changes, and `/changes.*`, their notices as JSON and as a feed.

Secrets and addresses of webhooks are never shown.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict
from starlette.responses import Response

from quadloom.crawling.subscriptions.feed import atom
from quadloom.crawling.subscriptions.registry import state_of
from quadloom.crawling.subscriptions.standing_queries import failure_of
from quadloom.crawling.subscriptions.webhooks import NoticeMessage
from quadloom.model.subscription import Subscription
from quadloom.model.timestamps import iso_time
from quadloom.warehouse import Warehouse
from quadloom.web.server.rendering import json_response
from quadloom.web.server.requests import ViewResponse, WebRequest

_MAX_NOTICES = 200


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


def subscriptions_page(request: WebRequest) -> ViewResponse:
    found = [_public(item, _state(request.warehouse, item.id)) for item in request.warehouse.subscriptions.all()]
    return ViewResponse("subscriptions.html", {"subscriptions": found})


def changes(request: WebRequest) -> Response:
    """Notices after `since`, oldest first; send the last id as `since` to continue."""
    return json_response({"notices": _notices(request)})


def changes_feed(request: WebRequest) -> Response:
    """The newest notices, or those after `since`. Ids of entries begin with `web.public_url` if it is set, so they are
    the same for readers who reach the feed by another name."""
    public = request.site.settings.web.public_url.rstrip("/")
    url = f"{public}/changes.atom" if public else str(request.http.url.replace(query="", fragment=""))
    now = iso_time(request.site.clock())
    found = _notices(request) if request.text("since") else _newest(request)
    feed = atom(found, title="Changes found by Quadloom", self_url=url, updated=now)
    return Response(feed, media_type="application/atom+xml")


def _notices(request: WebRequest) -> list[NoticeMessage]:
    since = request.number("since", 0, low=0, high=1 << 62)
    return request.warehouse.subscriptions.notices(since, subscription=request.text("subscription"), limit=_MAX_NOTICES)


def _newest(request: WebRequest) -> list[NoticeMessage]:
    return request.warehouse.subscriptions.newest_notices(subscription=request.text("subscription"), limit=_MAX_NOTICES)


def _state(warehouse: Warehouse, id: str) -> str:
    delivery = warehouse.stores.outbox.delivery(id)
    if delivery.error:  # the error may contain the webhook's address
        delivery = msgspec.structs.replace(delivery, error="`quadloom subscribe list` shows why")
    return state_of(delivery, failure_of(warehouse.stores.catalog, id))


def _public(item: Subscription, state: str) -> SubscriptionView:
    known = {name: value for name, value in asdict(item).items() if name in SubscriptionView.__struct_fields__}
    return SubscriptionView(**known, has_webhook=bool(item.webhook), state=state)
