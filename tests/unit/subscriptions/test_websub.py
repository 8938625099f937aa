"""WebSub, the subscriber's states: what a hub is asked, when, and what it is believed."""

from __future__ import annotations

import hashlib
import hmac
from itertools import count
from urllib.parse import parse_qs

import pytest
from msgspec.structs import replace

from quadloom.errors import NothingFound, SettingsError
from quadloom.model.document import PushOffer
from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.page import Failure, Page
from quadloom.model.url import fingerprint, host_of
from quadloom.phases.extract import seed_discoveries
from quadloom.settings import Settings, SubscriptionSettings, WebSettings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.subscriptions.websub import HubSubscription, HubSubscriptions, read_topics, signed
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


def said(status: int, *headers: tuple[str, str]) -> Page:
    return Page(HUB, HUB, status, headers, b"", NOW, 0.1)


class Desk:
    """A subscriber whose clock the test moves; `restart` keeps only what the catalog has."""

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
        """What the one hub that is due now is asked."""
        ((url, form),) = [(request.url, parse_qs(request.body.decode())) for request in self.hubs.due(self.now)]
        return {"url": url} | {name: value for name, (value,) in form.items()}

    def verified(self, mode: str = "subscribe", **more: str) -> str:
        query = {"hub.mode": mode, "hub.topic": OFFER.topic, "hub.challenge": "echo me"}
        query |= {f"hub.{name}": value for name, value in more.items()}
        return self.hubs.verify(self.topic.id, query, self.now)

    def subscribed(self, lease: str = "864000") -> HubSubscription:
        self.hubs.heard(row(), OFFER, self.now)
        self.asked()
        assert self.verified(lease_seconds=lease) == "echo me"
        return self.topic

    def pushed(self, body: bytes = b"<feed/>", algorithm: str = "sha256", secret: str = "") -> int | None:
        digest = hmac.new((secret or self.topic.secret).encode(), body, algorithm).hexdigest()
        return self.hubs.receive(self.topic.id, body, f"{algorithm}={digest}", self.now)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_hub_is_asked_with_an_unguessable_callback(desk: Desk) -> None:
    desk.hubs.heard(row(), OFFER, NOW)
    assert desk.topic.state(NOW) == "waiting"
    assert desk.asked() == {
        "url": HUB, "hub.mode": "subscribe", "hub.topic": OFFER.topic, "hub.lease_seconds": "864000",
        "hub.callback": f"https://we.example/websub/{desk.topic.id}", "hub.secret": desk.topic.secret,
    }  # fmt: skip
    assert desk.topic.state(NOW) == "asked"
    desk.hubs.heard(row(), OFFER, NOW)
    assert desk.hubs.due(NOW) == [], "the same offer again is no news"
    real = HubSubscriptions(desk.catalog, desk.frontier, SETTINGS)
    real.heard(row("https://b.example/feed"), OFFER, NOW)
    (fresh,) = (topic for topic in real.topics.values() if topic.page != desk.topic.page)
    assert len(fresh.id) >= 32 and len(fresh.secret) >= 32 and fresh.id != fresh.secret


def test_it_is_noted_before_the_hub_is_asked(desk: Desk) -> None:
    desk.hubs.heard(row(), OFFER, NOW)
    with pytest.raises(NothingFound):
        desk.verified()
    desk.hubs.due(NOW)
    desk.restart()  # killed while the request is under way
    assert desk.verified(lease_seconds="1000") == "echo me", "a hub may verify before it answers"
    desk.hubs.answered(desk.topic.id, said(202), NOW)
    assert desk.topic.state(NOW) == "active" and desk.topic.active_until == NOW + 1000


@pytest.mark.parametrize(
    "change",
    [
        {"hub.topic": "https://evil.example/"},
        {"hub.mode": "unsubscribe"},
        {"hub.mode": "publish"},
        {"hub.challenge": ""},
    ],
)
def test_intent_that_is_not_ours_is_denied(desk: Desk, change: dict[str, str]) -> None:
    desk.hubs.heard(row(), OFFER, NOW)
    desk.asked()
    query = {"hub.mode": "subscribe", "hub.topic": OFFER.topic, "hub.challenge": "c", "hub.lease_seconds": "9"} | change
    with pytest.raises(NothingFound):
        desk.hubs.verify(desk.topic.id, query, NOW)
    with pytest.raises(NothingFound):
        desk.hubs.verify("another", query, NOW)
    assert desk.topic.active_until == 0.0


def test_verification_has_an_hour(desk: Desk) -> None:
    desk.hubs.heard(row(), OFFER, NOW)
    desk.asked()
    assert desk.verified() == "echo me" == desk.verified(), "our answer may have been lost"
    desk.now += 3601.0
    with pytest.raises(NothingFound):
        desk.verified()


