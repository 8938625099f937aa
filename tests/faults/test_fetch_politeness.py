"""The fetcher's manners, judged by the server's log: robots first, one request per visit, never early."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import pairwise
from statistics import median

import pytest
from fetch_server import Seen, Server, reply

from quadloom.fetching.fetcher import Fetcher, FetchResult
from quadloom.fetching.robots import RobotsRow
from quadloom.fetching.unit import open_fetcher
from quadloom.model import wire
from quadloom.model.page import Failure, Page
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.settings import GuardSettings, LimitSettings, PolitenessSettings, Settings, SiteSettings

POLITE = PolitenessSettings(delay=0.2, ip_delay=0.0, adaptive=0.0, backoff=0.4)


def settings(
    politeness: PolitenessSettings = POLITE, limits: LimitSettings | None = None, site: list[SiteSettings] | None = None
) -> Settings:
    guard = GuardSettings(allow=["127.0.0.0/8"], hosts={"*.test": "127.0.0.1", "*.two": "127.0.0.2"})
    return Settings(
        guard=guard,
        politeness=politeness,
        limits=limits or LimitSettings(total_seconds=3.0, redirects=5),
        site=site or [],
    )


def visit(href: str, **more: float) -> Visit:
    url = Url.parse(href)
    return Visit(url.href, url.key, url.host, url.fingerprint, **more)  # type: ignore[arg-type]


def drain(fetcher: Fetcher) -> list[FetchResult]:
    fetched: list[FetchResult] = []
    stop = time.monotonic() + 20
    while fetcher.in_flight:
        fetched += fetcher.step(0.5)
        assert time.monotonic() < stop
    return fetched


def crawl(visits: list[Visit], configuration: Settings | None = None, **more: object) -> list[FetchResult]:
    fetcher = open_fetcher(configuration or settings(), **more)  # type: ignore[arg-type]
    fetcher.submit(visits)
    fetched = drain(fetcher)
    fetcher.close()
    return fetched


def early(server: Server, start: float, delay: float) -> list[float]:
    """Requests that came before a client that began at `start` may have sent them, one after each delay.

    The server may stamp a request late, never early. So it is sound to count from the start, but not from one stamp to
    the next: a late one makes the request after it look early.
    """
    stamps = sorted(seen.at - start for seen in server.log)
    return [at for number, at in enumerate(stamps) if at < number * delay - 0.005]


def site(robots: bytes | Callable[[Seen], bytes], page: Callable[[Seen], bytes] = lambda seen: reply(b"page")):  # type: ignore[no-untyped-def]
    def answer(seen: Seen) -> bytes:
        if seen.path == "/robots.txt":
            return reply(robots) if isinstance(robots, bytes) else robots(seen)
        return page(seen)

    return answer


def test_robots_first_once_then_the_delay_then_the_pages() -> None:
    rules = b"User-agent: *\nDisallow: /private\nSitemap: http://e.org/map.xml\n"
    with Server(site(rules)) as server:
        paths = ["/a", "/private/x", "/b", "/c"]
        start = time.time()
        fetched = crawl([visit(server.url(path, "a.test")) for path in paths])
        assert server.paths() == ["/robots.txt", "/a", "/b", "/c"]
        assert not early(server, start, POLITE.delay)
    assert len(fetched) == 4
    denied = next(one for one in fetched if "/private" in one.visit.href).result
    assert isinstance(denied, Failure) and denied.kind == "robots" and "/private" in denied.message
    learned = [one.learned for one in fetched if one.learned is not None]
    assert len(learned) == 1 and learned[0].sitemaps == ("http://e.org/map.xml",)
    row = RobotsRow.decode(learned[0].robots)
    assert row is not None and row.status == "found" and row.expires == learned[0].expires


def test_known_robots_are_not_asked_again_until_they_expire() -> None:
    with Server(site(b"User-agent: *\nDisallow: /x")) as server:
        now = [time.time()]
        fetcher = open_fetcher(
            settings(PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0)), clock=lambda: now[0]
        )
        fetcher.submit([visit(server.url("/a"))])
        (first,) = drain(fetcher)
        assert first.learned is not None
        again = open_fetcher(settings(PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0)), clock=lambda: now[0])
        again.submit([visit(server.url("/b")), visit(server.url("/x"))], {first.visit.host: first.learned.robots})
        kinds = {type(one.result).__name__ for one in drain(again)}
        assert kinds == {"Page", "Failure"}
        assert server.paths() == ["/robots.txt", "/a", "/b"]
        now[0] += 86401
        again.submit([visit(server.url("/c"))])
        drain(again)
        assert server.paths()[-2:] == ["/robots.txt", "/c"]
        fetcher.close()
        again.close()


def test_a_slow_robots_txt_holds_up_its_own_host_only() -> None:
    gate = threading.Event()

    def robots(seen: Seen) -> bytes:
        if seen.host.startswith("slow"):
            gate.wait(5)
        return reply(b"")

    with Server(site(robots)) as server:
        fetcher = open_fetcher(settings())
        fetcher.submit([visit(server.url("/", "slow.test")), visit(server.url("/", "quick.test"))])
        early: list[FetchResult] = []
        while not early:
            early += fetcher.step(0.5)
        assert [one.visit.host.partition(":")[0] for one in early] == ["quick.test"]
        gate.set()
        drain(fetcher)
        fetcher.close()


@pytest.mark.parametrize(
    ("status", "allowed"),
    [("404 No", True), ("403 No", True), ("410 No", True), ("429 Slow", False), ("503 Busy", False)],
)
def test_what_an_error_for_robots_txt_means(status: str, allowed: bool) -> None:
    with Server(site(lambda seen: reply(b"", status, Retry_After="3000"))) as server:
        (fetched,) = crawl([visit(server.url("/a"))])
        assert server.paths() == ["/robots.txt", *(["/a"] if allowed else [])]
    assert isinstance(fetched.result, Page) is allowed
    if isinstance(fetched.result, Failure):
        assert fetched.result.transient and fetched.result.kind == "status"
        assert fetched.pace.blocked_until > time.time() + 2900
        assert fetched.learned is not None and fetched.learned.expires == fetched.pace.blocked_until


def test_robots_redirected_across_hosts_count_for_the_first() -> None:
    def answer(seen: Seen) -> bytes:
        if seen.path == "/robots.txt" and seen.host.startswith("www"):
            return reply(b"", "301 Moved", Location=f"http://other.test:{server.port}/robots.txt")
        if seen.path == "/robots.txt":
            return reply(b"User-agent: *\nDisallow: /x")
        return reply(b"page")

    with Server(answer) as server:
        (fetched,) = crawl([visit(server.url("/x", "www.test"))])
        assert isinstance(fetched.result, Failure) and fetched.result.kind == "robots"
        assert server.paths() == ["/robots.txt", "/robots.txt"]


def test_dead_hosts_and_robots_that_never_end() -> None:
    with Server(site(lambda seen: reply(b"# x\n" * 500_000 + b"User-agent: *\nDisallow: /"))) as server:
        (fetched,) = crawl([visit(server.url("/a"))])
        assert isinstance(fetched.result, Page), "what is after 500 KiB does not count"
        port = server.port
    (dead,) = crawl([visit(f"http://127.0.0.1:{port}/")])
    assert isinstance(dead.result, Failure) and dead.result.kind == "connect" and dead.result.transient
    assert 0.0 < dead.pace.blocked_until - dead.result.fetched_at <= settings().politeness.max_backoff


def test_a_storm_of_429_gets_one_request_per_window_and_the_window_grows() -> None:
    """The loop plays the frontier: it leases again when the pace allows, as fast as it can."""
    with Server(site(b"", lambda seen: reply(b"", "429 Too Many"))) as server:
        fetcher = open_fetcher(settings(), random=lambda: 1.0)
        blocked: list[float] = []
        for number in range(4):
            while blocked and time.time() < blocked[-1]:
                time.sleep(0.02)
            fetcher.submit([visit(server.url(f"/{number}"))])
            blocked += [one.pace.blocked_until for one in drain(fetcher)]
        fetcher.close()
        pages = [seen.at for seen in server.log if seen.path != "/robots.txt"]
    assert len(pages) == 4
    # A window begins when the answer is read, after the server's stamp: a busy machine makes it longer, never shorter.
    for until, asked, least in zip(blocked, pages, (0.4, 0.8, 1.6, 3.2), strict=True):
        assert until - asked >= least - 0.01
    assert all(asked_again >= until for until, asked_again in zip(blocked, pages[1:], strict=False))


def test_retry_after_is_in_the_pace_and_strikes_survive_a_restart_by_the_attempt() -> None:
    with Server(
        site(b"", lambda seen: reply(b"", "503 Busy", **({"Retry_After": "600"} if seen.path == "/a" else {})))
    ) as server:
        wished, silent = crawl([visit(server.url("/a", "a.test")), visit(server.url("/b", "b.test"), attempt=4)],
                               random=lambda: 1.0)  # fmt: skip
        if wished.visit.host.startswith("b"):
            wished, silent = silent, wished
        assert 599 < wished.pace.blocked_until - time.time() <= 600
        assert 1.5 < silent.pace.blocked_until - time.time() <= 3.2, "0.4 s doubled three times"
        assert wire.decode(wire.encode(wished), FetchResult) == wished


def test_sixty_hosts_on_one_address_never_early() -> None:
    rules = PolitenessSettings(delay=0.1, ip_delay=0.02, adaptive=0.0)
    hosts = [f"h{n}.test" for n in range(60)]
    with Server(site(b"")) as server:
        start = time.time()
        fetched = crawl([visit(server.url("/", host)) for host in hosts], settings(rules))
        assert all(isinstance(one.result, Page) for one in fetched)
        assert len(server.log) == 120
        stamps = sorted(seen.at for seen in server.log)
        assert stamps[0] - start >= 0.02 - 0.002, "a fresh start may follow a crash: the address waits its delay"
        assert not early(server, start + 0.02, 0.02)
        # A busy server stamps several at once, so a gap may be short; those of a client without pauses all are.
        assert median(later - sooner for sooner, later in pairwise(stamps)) >= 0.005
        pairs = [[seen.at for seen in server.log if seen.host.startswith(f"{host}:")] for host in hosts]
        hasty = [page - robots for robots, page in pairs if page - robots < 0.095]
        assert len(hasty) <= 6, "a stamp may be late now and then: a tenth is the noise of the server's threads"


def test_not_before_is_kept_and_crawl_delay_sets_the_pace() -> None:
    with Server(site(b"User-agent: *\nCrawl-delay: 0.5\n")) as server:
        at = time.time() + 0.3
        (fetched,) = crawl([visit(server.url("/"), not_before=at)])
        robots, page = (seen.at for seen in server.log)
        assert robots >= at - 0.005
        assert page - robots >= 0.495
        assert fetched.pace.delay == 0.5
        assert fetched.learned is not None and fetched.learned.crawl_delay == 0.5


def test_a_crawl_delay_longer_than_the_lease_gives_the_visit_back() -> None:
    with Server(site(b"User-agent: *\nCrawl-delay: 900\n")) as server:
        (fetched,) = crawl([visit(server.url("/"), deadline=time.time() + 600)])
        assert server.paths() == ["/robots.txt"]
    assert isinstance(fetched.result, Failure) and fetched.result.transient
    assert 895 < fetched.pace.next_at - time.time() <= 900


def test_nobody_is_asked_after_the_time_until_which_a_request_may_begin() -> None:
    """A worker that was paused goes on with visits in hand; their hosts may be another's by now."""
    with Server(site(b"")) as server:
        (fetched,) = crawl([visit(server.url("/"), start_before=time.time() - 1)])
        assert server.paths() == []
        assert isinstance(fetched.result, Failure) and fetched.result.transient
        (fetched,) = crawl([visit(server.url("/"), start_before=time.time() + 60)])
        assert not isinstance(fetched.result, Failure)
    with Server(site(b"User-agent: *\nCrawl-delay: 5\n")) as server:
        (fetched,) = crawl([visit(server.url("/"), start_before=time.time() + 2)])
        assert server.paths() == ["/robots.txt"], "the page's turn comes too late"
        assert isinstance(fetched.result, Failure)


