"""Publication: an offer within scope and bounds."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from quadloom.crawling.run.publication import (
    MAX_URLS,
    PUBLISHED,
    Publication,
    PublishReport,
    accept,
    ping_sitemap,
    publish,
    pushed,
    remember_published,
    rhythm_of,
)
from quadloom.errors import UrlError, UsageError
from quadloom.planning.scope import Scope, ScopeRecord
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom_lab.memory.catalog import MemoryCatalog
from quadloom_lab.memory.frontier import MemoryFrontier

NOW = 1_000_000.0
SCOPE = Scope(ScopeRecord("site", ("https://example.org/",)))


@pytest.fixture
def frontier() -> MemoryFrontier:
    return MemoryFrontier(FrontierPolicy(delay=0.0, ip_delay=0.0), now=NOW, scope=SCOPE)


def test_every_url_is_accounted_for(frontier: MemoryFrontier) -> None:
    offered = ["https://example.org/a", "https://example.org/b", "https://other.example/", "mailto:x@example.org"]
    assert publish(frontier, SCOPE, offered, NOW) == PublishReport(new=2, refused=1, invalid=1)
    assert publish(frontier, SCOPE, offered[:1], NOW) == PublishReport(known=1)


def test_only_an_owner_can_have_known_pages_read_again(frontier: MemoryFrontier) -> None:
    publish(frontier, SCOPE, ["https://example.org/a"], NOW)
    assert publish(frontier, SCOPE, ["https://example.org/a"], NOW, owner=True) == PublishReport(refreshed=1)
    assert [visit.priority for visit in frontier.lease(10, NOW)] == [0]


def test_a_publication_is_bounded(frontier: MemoryFrontier) -> None:
    with pytest.raises(UsageError):
        publish(frontier, SCOPE, ["https://example.org/"] * (MAX_URLS + 1), NOW)


def test_only_pages_of_an_owner_count_as_pushed() -> None:
    offered = Publication(urls=["https://a.example/1", "no address"], owner=True)
    assert pushed(offered, PublishReport(refreshed=1)) == ["https://a.example/1"]
    assert pushed(offered, PublishReport(new=1)) == [], "not known yet: nothing has changed"
    assert pushed(replace(offered, owner=False), PublishReport(refreshed=1)) == []


def test_pages_of_an_owner_are_remembered_for_their_importance(frontier: MemoryFrontier) -> None:
    catalog = MemoryCatalog(frontier)
    offered = Publication(urls=["https://example.org/a", "https://other.example/"], owner=True)
    remember_published(catalog, SCOPE, replace(offered, owner=False))
    assert PUBLISHED.get(catalog) is None
    remember_published(catalog, SCOPE, offered)
    remember_published(catalog, SCOPE, Publication(urls=["https://example.org/b"], owner=True))
    assert PUBLISHED.get(catalog) == ["https://example.org/b", "https://example.org/a"]


def test_a_pinged_sitemap_is_read_first(frontier: MemoryFrontier) -> None:
    publish(frontier, SCOPE, ["https://example.org/a"], NOW)
    assert ping_sitemap(frontier, SCOPE, "https://example.org/sitemap.xml", NOW).new == 1
    assert ping_sitemap(frontier, SCOPE, "https://example.org/sitemap.xml", NOW).refreshed == 1
    assert ping_sitemap(frontier, SCOPE, "https://elsewhere.example/sitemap.xml", NOW).refused == 1
    assert frontier.lease(1, NOW)[0].href == "https://example.org/sitemap.xml"
    with pytest.raises(UrlError):
        ping_sitemap(frontier, SCOPE, "not an address", NOW)


def test_urls_and_a_sitemap_may_come_together(frontier: MemoryFrontier) -> None:
    both = Publication(urls=["https://example.org/a"], sitemap="https://example.org/sitemap.xml", owner=True)
    assert accept(both, frontier=frontier, scope=SCOPE, now=NOW) == PublishReport(new=2)
    with pytest.raises(UsageError):
        accept(Publication(), frontier=frontier, scope=SCOPE, now=NOW)


def test_an_owner_states_how_often_pages_change(frontier: MemoryFrontier) -> None:
    offered = Publication(urls=["https://example.org/a", "no url"], owner=True, changefreq="weekly")
    assert accept(offered, frontier=frontier, scope=SCOPE, now=NOW).new == 1
    assert rhythm_of(offered) == (["https://example.org/a"], 7 * 86_400.0)
    assert rhythm_of(replace(offered, owner=False)) == ([], 0.0), "only who is entitled is asked"
    assert rhythm_of(replace(offered, changefreq="")) == ([], 0.0)
    with pytest.raises(UsageError, match="no changefreq 'soon'"):
        accept(replace(offered, changefreq="soon"), frontier=frontier, scope=SCOPE, now=NOW)