def test_a_lease_is_renewed_before_it_ends(desk: Desk) -> None:
    first = desk.subscribed(lease="1000")
    assert (first.active_until, first.next_at) == (NOW + 1000, NOW + 800)
    desk.now += 799.0
    assert desk.hubs.due(desk.now) == []
    desk.now += 1.0
    assert desk.asked()["hub.callback"].endswith(first.id), "the same callback, so the hub extends it"
    assert desk.pushed() is not None, "pushes count meanwhile"
    desk.verified(lease_seconds="1000")
    assert desk.topic.active_until == desk.now + 1000


@pytest.mark.parametrize(("said", "kept"), [("0", 60.0), ("99999999999", 90 * DAY), ("-5", 10 * DAY), ("", 10 * DAY)])
def test_a_lease_has_bounds(desk: Desk, said: str, kept: float) -> None:
    assert desk.subscribed(lease=said).active_until == NOW + kept


def test_content_counts_only_when_active_and_signed(desk: Desk) -> None:
    desk.hubs.heard(row(), OFFER, NOW)
    assert desk.pushed() is None, "not verified yet"
    desk.asked()
    desk.verified(lease_seconds="1000")
    assert desk.pushed(secret="guessed") is None
    assert desk.frontier.lease(5, NOW) == []
    assert desk.pushed() == fingerprint(FEED)
    (visit,) = desk.frontier.lease(5, NOW)
    assert (visit.href, visit.priority) == (FEED, 0), "the page that named the hub, as an explicit request"
    assert (desk.topic.pushes, desk.topic.pushed_at) == (1, NOW)
    desk.now += 1001.0
    assert desk.pushed() is None, "the lease has run out"
    with pytest.raises(NothingFound):
        desk.hubs.receive("another", b"", "", NOW)


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha384", "sha512"])
def test_signatures_of_the_recommendation(desk: Desk, algorithm: str) -> None:
    desk.subscribed()
    assert desk.pushed(algorithm=algorithm) is not None


def test_other_signatures_are_refused() -> None:
    good = hmac.new(b"secret", b"x", hashlib.sha256).hexdigest()
    assert signed(b"x", f"SHA256={good.upper()}", "secret")
    md5 = hmac.new(b"secret", b"x", hashlib.md5).hexdigest()
    for wrong in ("", good, f"md5={md5}", "sha256=", f"sha256={good[:-1]}", "sha256=é", f"sha1={good}"):
        assert not signed(b"x", wrong, "secret"), wrong
    assert not signed(b"x", "sha256=" + hmac.new(b"", b"x", hashlib.sha256).hexdigest(), ""), "no secret, no proof"


def settle(desk: Desk, outcome: Outcome = Outcome.UNCHANGED, again_at: float | None = NOW + DAY) -> None:
    """End the leased visit of the feed as the writer does."""
    (visit,) = desk.frontier.lease(1, desk.now)
    page = replace(row(at=desk.now), outcome=outcome)
    pace = HostPace("a.example", "192.0.2.1", 0.0, desk.now)
    settled = Settlement(visit, outcome, page, pace, (), again_at)
    desk.now += 2.0
    desk.frontier.settle([settled], desk.now)
    desk.hubs.settle([(settled, None)], desk.now)


def test_many_pushes_are_one_visit_in_a_while(desk: Desk) -> None:
    desk.subscribed()
    for _ in range(5):
        assert desk.pushed() is not None
    settle(desk)
    assert desk.frontier.lease(5, desk.now) == []
    assert desk.pushed() is not None
    assert desk.frontier.lease(5, desk.now) == [], "read two seconds ago, because of a push"
    desk.now = NOW + 30.0
    assert len(desk.frontier.lease(5, desk.now)) == 1, "but no push is forgotten"


def test_a_push_during_the_visit_leads_to_another_one(desk: Desk) -> None:
    desk.subscribed()
    desk.pushed()
    (visit,) = desk.frontier.lease(1, desk.now)
    page, desk.now = row(at=desk.now), desk.now + 1.0
    desk.pushed()
    settled = Settlement(visit, Outcome.CHANGED, page, HostPace("a.example", "", 0.0, desk.now), (), NOW + DAY)
    desk.frontier.settle([settled], desk.now)
    desk.hubs.settle([(settled, None)], desk.now)
    assert len(desk.frontier.lease(1, NOW + 31.0)) == 1


def test_failures_wait_longer_each_time_and_survive_a_restart(desk: Desk) -> None:
    desk.hubs.heard(row(), OFFER, NOW)
    pauses = []
    for failure in (Failure(HUB, "connect", "no route", True, NOW), said(503), said(500), said(404), said(400)):
        desk.asked()
        desk.hubs.answered(desk.topic.id, failure, desk.now)
        pauses.append(desk.topic.next_at - desk.now)
        desk.restart()
        assert desk.topic.state(desk.now + 1e5) == "failing"
        desk.now = desk.topic.next_at
    assert pauses == [60.0, 120.0, 240.0, 8 * DAY, 16 * DAY]
    desk.asked()
    desk.hubs.answered(desk.topic.id, said(429, ("retry-after", "7000")), desk.now)
    assert desk.topic.next_at == desk.now + 7000.0 and desk.topic.error == "HTTP 429"


