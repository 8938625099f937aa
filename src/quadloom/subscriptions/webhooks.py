"""Webhooks: notices from the outbox to their subscribers, at least once, in order, signed.

A receiver gets one POST per notice with a JSON body. Headers follow the Standard Webhooks convention, so receivers can
use its libraries: `webhook-id` is the notice's id, `webhook-timestamp` the time of this attempt, and
`webhook-signature` an HMAC over both and the body if the subscription has a secret; a recorded request cannot be
replayed later. Any answer but a 2xx is followed by another attempt, after growing pauses; later notices of the same
subscription wait, so that the order is kept.

A receiver's progress is durable after every answer. A crash between the answer and that write repeats one delivery,
which the receiver recognizes by the id. Receivers are served in parallel, so a slow or silent one delays the others by
at most the rest of a turn. Requests go through the guarded client, because a webhook could otherwise point at a private
network.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from quadloom.errors import UsageError
from quadloom.fetching.politeness import retry_after
from quadloom.fetching.transport import ACCEPT_ANY, FetchRequest, Result, Transport
from quadloom.model.notice import Notice
from quadloom.model.page import Failure
from quadloom.model.subscription import Subscription
from quadloom.stores.protocols.outbox import Delivery
from quadloom.stores.protocols.quads import Difference

LINES = 1000  # statements or rows in one message; `more` counts the rest
_TURN_SECONDS = 5.0  # then nothing new is sent, and the turn ends when all requests are answered
_BATCH = 20  # notices read from the outbox at once
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 3600.0
_ANSWER_BYTES = 4096  # of a receiver's answer, which is not used
_BASE64_PREFIX = "whsec_"


class NoticeMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A notice as a receiver reads it: in a webhook's body, an event stream, or `quadloom changes --json`."""

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


class DeliveryOutbox(Protocol):
    """The part of the outbox that delivery needs."""

    def last_id(self) -> int: ...

    def since(self, id: int, *, limit: int = 1000, subscription: str = "") -> list[Notice]: ...

    def delivery(self, subscription: str) -> Delivery: ...

    def put_delivery(self, delivery: Delivery) -> None: ...


class _DeliveryRound:
    """The deliveries of one subscription in one turn."""

    __slots__ = ("delivery", "notices", "subscription")

    def __init__(self, subscription: Subscription, delivery: Delivery) -> None:
        self.subscription = subscription
        self.delivery = delivery
        self.notices: deque[Notice] = deque()


class WebhookDeliverer:
    """Sends notices to webhooks, over `transport`. `difference` computes what a notice reports."""

    def __init__(
        self,
        outbox: DeliveryOutbox,
        transport: Transport,
        difference: Callable[[Notice], Difference],
        clock: Callable[[], float],
    ) -> None:
        self._outbox = outbox
        self._transport = transport
        self._difference = difference
        self._clock = clock
        self._ends_at = 0.0
        self._acknowledged = 0
        self._last = 0
        self._idle: dict[str, int] = {}  # subscription → last id of the outbox when all its notices were delivered
        self._retry_at: dict[str, float] = {}

    def turn(self, subscriptions: Sequence[Subscription]) -> int:
        """Send what is due. Returns how many notices were acknowledged."""
        self._acknowledged = 0
        self._ends_at = self._clock() + _TURN_SECONDS
        self._last = self._outbox.last_id()
        for subscription in subscriptions:
            id = subscription.id
            if subscription.webhook and self._idle.get(id) != self._last and self._is_due(self._retry_at.get(id, 0.0)):
                delivery = self._outbox.delivery(id)
                if self._is_due(delivery.retry_at):
                    self._send_next(_DeliveryRound(subscription, delivery))
                else:
                    self._retry_at[id] = delivery.retry_at
        while self._transport.in_flight:
            self._transport.step(1.0)
        return self._acknowledged

    def _is_due(self, retry_at: float) -> bool:
        return retry_at <= self._clock()

    def _send_next(self, round: _DeliveryRound) -> None:
        if self._clock() >= self._ends_at:
            return
        if not round.notices:
            id = round.subscription.id
            round.notices.extend(self._outbox.since(round.delivery.delivered, limit=_BATCH, subscription=id))
        if not round.notices:
            self._idle[round.subscription.id] = self._last
            return
        notice = round.notices.popleft()
        body = msgspec.json.encode(message(notice, self._difference(notice), round.subscription.name))
        request = FetchRequest(
            href=round.subscription.webhook,
            accept=ACCEPT_ANY,
            method="POST",
            payload=body,
            headers=headers_of(notice.id, body, round.subscription.secret, self._clock()),
            max_bytes=_ANSWER_BYTES,
        )
        self._transport.submit(request, lambda result: self._answered(round, notice, result))

    def _answered(self, round: _DeliveryRound, notice: Notice, result: Result) -> None:
        if isinstance(result, Failure) or not 200 <= result.status < 300:
            postponed = _postponed(round.delivery, result, self._clock())
            self._retry_at[round.subscription.id] = postponed.retry_at
            self._outbox.put_delivery(postponed)
            return
        lost = round.delivery.lost
        round.delivery = Delivery(subscription=round.subscription.id, delivered=notice.id, lost=lost)
        self._outbox.put_delivery(round.delivery)
        self._acknowledged += 1
        self._send_next(round)


def _postponed(delivery: Delivery, result: Result, now: float) -> Delivery:
    """After a failure: twice the last pause, or the receiver's Retry-After if that is longer, up to an hour."""
    pause = _FIRST_PAUSE * 2.0 ** min(delivery.attempts, 20)
    if isinstance(result, Failure):
        error, wanted = result.message, result.retry_after
    else:
        error, wanted = f"HTTP {result.status}", retry_after(result.header("retry-after"), now)
    pause = min(max(pause, wanted or 0.0), _LONGEST_PAUSE)
    return msgspec.structs.replace(delivery, attempts=delivery.attempts + 1, retry_at=now + pause, error=error[:500])


def message(notice: Notice, difference: Difference, name: str = "") -> NoticeMessage:
    """A notice with its difference: at most `LINES` added and `LINES` removed lines."""
    cut = max(len(difference.added) - LINES, 0) + max(len(difference.removed) - LINES, 0)
    return NoticeMessage(
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


def headers_of(id: int, body: bytes, secret: str, now: float) -> tuple[tuple[str, str], ...]:
    name, moment = str(id), int(now)
    headers = (("Content-Type", "application/json"), ("webhook-id", name), ("webhook-timestamp", str(moment)))
    return (*headers, ("webhook-signature", signature(name, moment, body, secret))) if secret else headers


def signature(id: str, moment: int, body: bytes, secret: str) -> str:
    """`v1,` and the HMAC-SHA256 of `id.moment.body` in Base64."""
    signed = f"{id}.{moment}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key_of(secret), signed, hashlib.sha256).digest()).decode()


def key_of(secret: str) -> bytes:
    """The bytes of a secret: its text, or what follows `whsec_` in Base64. Raises `UsageError` if that is not
    Base64."""
    if not secret.startswith(_BASE64_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_BASE64_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise UsageError(
            f"the secret begins with {_BASE64_PREFIX} but is not Base64",
            hint=f"correct it, or use a secret without {_BASE64_PREFIX}",
        ) from None
