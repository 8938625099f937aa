"""WebSub, the subscriber's states: what is requested of a hub, when, and which of its messages count."""

from __future__ import annotations

import hashlib
import hmac
from contextlib import AbstractContextManager
from itertools import count
from urllib.parse import parse_qs

import pytest
from msgspec.structs import replace

from quadloom.crawling.subscriptions.websub import HubSubscription, HubSubscriptions, read_topics, signed
from quadloom.documents.extract import seed_discoveries
from quadloom.errors import NothingFound, SettingsError
from quadloom.model.document import PushOffer
from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.page import Failure, Page
from quadloom.model.url import fingerprint, host_of
from quadloom.settings import Settings, SubscriptionSettings, WebSettings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom_lab.memory.catalog import MemoryCatalog
from quadloom_lab.memory.frontier import MemoryFrontier

NOW = 1_000_000.0
DAY = 86400.0
FEED, HUB = "https://a.example/feed", "https://hub.example/"
OFFER = PushOffer(f"{FEED}?self", HUB)
SETTINGS = Settings(
    subscriptions=SubscriptionSettings(websub=True, websub_topics=3, websub_lease="10d"),
    web=WebSettings(public_url="https://we.example/"),
)


def row(url: str = FEED, at: float = NOW) -> PageRow:
    return PageRow(fingerprint=fingerprint(url), key=url, href=url, host=host_of(url), fetched_at=at)


def answer(status: int, *headers: tuple[str, str]) -> Page:
    return Page(HUB, HUB, status, headers, b"", NOW, 0.1)


class Subscriber:
    """A subscriber whose clock the test advances; after `restart` it has only what the catalog has."""

    def __init__(self) -> None:
        self.frontier = MemoryFrontier(FrontierPolicy(delay=0.0, ip_delay=0.0), now=NOW)
        self.catalog = MemoryCatalog(self.frontier)
        self.now = NOW
        self._names = count(1)
        self.restart()

    def restart(self, settings: Settings = SETTINGS) -> None:
        self.hubs = HubSubscriptions(self.catalog, self.frontier, settings, token=lambda: f"token-{next(self._names)}")

    @property
    def topic(self) -> HubSubscription:
        (topic,) = self.hubs.topics.values()
        return topic

    def asked(self) -> dict[str, str]:
        """The request to the one hub that is due now."""
        ((url, form),) = [(request.url, parse_qs(request.body.decode())) for request in self.hubs.due(self.now)]
        return {"url": url} | {name: value for name, (value,) in form.items()}

    def verified(self, mode: str = "subscribe", **more: str) -> str:
        query = {"hub.mode": mode, "hub.topic": OFFER.topic, "hub.challenge": "echo me"}
        query |= {f"hub.{name}": value for name, value in more.items()}
        return self.hubs.verify(self.topic.id, query, self.now)

    def subscribed(self, lease: str = "864000") -> HubSubscription:
        self.hubs.update_offer(row(), OFFER, self.now)
        self.asked()
        assert self.verified(lease_seconds=lease) == "echo me"
        return self.topic

    def pushed(self, body: bytes = b"<feed/>", algorithm: str = "sha256", secret: str = "") -> int | None:
        digest = hmac.new((secret or self.topic.secret).encode(), body, algorithm).hexdigest()
        return self.hubs.receive(self.topic.id, body, f"{algorithm}={digest}", self.now)


@pytest.fixture
def subscriber() -> Subscriber:
    return Subscriber()


def test_a_hub_is_asked_with_an_unguessable_callback(subscriber: Subscriber) -> None:
    subscriber.hubs.update_offer(row(), OFFER, NOW)
    assert subscriber.topic.state(NOW) == "waiting"
    assert subscriber.asked() == {
        "url": HUB,
        "hub.mode": "subscribe",
        "hub.topic": OFFER.topic,
        "hub.lease_seconds": "864000",
        "hub.callback": f"https://we.example/websub/{subscriber.topic.id}",
        "hub.secret": subscriber.topic.secret,
    }
    assert subscriber.topic.state(NOW) == "asked"
    subscriber.hubs.update_offer(row(), OFFER, NOW)
    assert subscriber.hubs.due(NOW) == [], "the same offer again changes nothing"
    real = HubSubscriptions(subscriber.catalog, subscriber.frontier, SETTINGS)
    real.update_offer(row("https://b.example/feed"), OFFER, NOW)
    (fresh,) = (topic for topic in real.topics.values() if topic.page != subscriber.topic.page)
    assert len(fresh.id) >= 32 and len(fresh.secret) >= 32 and fresh.id != fresh.secret