def test_a_hub_that_never_verifies_is_asked_again(desk: Desk) -> None:
    desk.hubs.heard(row(), OFFER, NOW)
    desk.asked()
    desk.hubs.answered(desk.topic.id, said(202), NOW)
    assert desk.hubs.due(NOW + 3599.0) == []
    assert len(desk.hubs.due(NOW + 3600.0)) == 1


def test_a_hub_may_send_us_elsewhere_but_not_round_and_round(desk: Desk) -> None:
    desk.hubs.heard(row(), OFFER, NOW)
    urls = []
    while desk.topic.next_at <= desk.now:
        urls.append(desk.asked()["url"])
        desk.hubs.answered(desk.topic.id, said(308, ("location", f"/{len(urls)}")), desk.now)
        desk.now += 1.0
    assert urls == [HUB, f"{HUB}1", f"{HUB}2", f"{HUB}3"]
    assert desk.topic.error == "HTTP 308"


def test_a_denial_ends_it_for_a_month(desk: Desk) -> None:
    desk.subscribed()
    desk.verified("denied", reason="too many")
    assert desk.topic.error == "denied: too many" and desk.pushed() is None
    assert desk.hubs.due(NOW + 29 * DAY) == []


def test_a_page_that_no_longer_names_its_hub_is_left(desk: Desk) -> None:
    old = desk.subscribed()
    desk.now += 5.0
    desk.hubs.heard(row(), None, desk.now)
    assert desk.topic.state(desk.now) == "leaving"
    asked = desk.asked()
    assert asked["hub.mode"] == "unsubscribe" and "hub.secret" not in asked
    with pytest.raises(NothingFound):
        desk.verified("subscribe")
    desk.restart()
    assert desk.verified("unsubscribe") == "echo me"
    assert desk.hubs.topics == {} and read_topics(desk.catalog) == []
    with pytest.raises(NothingFound):
        desk.hubs.receive(old.id, b"", "", desk.now)


def test_another_hub_takes_the_place_of_the_old_one(desk: Desk) -> None:
    desk.subscribed()
    desk.now += 5.0
    desk.hubs.heard(row(), PushOffer(OFFER.topic, "https://new.example/"), desk.now)
    modes = {request.url: parse_qs(request.body.decode())["hub.mode"] for request in desk.hubs.due(desk.now)}
    assert modes == {HUB: ["unsubscribe"], "https://new.example/": ["subscribe"]}


def test_a_hub_that_is_deaf_to_our_farewell_is_forgotten(desk: Desk) -> None:
    desk.subscribed()
    desk.hubs.heard(row(), None, desk.now)
    for tries in range(1, 6):
        desk.now = desk.topic.next_at + 1.0
        desk.asked()
        desk.hubs.answered(desk.topic.id, said(500), desk.now)
        assert bool(desk.hubs.topics) == (tries < 5)


def test_a_dead_page_is_left(desk: Desk) -> None:
    desk.subscribed()
    desk.frontier.request([*found(FEED)], desk.now)
    settle(desk, Outcome.GONE, NOW + DAY)
    assert desk.topic.state(desk.now) == "active", "gone once is not dead"
    desk.frontier.request([*found(FEED)], desk.now)
    settle(desk, Outcome.GONE, None)
    assert desk.topic.state(desk.now) == "leaving"


def found(url: str) -> list[Discovery]:
    return seed_discoveries([url], priority=0)


def test_places_are_bounded(desk: Desk) -> None:
    for number in range(5):
        desk.hubs.heard(row(f"https://{number}.example/feed"), OFFER, NOW)
    assert len(desk.hubs.topics) == 3
    roomy = replace(SETTINGS, subscriptions=SubscriptionSettings(websub=True, websub_topics=1000))
    one_site = Desk()
    one_site.restart(roomy)
    for number in range(80):
        one_site.hubs.heard(row(f"https://a.example/{number}"), OFFER, NOW)
    assert len(one_site.hubs.topics) == 50, "one site may not take all places"


def test_a_hub_is_asked_at_a_polite_pace(desk: Desk) -> None:
    for number in range(3):
        desk.hubs.heard(row(f"https://{number}.example/feed"), OFFER, NOW)
    assert [len(desk.hubs.due(NOW + second)) for second in (0.0, 0.5, 1.0, 2.0, 3.0)] == [1, 0, 1, 1, 0]
    blocked = Desk()
    blocked.frontier.request(found(HUB), NOW)
    blocked.frontier.block("hub.example", NOW + 100.0, "Retry-After")
    blocked.hubs.heard(row(), OFFER, NOW)
    assert blocked.hubs.due(NOW + 99.0) == []
    assert len(blocked.hubs.due(NOW + 101.0)) == 1


def test_switched_off_it_forgets_and_never_asks(desk: Desk) -> None:
    desk.subscribed()
    desk.restart(Settings())
    assert desk.hubs.topics == {} and read_topics(desk.catalog) == []
    desk.hubs.heard(row(), OFFER, NOW)
    assert desk.hubs.topics == {}
    with pytest.raises(SettingsError, match="websub"):
        desk.restart(Settings(subscriptions=SubscriptionSettings(websub=True)))