def test_redirects_go_back_to_the_frontier_and_circles_end() -> None:
    def page(seen: Seen) -> bytes:
        if seen.path.startswith("/r/"):
            return reply(b"", "301 Moved", Location=f"/r/{int(seen.path[3:]) + 1}")
        return reply(b"", "302 Found", Location="/b" if seen.path == "/a" else "/a" if seen.path == "/b" else seen.path)

    quick = settings(PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0))
    with Server(site(b"", page)) as server:
        fetcher = open_fetcher(quick)

        def follow(path: str) -> list[FetchResult]:
            href = server.url(path)
            chain: list[FetchResult] = []
            while len(chain) < 30:
                fetcher.submit([visit(href)])
                chain += drain(fetcher)
                result = chain[-1].result
                if isinstance(result, Failure):
                    break
                assert 300 <= result.status < 400 and result.final_url == href
                href = result.hops[0].location
            return chain

        circle, itself, endless = follow("/a"), follow("/self"), follow("/r/0")
        fetcher.close()
        assert server.paths().count("/a") == 1, "one visit, one request"
    assert len(circle) == 2 and len(itself) == 1 and len(endless) == 6
    for chain in (circle, itself, endless):
        last = chain[-1].result
        assert isinstance(last, Failure) and last.kind == "redirects" and last.findings[0].code == "fetch-redirects"