def test_the_record_is_written_before_the_hub_is_asked(subscriber: Subscriber) -> None:
    subscriber.hubs.update_offer(row(), OFFER, NOW)
    with pytest.raises(NothingFound):
        subscriber.verified()
    subscriber.hubs.due(NOW)
    subscriber.restart()  # killed during the request
    assert subscriber.verified(lease_seconds="1000") == "echo me", "a hub may verify before it answers"
    subscriber.hubs.answered(subscriber.topic.id, answer(202), NOW)
    assert subscriber.topic.state(NOW) == "active" and subscriber.topic.active_until == NOW + 1000


@pytest.mark.parametrize(
    "change",
    [
        {"hub.topic": "https://evil.example/"},
        {"hub.mode": "unsubscribe"},
        {"hub.mode": "publish"},
        {"hub.challenge": ""},
    ],
)
def test_a_verification_of_something_else_is_denied(subscriber: Subscriber, change: dict[str, str]) -> None:
    subscriber.hubs.update_offer(row(), OFFER, NOW)
    subscriber.asked()
    query = {"hub.mode": "subscribe", "hub.topic": OFFER.topic, "hub.challenge": "c", "hub.lease_seconds": "9"} | change
    with pytest.raises(NothingFound):
        subscriber.hubs.verify(subscriber.topic.id, query, NOW)
    with pytest.raises(NothingFound):
        subscriber.hubs.verify("another", query, NOW)
    assert subscriber.topic.active_until == 0.0


def test_verification_has_an_hour(subscriber: Subscriber) -> None:
    subscriber.hubs.update_offer(row(), OFFER, NOW)
    subscriber.asked()
    assert subscriber.verified() == "echo me" == subscriber.verified(), "the first answer may have been lost"
    subscriber.now += 3601.0
    with pytest.raises(NothingFound):
        subscriber.verified()


def test_a_lease_is_renewed_before_it_ends(subscriber: Subscriber) -> None:
    first = subscriber.subscribed(lease="1000")
    assert (first.active_until, first.next_at) == (NOW + 1000, NOW + 800)
    subscriber.now += 799.0
    assert subscriber.hubs.due(subscriber.now) == []
    subscriber.now += 1.0
    assert subscriber.asked()["hub.callback"].endswith(first.id), "the same callback, so the hub extends it"
    assert subscriber.pushed() is not None, "pushes count meanwhile"
    subscriber.verified(lease_seconds="1000")
    assert subscriber.topic.active_until == subscriber.now + 1000


@pytest.mark.parametrize(
    ("granted", "used"), [("0", 60.0), ("99999999999", 90 * DAY), ("-5", 10 * DAY), ("", 10 * DAY)]
)
def test_a_lease_has_bounds(subscriber: Subscriber, granted: str, used: float) -> None:
    assert subscriber.subscribed(lease=granted).active_until == NOW + used


def test_content_counts_only_when_active_and_signed(subscriber: Subscriber) -> None:
    subscriber.hubs.update_offer(row(), OFFER, NOW)
    assert subscriber.pushed() is None, "not verified yet"
    subscriber.asked()
    subscriber.verified(lease_seconds="1000")
    assert subscriber.pushed(secret="guessed") is None
    assert subscriber.frontier.lease(5, NOW) == []
    assert subscriber.pushed() == fingerprint(FEED)
    (visit,) = subscriber.frontier.lease(5, NOW)
    assert (visit.href, visit.priority) == (FEED, 0), "the page that named the hub, as an explicit request"
    assert (subscriber.topic.pushes, subscriber.topic.pushed_at) == (1, NOW)
    subscriber.now += 1001.0
    assert subscriber.pushed() is None, "the lease has expired"
    with pytest.raises(NothingFound):
        subscriber.hubs.receive("another", b"", "", NOW)


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha384", "sha512"])
def test_signatures_of_the_recommendation(subscriber: Subscriber, algorithm: str) -> None:
    subscriber.subscribed()
    assert subscriber.pushed(algorithm=algorithm) is not None


