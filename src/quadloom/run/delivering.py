"""Webhooks: notices from the outbox to whoever asked for them, at least once, in order, signed.

A receiver gets one POST per notice with a JSON body, the notice's id, and an HMAC of the body if the subscription has a
secret. Anything but a 2xx answer is tried again with growing pauses; later notices of the same subscription wait, so
that none overtakes another. The receiver's progress is durable after every answer: a crash between the answer and that
write repeats one delivery, which the id tells. Requests go through the guarded client, since a webhook
could otherwise be pointed at a private network.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from quadloom.errors import FetchError
from quadloom.model.notice import Notice
from quadloom.model.page import Page
from quadloom.scheduling.subscriptions import Subscription
from quadloom.stores.outbox import Delivery
from quadloom.stores.protocols import Difference

LINES = 1000  # statements or rows in one message; `more` counts the rest
_AT_ONCE = 20  # notices of one subscription per turn: a slow receiver must not hold up the others
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 3600.0


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What a receiver reads: in a webhook's body, in an event stream, from `quadloom changes --json`."""

    id: int
    subscription: str
    name: str = ""
    at: str
    kind: str
    url: str = ""
    title: str = ""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    more: int = 0


class Progress(Protocol):
    """The part of the outbox that delivery needs."""

    def since(self, id: int, *, limit: int = 1000, subscription: str = "") -> list[Notice]: ...

    def delivery(self, subscription: str) -> Delivery: ...

    def put_delivery(self, delivery: Delivery) -> None: ...


Post = Callable[[str, bytes, tuple[tuple[str, str], ...]], Page]


class Delivering:
    """`post(url, body, headers)` sends, and raises `FetchError`; `difference` says what a notice is about."""

    def __init__(self, progress: Progress, post: Post, difference: Callable[[Notice], Difference]) -> None:
        self._progress = progress
        self._post = post
        self._difference = difference

    def turn(self, subscriptions: Sequence[Subscription], now: float) -> int:
        """Send what is due. Returns how many notices were acknowledged."""
        return sum(self._turn_of(item, now) for item in subscriptions if item.webhook)

    def _turn_of(self, subscription: Subscription, now: float) -> int:
        delivery = self._progress.delivery(subscription.id)
        if delivery.retry_at > now:
            return 0
        done = 0
        for notice in self._progress.since(delivery.delivered, limit=_AT_ONCE, subscription=subscription.id):
            error = self._send(subscription, notice)
            if error:
                pause = min(_FIRST_PAUSE * 2.0 ** min(delivery.attempts, 20), _LONGEST_PAUSE)
                self._progress.put_delivery(
                    msgspec.structs.replace(
                        delivery, attempts=delivery.attempts + 1, retry_at=now + pause, error=error[:500]
                    )
                )
                break
            delivery = Delivery(subscription=subscription.id, delivered=notice.id)
            self._progress.put_delivery(delivery)
            done += 1
        return done

    def _send(self, subscription: Subscription, notice: Notice) -> str:
        """Empty = acknowledged, else what went wrong."""
        body = msgspec.json.encode(message(notice, self._difference(notice), subscription.name))
        try:
            answer = self._post(subscription.webhook, body, headers_of(notice, body, subscription.secret))
        except FetchError as error:
            return error.message
        return "" if 200 <= answer.status < 300 else f"HTTP {answer.status}"


def message(notice: Notice, difference: Difference, name: str = "") -> Message:
    """A notice with what it is about, cut at `LINES` each way."""
    cut = max(len(difference.added) - LINES, 0) + max(len(difference.removed) - LINES, 0)
    return Message(
        id=notice.id,
        subscription=notice.subscription,
        name=name,
        at=datetime.fromtimestamp(notice.at, UTC).isoformat(),
        kind=notice.kind,
        url=notice.url,
        title=notice.title,
        added=difference.added[:LINES],
        removed=difference.removed[:LINES],
        more=notice.more + cut,
    )


def headers_of(notice: Notice, body: bytes, secret: str) -> tuple[tuple[str, str], ...]:
    headers = (("Content-Type", "application/json"), ("Quadloom-Notice", str(notice.id)))
    return (*headers, ("Quadloom-Signature", signature(body, secret))) if secret else headers


def signature(body: bytes, secret: str) -> str:
    """`sha256=` and the HMAC of the body in hexadecimal, as receivers of other services know it."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
