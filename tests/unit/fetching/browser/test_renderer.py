"""What scripts of a page may request, and when: the rules of the fetcher, by a simulated clock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import pairwise

import msgspec

from quadloom.fetching.browser.renderer import Ask, BrowserRenderer, Rendering, ResourceWanted, _Order
from quadloom.fetching.fetcher import Fetcher, FetchResult
from quadloom.fetching.in_process import InProcessTransport, respond
from quadloom.fetching.transport import Done, FetchRequest, Result
from quadloom.model.page import Failure, Page
from quadloom.model.visit import Visit
from quadloom.settings import LimitSettings, PolitenessSettings, Settings

SETTINGS = Settings(politeness=PolitenessSettings(delay=2.0, ip_delay=0.0, adaptive=0.0, max_crawl_delay=10.0))
SHOP, PARTS = "http://shop.example", "http://parts.example"
ROBOTS = {f"{SHOP}/robots.txt": b"User-agent: *\nDisallow: /api/private\n", f"{PARTS}/robots.txt": b""}


class Asking:
    """A renderer that asks for these URLs at once, and is done when all have been answered."""

    def __init__(self, *hrefs: str) -> None:
        self._hrefs = hrefs
        self.answers: dict[str, Result] = {}

    def wants(self, page: Page) -> bool:
        return page.content_type == "text/html"

    def render(self, page: Page, until: float, ask: Ask, done: Callable[[Page, Rendering | None], None]) -> None:
        def answered(href: str, result: Result) -> None:
            self.answers[href] = result
            if len(self.answers) == len(self._hrefs):
                rendered = msgspec.structs.replace(page, body=b"<p>rendered")
                done(rendered, Rendering(page, requests=len(self.answers)))

        assert until > 0
        for href in self._hrefs:
            ask(href, lambda result, href=href: answered(href, result))  # type: ignore[misc]

    def step(self) -> None:
        """Nothing happens elsewhere."""

    def close(self) -> None:
        """Nothing is open."""


def run(renderer: Asking, busy: str = "") -> tuple[FetchResult, list[tuple[float, str]]]:
    """One visit of the shop's page: how it ended, and the time and URL of each request."""
    now = 1000.0
    log: list[tuple[float, str]] = []

    def pass_time(seconds: float) -> None:
        nonlocal now
        now += seconds

    def answer(request: FetchRequest) -> Page | Failure:
        log.append((now - 1000.0, request.href))
        if request.href == busy:
            return respond(request, b"", status=429, headers=(("retry-after", "60"),))
        body, kind = ROBOTS.get(request.href, b"x"), "text/html" if request.href == f"{SHOP}/" else "text/plain"
        return respond(request, body, headers=(("content-type", kind),))

    transport = InProcessTransport(SETTINGS, answer, clock=lambda: now, sleep=pass_time)
    fetcher = Fetcher(
        SETTINGS, transport, clock=lambda: now, monotonic=lambda: now, random=lambda: 0.5, renderer=renderer
    )
    fetcher.submit([Visit(f"{SHOP}/", f"{SHOP}/", "shop.example", 1)])
    for _ in range(1000):
        ended = fetcher.step(1.0)
        if ended:
            return ended[0], log
    raise AssertionError("the visit did not end")


def test_requests_of_scripts_follow_each_other_at_the_pace_of_their_host() -> None:
    renderer = Asking(f"{SHOP}/app.js", f"{SHOP}/api/1", f"{PARTS}/lib.js", f"{PARTS}/more.js")
    ended, log = run(renderer)
    assert isinstance(ended.result, Page) and ended.result.body == b"<p>rendered"
    assert ended.rendering is not None and ended.rendering.original.body == b"x"
    for host in (SHOP, PARTS):
        times = [at for at, href in log if href.startswith(host)]
        assert log[[href.startswith(host) for _, href in log].index(True)][1] == f"{host}/robots.txt", "asked first"
        assert all(later - earlier >= 2.0 for earlier, later in pairwise(times)), log
    last = max(at for at, href in log if href.startswith(SHOP))
    assert ended.pace.next_at >= 1000.0 + last + 2.0, "the next visit waits for the scripts' last request, too"
    assert ended.learned is not None and ended.learned.host == "shop.example"


def test_robots_txt_holds_for_scripts() -> None:
    renderer = Asking(f"{SHOP}/api/private/1", f"{SHOP}/app.js")
    ended, log = run(renderer)
    refused = renderer.answers[f"{SHOP}/api/private/1"]
    assert isinstance(refused, Failure) and refused.kind == "robots"
    assert isinstance(ended.result, Page)
    assert f"{SHOP}/api/private/1" not in [href for _, href in log]


def test_a_host_that_is_busy_for_scripts_is_left_alone() -> None:
    ended, _ = run(Asking(f"{SHOP}/api/1"), busy=f"{SHOP}/api/1")
    assert isinstance(ended.result, Page), "the page itself was read"
    assert ended.pace.next_at >= 1060.0, "but the server has asked for a minute"


def test_addresses_that_the_guard_refuses_are_refused_to_scripts() -> None:
    renderer = Asking("http://127.0.0.1/admin", "http://169.254.169.254/latest/meta-data/")
    _, log = run(renderer)
    kinds = {href: answer.kind for href, answer in renderer.answers.items() if isinstance(answer, Failure)}
    assert set(kinds) == set(renderer.answers)
    assert not [href for _, href in log if "127.0.0.1" in href or "169.254" in href]


def test_scripts_cannot_ask_more_by_asking_at_once_or_in_vain() -> None:
    """Requests were counted when they had been answered with a page: a flood of them went out, 729 instead of 60."""
    settings = Settings(limits=LimitSettings(render_requests=5))
    with closing(BrowserRenderer(settings, wake=lambda: None)) as renderer:
        page = Page(f"{SHOP}/", f"{SHOP}/", 200, (), b"", 0.0, 0.0)
        waiting: list[Done] = []
        renderer._orders[1] = _Order(page, 9.0, lambda _, done: waiting.append(done), lambda *_: None, 0.0)
        for number in range(50):
            renderer._requested(ResourceWanted(1, number, f"{PARTS}/{number}", False))
        assert len(waiting) == 5
        for done in waiting[:]:
            done(Failure(f"{PARTS}/", "status", "HTTP 503", True, 0.0, status=503))
        for number in range(50):
            renderer._requested(ResourceWanted(1, number, f"{PARTS}/{number}", False))
        assert len(waiting) == 5