def test_other_signatures_are_refused() -> None:
    good = hmac.new(b"secret", b"x", hashlib.sha256).hexdigest()
    assert signed(b"x", f"SHA256={good.upper()}", "secret")
    md5 = hmac.new(b"secret", b"x", hashlib.md5).hexdigest()
    for wrong in ("", good, f"md5={md5}", "sha256=", f"sha256={good[:-1]}", "sha256=é", f"sha1={good}"):
        assert not signed(b"x", wrong, "secret"), wrong
    assert not signed(b"x", "sha256=" + hmac.new(b"", b"x", hashlib.sha256).hexdigest(), ""), "no secret, no proof"


def settle(subscriber: Subscriber, outcome: Outcome = Outcome.UNCHANGED, again_at: float | None = NOW + DAY) -> None:
    """End the leased visit of the feed as `Ingest` does."""
    (visit,) = subscriber.frontier.lease(1, subscriber.now)
    page = replace(row(at=subscriber.now), outcome=outcome)
    pace = HostPace("a.example", "192.0.2.1", 0.0, subscriber.now)
    settled = Settlement(visit, outcome, page, pace, (), again_at)
    subscriber.now += 2.0
    subscriber.frontier.settle([settled], subscriber.now)
    subscriber.hubs.settle([(settled, None)], subscriber.now)


def test_many_pushes_cause_one_visit_per_period(subscriber: Subscriber) -> None:
    subscriber.subscribed()
    for _ in range(5):
        assert subscriber.pushed() is not None
    settle(subscriber)
    assert subscriber.frontier.lease(5, subscriber.now) == []
    assert subscriber.pushed() is not None
    assert subscriber.frontier.lease(5, subscriber.now) == [], "read two seconds ago, because of a push"
    subscriber.now = NOW + 30.0
    assert len(subscriber.frontier.lease(5, subscriber.now)) == 1, "but no push is forgotten"


def test_a_push_during_the_visit_leads_to_another_one(subscriber: Subscriber) -> None:
    subscriber.subscribed()
    subscriber.pushed()
    (visit,) = subscriber.frontier.lease(1, subscriber.now)
    page, subscriber.now = row(at=subscriber.now), subscriber.now + 1.0
    subscriber.pushed()
    settled = Settlement(visit, Outcome.CHANGED, page, HostPace("a.example", "", 0.0, subscriber.now), (), NOW + DAY)
    subscriber.frontier.settle([settled], subscriber.now)
    subscriber.hubs.settle([(settled, None)], subscriber.now)
    assert len(subscriber.frontier.lease(1, NOW + 31.0)) == 1


def test_failures_wait_longer_each_time_and_survive_a_restart(subscriber: Subscriber) -> None:
    subscriber.hubs.update_offer(row(), OFFER, NOW)
    pauses = []
    for failure in (Failure(HUB, "connect", "no route", True, NOW), answer(503), answer(500), answer(404), answer(400)):
        subscriber.asked()
        subscriber.hubs.answered(subscriber.topic.id, failure, subscriber.now)
        pauses.append(subscriber.topic.next_at - subscriber.now)
        subscriber.restart()
        assert subscriber.topic.state(subscriber.now + 1e5) == "failing"
        subscriber.now = subscriber.topic.next_at
    assert pauses == [60.0, 120.0, 240.0, 8 * DAY, 16 * DAY]
    subscriber.asked()
    subscriber.hubs.answered(subscriber.topic.id, answer(429, ("retry-after", "7000")), subscriber.now)
    assert subscriber.topic.next_at == subscriber.now + 7000.0 and subscriber.topic.error == "HTTP 429"