def test_sites_of_your_own_may_be_read_without_robots() -> None:
    with Server(site(b"User-agent: *\nDisallow: /")) as server:
        own = settings(site=[SiteSettings(match="own.test", robots="ignore")])
        fetched = crawl([visit(server.url("/", "own.test")), visit(server.url("/", "other.test"))], own)
        assert server.paths("own.test") == ["/"]
        assert server.paths("other.test") == ["/robots.txt"]
        assert len(fetched) == 2


def test_http_and_https_have_robots_of_their_own() -> None:
    row = RobotsRow("https://a.test:1", "found", 1.0, time.time() + 1000)
    with Server(site(b"User-agent: *\nDisallow: /")) as server:
        fetcher = open_fetcher(settings())
        fetcher.submit([visit(server.url("/", "a.test"))], {f"a.test:{server.port}": row.encode()})
        (fetched,) = drain(fetcher)
        fetcher.close()
        assert server.paths() == ["/robots.txt"]
        assert isinstance(fetched.result, Failure) and fetched.result.kind == "robots"


def test_wake_ends_a_step_and_close_drops_what_is_under_way() -> None:
    fetcher = open_fetcher(settings())
    threading.Timer(0.1, fetcher.wake).start()
    start = time.monotonic()
    assert fetcher.step(60.0) == []
    assert time.monotonic() - start < 30.0
    with Server(lambda seen: reply(b"x")) as server:
        fetcher.submit([visit(server.url("/"), not_before=time.time() + 100)])
        assert fetcher.in_flight == 1
        fetcher.close()
        assert fetcher.in_flight == 0


def test_sitemaps_may_be_longer_than_pages() -> None:
    limits = LimitSettings(body_bytes=1000)
    with Server(site(b"", lambda seen: reply(b"x" * 5000))) as server:
        quick = settings(PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0), limits)
        url = Url.parse(server.url("/map"))
        sitemap = Visit(url.href, url.key, url.host, url.fingerprint, kind="sitemap")
        fetched = crawl([sitemap, visit(server.url("/page"))], quick)
        sizes = {one.visit.kind: len(one.result.body) for one in fetched if isinstance(one.result, Page)}
        assert sizes == {"sitemap": 5000, "plain": 1000}


def test_a_wall_clock_set_back_stalls_nothing() -> None:
    with Server(site(b"")) as server:
        wall = [time.time()]
        fetcher = open_fetcher(settings(), clock=lambda: wall[0])
        fetcher.submit([visit(server.url("/"))])
        while not server.log:
            fetcher.step(0.05)
        wall[0] -= 86400.0
        start = time.monotonic()
        (fetched,) = drain(fetcher)
        fetcher.close()
        assert isinstance(fetched.result, Page)
        assert time.monotonic() - start < 30.0
