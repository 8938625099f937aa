"""Webhooks: notices from the outbox to their subscribers, at least once, in order, signed.

A receiver gets one POST per notice with a JSON body. Headers follow the Standard Webhooks convention, so receivers can
use its libraries: `webhook-id` is the notice's id, `webhook-timestamp` the time of this attempt, and
`webhook-signature` an HMAC over both and the body if the subscription has a secret; a recorded request cannot be
replayed later. Any answer but a 2xx is followed by another attempt, after growing pauses; later notices of the same
subscription wait, so that the order is kept.

A receiver's progress is durable after every answer. A crash between the answer and that write repeats one delivery,
which the receiver recognizes by the id. Receivers are served in parallel, and memory has a limit however many are due:
`_AT_ONCE` requests and `_BYTES_AT_ONCE`. A slow or silent receiver delays others by at most the time of one request;
then it pauses, and comes after those that answer. A turn begins where the last one ended, so each has its turn.
Requests go through the guarded client, because a webhook could otherwise point at a private network.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import accumulate, takewhile
from typing import Protocol

import msgspec

from quadloom.errors import UsageError
from quadloom.fetching.politeness import retry_after
from quadloom.fetching.transport import ACCEPT_ANY, FetchRequest, Result, Transport
from quadloom.model.event import Notice
from quadloom.model.page import Failure
from quadloom.model.subscription import Subscription
from quadloom.stores.protocols.outbox import Delivery
from quadloom.stores.protocols.quads import Difference

LINES = 1000  # statements or rows in one message, added or removed; `more` counts the rest
_CHARACTERS = 1_000_000  # of these lines: a site may write literals of any length
_TURN_SECONDS = 5.0  # then nothing new is sent, and the turn ends when all requests are answered
_AT_ONCE = 256  # requests in flight; fewer if their messages have more than
_BYTES_AT_ONCE = 32 << 20
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
        self._bytes = 0  # of the messages in flight
        self._waiting: deque[Subscription] = deque()  # of this turn
        self._next = ""  # id of the subscription at which the next turn begins

    def turn(self, subscriptions: Sequence[Subscription]) -> int:
        """Send what is due. Returns how many notices were acknowledged."""
        self._acknowledged = 0
        self._ends_at = self._clock() + _TURN_SECONDS
        self._last = self._outbox.last_id()
        self._waiting = self._in_turn([item for item in subscriptions if item.webhook])
        self._forget_others({item.id for item in self._waiting})
        self._begin_waiting()
        while self._transport.in_flight:
            self._transport.step(1.0)
            self._begin_waiting()
        self._next = self._waiting[0].id if self._waiting else ""
        return self._acknowledged

    def _in_turn(self, subscriptions: list[Subscription]) -> deque[Subscription]:
        """From the one on at which the last turn ended; those whose receivers failed last time come last."""
        begin = next((place for place, item in enumerate(subscriptions) if item.id == self._next), 0)
        rotated = subscriptions[begin:] + subscriptions[:begin]
        return deque(sorted(rotated, key=lambda item: item.id in self._retry_at))

    def _forget_others(self, ids: set[str]) -> None:
        """A subscription that was removed and added again begins without a pause."""
        for known in (self._idle, self._retry_at):
            for id in known.keys() - ids:
                del known[id]

    def _begin_waiting(self) -> None:
        """Begin with as many subscriptions as there is room for."""
        while self._waiting and self._has_room() and self._clock() < self._ends_at:
            subscription = self._waiting.popleft()
            id = subscription.id
            if self._idle.get(id) != self._last and self._is_due(self._retry_at.get(id, 0.0)):
                delivery = self._outbox.delivery(id)
                if self._is_due(delivery.retry_at):
                    self._send_next(_DeliveryRound(subscription, delivery))
                else:
                    self._retry_at[id] = delivery.retry_at

    def _has_room(self) -> bool:
        return self._transport.in_flight < _AT_ONCE and self._bytes < _BYTES_AT_ONCE

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
        self._bytes += len(body)
        self._transport.submit(request, lambda result: self._answered(round, notice, len(body), result))

    def _answered(self, round: _DeliveryRound, notice: Notice, size: int, result: Result) -> None:
        self._bytes -= size
        if not 200 <= result.status < 300:  # of a failure, too: what follows the status is not used
            postponed = _postponed(round.delivery, result, self._clock())
            self._retry_at[round.subscription.id] = postponed.retry_at
            self._outbox.put_delivery(postponed)
            return
        lost = round.delivery.lost
        round.delivery = Delivery(subscription=round.subscription.id, delivered=notice.id, lost=lost)
        self._outbox.put_delivery(round.delivery)
        self._retry_at.pop(round.subscription.id, None)
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
    """A notice with its difference: of the added and the removed lines, as many as a message holds."""
    added, removed = _first(difference.added), _first(difference.removed)
    cut = len(difference.added) - len(added) + len(difference.removed) - len(removed)
    return NoticeMessage(
        id=notice.id,
        subscription=notice.subscription,
        name=name,
        at=datetime.fromtimestamp(notice.at, UTC).isoformat(),
        kind=notice.kind,
        url=notice.url,
        title=notice.title,
        added=added,
        removed=removed,
        more=notice.more + cut,
    )


def _first(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Up to `LINES`, with `_CHARACTERS` together."""
    ends = accumulate(map(len, lines[:LINES]))
    return lines[: sum(1 for _ in takewhile(lambda end: end <= _CHARACTERS, ends))]


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
