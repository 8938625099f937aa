"""Publication: an offer within scope, WebSub with verified intent and signed content."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import parse_qs

import pytest
from msgspec.structs import replace

from quadloom.errors import NothingFound, UsageError
from quadloom.run.publishing import (
    LIST,
    Publication,
    Published,
    accept,
    ping_sitemap,
    publish,
    pushed,
    receive,
    signed,
    subscription_request,
    verify_intent,
    websub,
    websub_subscribe,
)
from quadloom.scheduling.scope import Scope, ScopeRecord
from quadloom.stores.frontier_policy import FrontierPolicy
from quadloom.stores.memory_catalog import MemoryCatalog
from quadloom.stores.memory_frontier import MemoryFrontier

NOW = 1_000_000.0
SCOPE = Scope(ScopeRecord("site", ("https://example.org/",)))


@pytest.fixture
def frontier() -> MemoryFrontier:
    return MemoryFrontier(FrontierPolicy(delay=0.0, ip_delay=0.0), now=NOW, scope=SCOPE)


@pytest.fixture
def catalog(frontier: MemoryFrontier) -> MemoryCatalog:
    return MemoryCatalog(frontier)


def test_every_url_is_accounted_for(frontier: MemoryFrontier) -> None:
    offered = ["https://example.org/a", "https://example.org/b", "https://other.example/", "mailto:x@example.org"]
    assert publish(frontier, SCOPE, offered, NOW) == Published(new=2, refused=1, invalid=1)
    assert publish(frontier, SCOPE, offered[:1], NOW) == Published(known=1)


def test_only_an_owner_can_have_known_pages_read_again(frontier: MemoryFrontier) -> None:
    publish(frontier, SCOPE, ["https://example.org/a"], NOW)
    assert publish(frontier, SCOPE, ["https://example.org/a"], NOW, owner=True) == Published(refreshed=1)
    assert [visit.priority for visit in frontier.lease(10, NOW)] == [0]


def test_a_publication_is_bounded(frontier: MemoryFrontier) -> None:
    with pytest.raises(UsageError):
        publish(frontier, SCOPE, ["https://example.org/"] * (LIST + 1), NOW)


def test_only_who_is_entitled_vouches_for_a_change(catalog: MemoryCatalog) -> None:
    offered = Publication(kind="urls", urls=["https://a.example/1", "no address"], owner=True)
    assert pushed(offered, {"refreshed": 1}, catalog) == ["https://a.example/1"]
    assert pushed(offered, {"refreshed": 0}, catalog) == [], "not known yet: nothing has changed"
    assert pushed(replace(offered, owner=False), {"refreshed": 1}, catalog) == []
    websub_subscribe(catalog, "hub", "https://a.example/feed", "https://hub.example/", "secret")
    content = Publication(kind="content", id="hub")
    assert pushed(content, {"requested": True}, catalog) == ["https://a.example/feed"]
    assert pushed(content, {"requested": False}, catalog) == [], "its signature was wrong"


def test_a_pinged_sitemap_is_read_first(frontier: MemoryFrontier) -> None:
    publish(frontier, SCOPE, ["https://example.org/a"], NOW)
    assert ping_sitemap(frontier, SCOPE, "https://example.org/sitemap.xml", NOW).new == 1
    assert ping_sitemap(frontier, SCOPE, "https://example.org/sitemap.xml", NOW).refreshed == 1
    assert ping_sitemap(frontier, SCOPE, "https://elsewhere.example/sitemap.xml", NOW).refused == 1
    assert frontier.lease(1, NOW)[0].href == "https://example.org/sitemap.xml"


def test_a_hub_is_believed_after_verification_and_with_a_signature(
    catalog: MemoryCatalog, frontier: MemoryFrontier
) -> None:
    topic = "https://example.org/feed"
    ours = websub_subscribe(catalog, "s1", topic, "https://hub.example/", "secret")
    form = parse_qs(subscription_request(ours, "https://we.example/websub/s1").decode())
    assert form["hub.topic"] == [topic] and form["hub.secret"] == ["secret"]
    good = "sha256=" + hmac.new(b"secret", b"<feed/>", hashlib.sha256).hexdigest()
    assert not receive(catalog, frontier, "s1", b"<feed/>", good, NOW), "not verified yet"
    query = {"hub.mode": "subscribe", "hub.topic": topic, "hub.challenge": "c", "hub.lease_seconds": "60"}
    assert accept(
        Publication(kind="verify", id="s1", query=query), frontier=frontier, catalog=catalog, scope=SCOPE, now=NOW
    ) == {"challenge": "c"}
    assert not receive(catalog, frontier, "s1", b"<feed/>", "sha256=00", NOW)
    assert not receive(catalog, frontier, "s1", b"<other/>", good, NOW)
    assert receive(catalog, frontier, "s1", b"<feed/>", good, NOW)
    assert [visit.href for visit in frontier.lease(5, NOW)] == [topic]
    assert not receive(catalog, frontier, "s1", b"<feed/>", good, NOW + 61.0), "the lease has run out"


@pytest.mark.parametrize(
    "query",
    [
        {"hub.mode": "subscribe", "hub.topic": "https://evil.example/", "hub.challenge": "c"},
        {"hub.mode": "unsubscribe", "hub.topic": "https://example.org/feed", "hub.challenge": "c"},
        {"hub.mode": "subscribe", "hub.topic": "https://example.org/feed"},
    ],
)
def test_intent_that_is_not_ours_is_denied(catalog: MemoryCatalog, query: dict[str, str]) -> None:
    websub_subscribe(catalog, "s1", "https://example.org/feed", "https://hub.example/", "secret")
    with pytest.raises(NothingFound):
        verify_intent(catalog, "s1", query, NOW)
    assert websub(catalog, "s1").active_until == 0.0


def test_weak_and_missing_signatures_are_refused() -> None:
    sha1 = "sha1=" + hmac.new(b"secret", b"x", hashlib.sha1).hexdigest()
    assert not signed(b"x", sha1, "secret")
    assert not signed(b"x", "", "secret")
    assert not signed(b"x", "sha256=" + hmac.new(b"", b"x", hashlib.sha256).hexdigest(), "")
