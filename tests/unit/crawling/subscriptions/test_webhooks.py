"""Webhooks against a real receiver: in order, signed, again after a failure, guarded, and fair to the others."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from msgspec.structs import replace

from fakeweb.receiver import Receiver, receiving
from quadloom.crawling.subscriptions.webhooks import WebhookDeliverer, headers_of, key_of, signature
from quadloom.errors import UsageError
from quadloom.fetching.http.transport import CurlTransport
from quadloom.model.event import Notice
from quadloom.model.subscription import Subscription
from quadloom.settings import GuardSettings, LimitSettings, PolitenessSettings, Settings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.protocols.quads import Difference
from quadloom_lab.memory.catalog import MemoryCatalog
from quadloom_lab.memory.frontier import MemoryFrontier
from quadloom_lab.memory.outbox import MemoryOutbox

NOW = 1_700_000_000.0
SECRET = "of the test"
SETTINGS = Settings(
    guard=GuardSettings(allow=["127.0.0.0/8"]),
    politeness=PolitenessSettings(ip_delay=0.0),
    limits=LimitSettings(total_seconds=1.0),
)


class Deliveries:
    """An outbox with deliveries from it. Only the test advances its clock."""

    def __init__(self, client: CurlTransport) -> None:
        self.client = client
        self.outbox = MemoryOutbox(MemoryCatalog(MemoryFrontier(FrontierPolicy(), now=NOW)))
        self.now = NOW
        self.restart()

    def restart(self) -> None:
        """As in a new process: only the outbox remains."""
        self.deliverer = WebhookDeliverer(self.outbox, self.client, lambda _: Difference(("a",), ()), lambda: self.now)

    def turn(self, *subscriptions: Subscription, after: float = 0.0) -> int:
        self.now += after
        return self.deliverer.turn(subscriptions)


@pytest.fixture
def deliveries() -> Iterator[Deliveries]:
    with closing(CurlTransport(SETTINGS)) as client:
        yield Deliveries(client)


def hook(receiver: Receiver, id: str = "s") -> Subscription:
    return Subscription(id=id, sites=("a.example",), webhook=receiver.url, secret=receiver.secret)


def notices(count: int, id: str = "s") -> list[Notice]:
    return [Notice(at=NOW, subscription=id, kind="new", url=f"https://a.example/{n}") for n in range(count)]


def test_delivery_continues_after_a_failure_and_a_restart(deliveries: Deliveries) -> None:
    statuses = [500, 503]
    with receiving(SECRET, lambda _: statuses.pop(0) if statuses else 204) as receiver:
        deliveries.outbox.append(notices(4))
        assert deliveries.turn(hook(receiver)) == 0
        deliveries.restart()
        assert deliveries.turn(hook(receiver), after=9.0) == 0 and receiver.refused == [1], "within the pause"
        assert deliveries.turn(hook(receiver), after=1.0) == 0
        assert receiver.refused == [1, 1], "the first is refused, so the others wait"
        failed = deliveries.outbox.delivery("s")
        assert (failed.attempts, failed.retry_at, failed.error) == (2, deliveries.now + 20.0, "HTTP 503")
        deliveries.restart()
        assert deliveries.turn(hook(receiver), after=20.0) == 4
        assert receiver.order == [1, 2, 3, 4] and receiver.badly_signed == 0
        done = deliveries.outbox.delivery("s")
        assert (done.delivered, done.attempts, done.error) == (4, 0, "")
        assert deliveries.turn(hook(receiver), after=60.0) == 0
        deliveries.outbox.append(notices(1))
        assert deliveries.turn(hook(receiver)) == 1


def test_a_long_backlog_goes_out_in_one_turn(deliveries: Deliveries) -> None:
    with receiving(SECRET) as receiver:
        deliveries.outbox.append(notices(75))
        assert deliveries.turn(hook(receiver)) == 75
        assert receiver.order == list(range(1, 76))


def test_a_redirect_is_not_an_acknowledgement(deliveries: Deliveries) -> None:
    with receiving(answer=lambda _: 307) as receiver:
        deliveries.outbox.append(notices(1))
        assert deliveries.turn(hook(receiver)) == 0
        assert deliveries.outbox.delivery("s").error == "HTTP 307"


def test_a_private_address_is_refused(deliveries: Deliveries) -> None:
    with receiving() as receiver, closing(CurlTransport(replace(SETTINGS, guard=GuardSettings()))) as guarded:
        deliveries.client = guarded
        deliveries.restart()
        deliveries.outbox.append(notices(1))
        assert deliveries.turn(hook(receiver)) == 0
        assert receiver.order == [] and receiver.refused == []
        assert "127.0.0.1" in deliveries.outbox.delivery("s").error


def test_a_receiver_that_never_answers_delays_nobody(deliveries: Deliveries) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, receiving(SECRET) as receiver:
        never = Subscription(id="never", sites=("a.example",), webhook=f"http://127.0.0.1:{silent.getsockname()[1]}/")
        deliveries.outbox.append([*notices(3, "never"), *notices(30, "s")])
        began = time.monotonic()
        assert deliveries.turn(never, hook(receiver)) == 30
        assert time.monotonic() - began < 30.0
        silence = deliveries.outbox.delivery("never")
        assert (silence.delivered, silence.attempts) == (0, 1) and silence.error
        assert receiver.times[-1] - began < 1.0, "the others did not wait for it"


def test_a_slow_receiver_gets_less_in_a_turn_and_the_rest_later(deliveries: Deliveries) -> None:
    with receiving() as slow:
        slow.delay = 0.05
        deliveries.outbox.append(notices(6))
        real = WebhookDeliverer(
            deliveries.outbox, deliveries.client, lambda _: Difference(), lambda: NOW + 50 * time.monotonic()
        )
        first = real.turn([hook(slow)])
        assert 1 <= first < 6, "a turn of five seconds, of which each answer takes two and a half"
        while len(slow.order) < 6:
            assert real.turn([hook(slow)]) >= 1
        assert slow.order == [1, 2, 3, 4, 5, 6]


def test_pauses_grow_to_an_hour_and_retry_after_counts(deliveries: Deliveries) -> None:
    with receiving(answer=lambda _: 429) as receiver:
        deliveries.outbox.append(notices(1))
        pauses = []
        for _ in range(12):
            deliveries.turn(hook(receiver))
            pauses.append(deliveries.outbox.delivery("s").retry_at - deliveries.now)
            deliveries.now = deliveries.outbox.delivery("s").retry_at
        assert pauses[:4] == [10.0, 20.0, 40.0, 80.0] and pauses[-1] == 3600.0


def test_the_signature_is_that_of_standard_webhooks() -> None:
    secret = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # the convention's published example
    example = signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', secret)
    assert example == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_id_time_body_and_secret_are_signed() -> None:
    body = b'{"id":7}'
    assert dict(headers_of(7, body, SECRET, 1_700_000_000.9)) == {
        "Content-Type": "application/json",
        "webhook-id": "7",
        "webhook-timestamp": "1700000000",
        "webhook-signature": signature("7", 1_700_000_000, body, SECRET),
    }
    assert "webhook-signature" not in dict(headers_of(7, body, "", NOW))
    different = {signature("7", 1, body, SECRET), signature("8", 1, body, SECRET), signature("7", 2, body, SECRET)}
    different |= {signature("7", 1, b"{}", SECRET), signature("7", 1, body, "another")}
    assert len(different) == 5
    with pytest.raises(UsageError):
        key_of("whsec_not base64")