def test_a_hub_that_never_verifies_is_asked_again(subscriber: Subscriber) -> None:
    subscriber.hubs.update_offer(row(), OFFER, NOW)
    subscriber.asked()
    subscriber.hubs.answered(subscriber.topic.id, answer(202), NOW)
    assert subscriber.hubs.due(NOW + 3599.0) == []
    assert len(subscriber.hubs.due(NOW + 3600.0)) == 1


def test_a_hub_that_accepts_and_never_verifies_is_asked_ever_more_seldom(subscriber: Subscriber) -> None:
    """A page may name any URL as its hub, and many servers answer any POST with 200: they are not asked every hour."""
    subscriber.hubs.update_offer(row(), OFFER, NOW)
    pauses = []
    for _ in range(7):
        subscriber.asked()
        subscriber.hubs.answered(subscriber.topic.id, answer(200), subscriber.now)
        subscriber.restart()
        pauses.append((subscriber.topic.next_at - subscriber.now) / 3600.0)
        subscriber.now = subscriber.topic.next_at
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 24.0]
    subscriber.asked()
    subscriber.verified()
    assert subscriber.topic.attempts == 0


def test_a_hub_that_accepts_unsubscribing_and_never_verifies_is_forgotten(subscriber: Subscriber) -> None:
    subscriber.subscribed()
    subscriber.hubs.update_offer(row(), None, subscriber.now)
    tries = 0
    while subscriber.hubs.topics and tries < 20:
        subscriber.now = subscriber.topic.next_at + 1.0
        for request in subscriber.hubs.due(subscriber.now):
            tries += 1
            subscriber.hubs.answered(request.id, answer(202), subscriber.now)
    assert tries == 5
    assert read_topics(subscriber.catalog) == []


