"""The oracle's judgement against what an independent crawler finds in the bytes."""

from __future__ import annotations

import pytest
from protego import Protego

from fakeweb.reader import Reader
from quadloom_lab.fakeweb import FakeWeb, FakeWebServer, WebSpec
from quadloom_lab.fakeweb.content.site_files import allowed, robots_text
from quadloom_lab.fakeweb.oracle import Scope


@pytest.mark.parametrize("scope", ["any", "site", "host"])
def test_reachable_is_what_an_independent_crawl_finds(fake_web: FakeWebServer, scope: Scope) -> None:
    web = fake_web.web
    hosts = {
        "any": set(web.layout.authorities),
        "site": {a for h, a in zip(web.hosts, web.layout.authorities, strict=True) if h.domain == web.hosts[0].domain},
        "host": {web.layout.authorities[0]},
    }[scope]
    found = Reader(fake_web.port).crawl(web.seeds, hosts)
    assert set(found) == web.reachable(scope=scope)
    assert len(found) > web.hosts[0].size  # the numbered pages of the first host and its furniture


def test_expected_tells_the_status_and_type_of_every_page(fake_web: FakeWebServer) -> None:
    web = fake_web.web
    reader = Reader(fake_web.port)
    statuses = set()
    for url in sorted(web.reachable()):
        got, wanted = reader.get(url), web.expected(url)
        if "/flaky/" not in url:
            assert got.status == wanted.status, url
            assert got.headers.get("content-type", "").partition(";")[0] == wanted.media_type, url
        assert got.headers.get("location", "") == wanted.location
        statuses.add(got.status)
    assert {200, 301, 302, 303, 307, 308, 404, 410, 500, 503} <= statuses


def test_a_crawl_of_one_page_is_one_page() -> None:
    web = FakeWeb(WebSpec(pages=50, hosts=4))
    assert web.reachable(scope="page") == set(web.seeds)


def test_nothing_is_reachable_while_robots_files_are_out_of_order() -> None:
    web = FakeWeb(WebSpec(pages=50, hosts=4))
    web.robots_status = 503
    assert web.reachable() == set()


def test_robots_rules_agree_with_protego() -> None:
    web = FakeWeb(WebSpec(pages=200, hosts=12))
    targets = [
        "/",
        "/private/0",
        "/private/2",
        "/private/open-1",
        "/private/open-2",
        "/books/?sort=name&view=grid",
        "/search?q=x",
        "/about",
    ]
    refused = 0
    for host in web.hosts:
        text = robots_text(web.layout, host) or ""
        parsed = Protego.parse(text)
        for agent in ("Quadloom", "SomeoneElse"):
            for target in targets:
                verdict = allowed(host, target, agent)
                assert verdict == parsed.can_fetch(web.layout.bases[host.index] + target, agent), (text, target, agent)
                refused += not verdict
    assert refused > 20


def test_hidden_pages_are_only_in_sitemaps_and_sponsors_nowhere() -> None:
    web = FakeWeb(WebSpec(pages=200, hosts=8))
    with_sitemaps, without = web.reachable(), web.reachable(sitemaps=False)
    assert any("/hidden/" in url for url in with_sitemaps - without)
    assert not any("/hidden/" in url for url in without)
    assert not any("/sponsored/" in url for url in with_sitemaps)


def test_a_news_site_grows_and_some_pages_vanish() -> None:
    web = FakeWeb(WebSpec(pages=600, hosts=10))
    before = web.reachable()
    web.revision = 40
    after = web.reachable()
    assert len(after - before) >= 40
    assert 410 in {web.expected(url).status for url in before if "/gone/" not in url}
