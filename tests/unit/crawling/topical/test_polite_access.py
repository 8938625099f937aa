"""Topical requests obey the same rules as those of a crawl, because the same fetcher makes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.parser import BytesParser
from email.policy import HTTP
from typing import NamedTuple

import pytest

from faults.fetch_server import Seen, Server, reply
from quadloom.crawling.topical.access import SiteRequest
from quadloom.crawling.topical.polite_access import FetchedPage, PoliteAccess
from quadloom.fetching.robots import RobotsRow
from quadloom.settings import CrawlSettings, GuardSettings, LimitSettings, PolitenessSettings, Settings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.protocols.frontier import Frontier
from quadloom_lab.memory.frontier import MemoryFrontier

SETTINGS = Settings(
    crawl=CrawlSettings(contact="a@b.example", max_wait=5.0),
    guard=GuardSettings(allow=["127.0.0.0/8"], hosts={"*.test": "127.0.0.1"}),
    politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0),
    limits=LimitSettings(total_seconds=5.0),
)


class Everywhere:
    def verdict(self, href: str, host: str, depth: int) -> str | None:
        return None


@contextmanager
def polite(
    frontier: Frontier, keep: Callable[[FetchedPage], None] = lambda _page: None, settings: Settings = SETTINGS
) -> Iterator[PoliteAccess]:
    access = PoliteAccess(settings, frontier.hosts, Everywhere(), keep)
    yield access
    access.close()


def test_an_unavailable_robots_file_blocks_the_host() -> None:
    def answer(seen: Seen) -> bytes:
        return reply(b"", "503 Busy") if seen.path == "/robots.txt" else reply(b"page")

    frontier = MemoryFrontier(FrontierPolicy(delay=0.0, ip_delay=0.0), now=0.0)
    with Server(answer) as server, polite(frontier) as access:
        assert access.ask([SiteRequest(server.url("/a", "x.test"))]) == [None]
        assert access.refused == {"robots": 1}
        row = frontier.hosts.get(f"x.test:{server.port}")
        assert row is not None and row.blocked_until > time.time() + 60.0
        assert row.block_reason.startswith("robots.txt unavailable")
        known = RobotsRow.decode(row.robots)
        assert known is not None and known.status == "unavailable"
        assert access.ask([SiteRequest(server.url("/b", "x.test"))]) == [None]
        assert access.refused == {"robots": 1, "pace": 1}
        assert server.paths() == ["/robots.txt"]
    with Server(answer) as other, polite(frontier) as later:  # a later crawl of the warehouse
        assert later.ask([SiteRequest(f"http://x.test:{server.port}/c"), SiteRequest(other.url("/c", "y.test"))]) == [
            None,
            None,
        ]
        assert later.refused == {"pace": 1, "robots": 1}


def test_a_crawl_delay_beyond_the_longest_wait_is_not_waited_for() -> None:
    def answer(seen: Seen) -> bytes:
        return reply(b"User-agent: *\nCrawl-delay: 60" if seen.path == "/robots.txt" else b"page")

    frontier = MemoryFrontier(FrontierPolicy(delay=0.0, ip_delay=0.0), now=0.0)
    with Server(answer) as server, polite(frontier) as access:
        assert access.ask([SiteRequest(server.url("/a", "x.test"))]) == [None]
        assert access.refused == {"pace": 1}
        assert server.paths() == ["/robots.txt"]


def test_every_hop_of_a_redirect_passes_robots_and_is_kept_under_its_last_address() -> None:
    def answer(seen: Seen) -> bytes:
        if seen.path == "/robots.txt":
            return reply(b"User-agent: *\nDisallow: /closed")
        if seen.path == "/open":
            return reply(b"", "302 Found", Location="/page")
        return reply(b"", "302 Found", Location="/closed/page") if seen.path == "/door" else reply(b"page")

    frontier = MemoryFrontier(FrontierPolicy(delay=0.0, ip_delay=0.0), now=0.0)
    pages: list[FetchedPage] = []
    with Server(answer) as server, polite(frontier, pages.append) as access:
        opened, closed = (access.ask([SiteRequest(server.url(path, "x.test"))])[0] for path in ("/open", "/door"))
        assert opened is not None and opened.url == server.url("/page", "x.test")
        assert closed is None and access.refused == {"robots": 1}
        assert server.paths() == ["/robots.txt", "/open", "/page", "/door"]
    assert [page.visit.href for page in pages] == [opened.url]


def test_a_form_is_posted_and_a_host_that_fails_is_left_alone() -> None:
    def answer(seen: Seen) -> bytes:
        if seen.path == "/robots.txt":
            return reply(b"", "404 Not Found")
        return reply(seen.body) if seen.method == "POST" else reply(b"", "429 Slow down", Retry_After="600")

    frontier = MemoryFrontier(FrontierPolicy(delay=0.0, ip_delay=0.0), now=0.0)
    with Server(answer) as server, polite(frontier) as access:
        form = SiteRequest(server.url("/search", "x.test"), "post", (("q", "red loom"),), "search")
        response = access.ask([form])[0]
        assert response is not None and response.body == b"q=red+loom"
        busy = access.ask([SiteRequest(server.url("/a", "x.test"))])[0]
        assert busy is not None and busy.status == 429
        row = frontier.hosts.get(f"x.test:{server.port}")
        assert row is not None and row.blocked_until > time.time() + 500.0
        assert access.ask([SiteRequest(server.url("/b", "x.test"))]) == [None]
        assert access.refused == {"pace": 1}


def test_a_multipart_form_has_the_same_delimiter_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parts are read back by another implementation. One that a field contains is not taken."""
    fields = (("q", 'red "loom"'), ('the "name"', "a\r\nb"))

    def answer(seen: Seen) -> bytes:
        return reply(b"", "404 Not Found") if seen.path == "/robots.txt" else reply(b"page")

    def sent(server: Server) -> Seen:
        with polite(MemoryFrontier(FrontierPolicy(delay=0.0, ip_delay=0.0), now=0.0)) as access:
            access.ask([SiteRequest(server.url("/search", "x.test"), "post", fields, "search", multipart=True)])
        return server.log[-1]

    with Server(answer) as server:
        form = sent(server)
        message = BytesParser(policy=HTTP).parsebytes(
            f"content-type: {form.headers['content-type']}\r\n\r\n".encode() + form.body
        )
        read = [(part["content-disposition"].params["name"], part.get_content()) for part in message.iter_parts()]
        assert [(name.replace("%22", '"'), value.replace("\r\n", "\n")) for name, value in read] == [
            ("q", 'red "loom"'),
            ('the "name"', "a\nb"),
        ]
        assert form.headers["content-type"].endswith("; boundary=d9dee6140fb9616f1d74367063ec457d")

        class Digest(NamedTuple):
            salt: bytes

            def hexdigest(self) -> str:
                return ["red", "blue"][self.salt[0]]

        monkeypatch.setattr("quadloom.crawling.topical.polite_access.blake2b", lambda _content, salt, **_: Digest(salt))
        assert sent(server).headers["content-type"].endswith("; boundary=blue")