def test_a_flood_of_pushes_is_written_once(subscriber: Subscriber, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each transaction takes the crawl's own thread; a hub may send as many pushes as it likes."""
    subscriber.subscribed()
    begun = 0
    transaction = subscriber.catalog.transaction

    def counted() -> AbstractContextManager[None]:
        nonlocal begun
        begun += 1
        return transaction()

    monkeypatch.setattr(subscriber.catalog, "transaction", counted)
    for _ in range(100):
        subscriber.now += 0.05
        assert subscriber.pushed() is not None
    assert begun == 1 and subscriber.topic.pushes == 100
    settle(subscriber)
    for _ in range(100):  # it was read meanwhile, so there is something to write again
        subscriber.now += 0.01
        assert subscriber.pushed() is not None
    assert begun == 2
    subscriber.now += 30.0
    assert len(subscriber.frontier.lease(5, subscriber.now)) == 1


def test_a_hub_may_redirect_but_not_endlessly(subscriber: Subscriber) -> None:
    subscriber.hubs.update_offer(row(), OFFER, NOW)
    urls = []
    while subscriber.topic.next_at <= subscriber.now:
        urls.append(subscriber.asked()["url"])
        subscriber.hubs.answered(subscriber.topic.id, answer(308, ("location", f"/{len(urls)}")), subscriber.now)
        subscriber.now += 1.0
    assert urls == [HUB, f"{HUB}1", f"{HUB}2", f"{HUB}3"]
    assert subscriber.topic.error == "HTTP 308"


def test_a_denial_ends_it_for_a_month(subscriber: Subscriber) -> None:
    subscriber.subscribed()
    subscriber.verified("denied", reason="too many")
    assert subscriber.topic.error == "denied: too many" and subscriber.pushed() is None
    assert subscriber.hubs.due(NOW + 29 * DAY) == []


def test_a_page_that_no_longer_names_its_hub_is_left(subscriber: Subscriber) -> None:
    old = subscriber.subscribed()
    subscriber.now += 5.0
    subscriber.hubs.update_offer(row(), None, subscriber.now)
    assert subscriber.topic.state(subscriber.now) == "leaving"
    asked = subscriber.asked()
    assert asked["hub.mode"] == "unsubscribe" and "hub.secret" not in asked
    with pytest.raises(NothingFound):
        subscriber.verified("subscribe")
    subscriber.restart()
    assert subscriber.verified("unsubscribe") == "echo me"
    assert subscriber.hubs.topics == {} and read_topics(subscriber.catalog) == []
    with pytest.raises(NothingFound):
        subscriber.hubs.receive(old.id, b"", "", subscriber.now)


def test_another_hub_takes_the_place_of_the_old_one(subscriber: Subscriber) -> None:
    subscriber.subscribed()
    subscriber.now += 5.0
    subscriber.hubs.update_offer(row(), PushOffer(OFFER.topic, "https://new.example/"), subscriber.now)
    due = subscriber.hubs.due(subscriber.now)
    modes = {request.url: parse_qs(request.body.decode())["hub.mode"] for request in due}
    assert modes == {HUB: ["unsubscribe"], "https://new.example/": ["subscribe"]}


def test_a_hub_that_ignores_unsubscribing_is_forgotten(subscriber: Subscriber) -> None:
    subscriber.subscribed()
    subscriber.hubs.update_offer(row(), None, subscriber.now)
    for tries in range(1, 6):
        subscriber.now = subscriber.topic.next_at + 1.0
        subscriber.asked()
        subscriber.hubs.answered(subscriber.topic.id, answer(500), subscriber.now)
        assert bool(subscriber.hubs.topics) == (tries < 5)


def test_a_dead_page_is_left(subscriber: Subscriber) -> None:
    subscriber.subscribed()
    subscriber.frontier.request([*found(FEED)], subscriber.now)
    settle(subscriber, Outcome.GONE, NOW + DAY)
    assert subscriber.topic.state(subscriber.now) == "active", "gone once is not dead"
    subscriber.frontier.request([*found(FEED)], subscriber.now)
    settle(subscriber, Outcome.GONE, None)
    assert subscriber.topic.state(subscriber.now) == "leaving"


def found(url: str) -> list[Discovery]:
    return seed_discoveries([url], priority=0)


def test_the_number_of_topics_is_bounded(subscriber: Subscriber) -> None:
    for number in range(5):
        subscriber.hubs.update_offer(row(f"https://{number}.example/feed"), OFFER, NOW)
    assert len(subscriber.hubs.topics) == 3
    roomy = replace(SETTINGS, subscriptions=SubscriptionSettings(websub=True, websub_topics=1000))
    one_site = Subscriber()
    one_site.restart(roomy)
    for number in range(80):
        one_site.hubs.update_offer(row(f"https://a.example/{number}"), OFFER, NOW)
    assert len(one_site.hubs.topics) == 50, "one site may not use up all topics"


def test_a_hub_is_asked_at_a_polite_pace(subscriber: Subscriber) -> None:
    for number in range(3):
        subscriber.hubs.update_offer(row(f"https://{number}.example/feed"), OFFER, NOW)
    assert [len(subscriber.hubs.due(NOW + second)) for second in (0.0, 0.5, 1.0, 2.0, 3.0)] == [1, 0, 1, 1, 0]
    blocked = Subscriber()
    blocked.frontier.request(found(HUB), NOW)
    blocked.frontier.hosts.block("hub.example", NOW + 100.0, "Retry-After")
    blocked.hubs.update_offer(row(), OFFER, NOW)
    assert blocked.hubs.due(NOW + 99.0) == []
    assert len(blocked.hubs.due(NOW + 101.0)) == 1


def test_switched_off_it_forgets_and_never_asks(subscriber: Subscriber) -> None:
    subscriber.subscribed()
    subscriber.restart(Settings())
    assert subscriber.hubs.topics == {} and read_topics(subscriber.catalog) == []
    subscriber.hubs.update_offer(row(), OFFER, NOW)
    assert subscriber.hubs.topics == {}
    with pytest.raises(SettingsError, match="websub"):
        subscriber.restart(Settings(subscriptions=SubscriptionSettings(websub=True)))
