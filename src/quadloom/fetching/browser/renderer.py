"""The fetch process's end of the browser: pages go in, the requests of their scripts come back, documents come out.

One visit, then, is one page and the requests of its scripts. They are GET requests for scripts and data; each is made
by the fetcher after robots.txt of its host, at the pace of its host. Programs are remembered for an hour, so the bundle
of a site is read once and not with every page. Everything else a page asks for (images, fonts, frames, POST) is
refused in the browser's process and never gets here.
"""

from __future__ import annotations

import importlib.util
import queue
import shutil
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from quadloom.errors import SettingsError
from quadloom.fetching.transport import Headers, Result
from quadloom.model import wire
from quadloom.model.finding import Finding
from quadloom.model.page import Page
from quadloom.process import threads
from quadloom.process.channel import ChannelClosed, ChildProcess, start
from quadloom.process.clock import unix_time
from quadloom.settings import Settings

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LOCAL_HEADER = "x-quadloom-rendered"
_MODULE = "quadloom.fetching.browser.chromium"
_HTML = ("text/html", "application/xhtml+xml")
_CACHE_BYTES = 32 * 1024 * 1024
_CACHE_SECONDS = 3600.0
_GRACE = 15.0  # seconds beyond its time after which a page's browser counts as hung
_DEATHS = 3  # in a row; then pages are no longer rendered
_REDIRECTS = 5
_DROPPED = frozenset({"etag", "last-modified", "content-length", "content-type", "content-encoding", LOCAL_HEADER})

Ask = Callable[[str, Callable[[Result], None]], None]
"""(URL, what to do with the result): makes one request for a page, politely."""


class RenderOrder(msgspec.Struct, frozen=True, array_like=True, tag="order"):
    """`seconds`: for this page, from the moment its turn comes; `until`: unix time at which its turn is over."""

    number: int
    page: Page
    seconds: float
    until: float


class ResourceAnswer(msgspec.Struct, frozen=True, array_like=True, tag="answer"):
    """`status` 0: refused or failed."""

    request: int
    status: int = 0
    headers: Headers = ()
    body: bytes = b""


class ResourceWanted(msgspec.Struct, frozen=True, array_like=True, tag="wanted"):
    order: int
    request: int
    href: str
    is_program: bool = False


class RenderedDocument(msgspec.Struct, frozen=True, array_like=True, tag="rendered"):
    """`body` None: the plain page counts, because it needs no scripts (`problem` is empty) or the browser failed."""

    order: int
    body: bytes | None = None
    truncated: bool = False
    reason: str = ""
    problem: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0


class Rendering(msgspec.Struct, frozen=True, array_like=True):
    """What one rendered page has cost besides its own request, and the page as the server sent it."""

    original: Page
    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


class RenderingTotals(msgspec.Struct):
    """What the browser has cost a crawl: pages after scripts, and what they took besides their own requests."""

    pages: int = 0
    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, rendering: Rendering) -> None:
        self.pages += 1
        self.requests += rendering.requests
        self.bytes += rendering.bytes
        self.seconds = round(self.seconds + rendering.seconds, 3)
        self.cpu_seconds = round(self.cpu_seconds + rendering.cpu_seconds, 3)


class PageRenderer(Protocol):
    """Runs the scripts of pages for a `Fetcher`. One thread; each page comes back exactly once, from within `step`."""

    def wants(self, page: Page) -> bool:
        """Whether the page may need a browser at all."""
        ...

    def render(self, page: Page, until: float, ask: Ask, done: Callable[[Page, Rendering | None], None]) -> None:
        """Accept a page. `until`: unix time at which it must be back. `done` gets the page to go on with."""
        ...

    def step(self) -> None:
        """Deliver what has come back."""
        ...

    def close(self) -> None: ...


class _Order:
    """A page in the browser's hands."""

    def __init__(
        self, page: Page, until: float, ask: Ask, done: Callable[[Page, Rendering | None], None], begun: float
    ) -> None:
        self.page, self.until, self.ask, self.done, self.begun = page, until, ask, done, begun
        self.requests = self.bytes = self.refused = 0
        # Counted when they are asked for, whatever becomes of them: many are in flight at once, and a refused one may
        # have cost a request for robots.txt.
        self.asked = 0


class BrowserRenderer:
    """See `PageRenderer`. The process is started with the first page, and again after it has died."""

    def __init__(self, settings: Settings, *, wake: Callable[[], None], clock: Callable[[], float] = unix_time) -> None:
        self._settings = settings
        self._limits = settings.limits
        self._wake = wake
        self._clock = clock
        self._orders: dict[int, _Order] = {}
        self._messages: queue.SimpleQueue[ResourceWanted | RenderedDocument | ChildProcess] = queue.SimpleQueue()
        self._programs = _Programs()
        self._child: ChildProcess | None = None
        self._number = 0
        self._deaths = 0

    def wants(self, page: Page) -> bool:
        media_type = page.content_type.partition(";")[0].strip().lower()
        return page.status == 200 and media_type in _HTML and bool(page.body) and not page.truncated

    def render(self, page: Page, until: float, ask: Ask, done: Callable[[Page, Rendering | None], None]) -> None:
        if self._deaths >= _DEATHS:
            return done(_failed(page, f"the browser died {_DEATHS} times in a row and is not started again"), None)
        self._number += 1
        self._orders[self._number] = _Order(page, until, ask, done, self._clock())
        try:
            self._running().channel.send(RenderOrder(self._number, page, self._limits.render_seconds, until))
        except ChannelClosed:
            if self._child is not None:
                self._died(self._child)
        return None

    def step(self) -> None:
        while not self._messages.empty():
            message = self._messages.get()
            if isinstance(message, ResourceWanted):
                self._requested(message)
            elif isinstance(message, RenderedDocument):
                self._rendered(message)
            elif message is self._child:
                self._died(message)
        now = self._clock()
        if self._child is not None and any(now > order.until + _GRACE for order in self._orders.values()):
            self._died(self._child)

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None
        self._orders.clear()

    def _running(self) -> ChildProcess:
        if self._child is None:
            child = self._child = start(_MODULE, self._settings)
            threads.start("browser-receiver", lambda: self._receive(child), lambda _error: None)
        return self._child

    def _receive(self, child: ChildProcess) -> None:
        """Runs in a thread; the loop of the fetch process is woken for every message."""
        try:
            while True:
                data = child.channel.receive_bytes()
                self._messages.put(wire.decode(data, ResourceWanted | RenderedDocument))  # type: ignore[arg-type]
                self._wake()
        except (ChannelClosed, msgspec.DecodeError):
            self._messages.put(child)
            self._wake()

    def _died(self, child: ChildProcess) -> None:
        child.close()
        self._child = None
        self._deaths += 1
        orders, self._orders = self._orders, {}
        for order in orders.values():
            order.done(_failed(order.page, "the browser's process died or hung"), None)

    def _requested(self, wanted: ResourceWanted) -> None:
        order = self._orders.get(wanted.order)
        if order is None:
            return self._answer(ResourceAnswer(wanted.request))
        found = self._programs.get(wanted.href, self._clock())
        if found is not None:
            return self._answer(ResourceAnswer(wanted.request, found.status, found.headers, found.body))
        if order.asked >= self._limits.render_requests or order.bytes >= self._limits.render_bytes:
            order.refused += 1
            return self._answer(ResourceAnswer(wanted.request))
        return self._ask(wanted, order, wanted.href, _REDIRECTS)

    def _ask(self, wanted: ResourceWanted, order: _Order, href: str, redirects: int) -> None:
        def done(result: Result) -> None:
            if not isinstance(result, Page):
                order.refused += 1
                return self._answer(ResourceAnswer(wanted.request, result.status))
            order.requests += 1
            order.bytes += result.wire_bytes or len(result.body)
            if result.hops:
                target = result.hops[-1].location
                follows = redirects > 0 and target.startswith(("http://", "https://"))
                return (
                    self._ask(wanted, order, target, redirects - 1)
                    if follows
                    else self._answer(ResourceAnswer(wanted.request))
                )
            if wanted.is_program:
                self._programs.put(wanted.href, result, self._clock())
            return self._answer(ResourceAnswer(wanted.request, result.status, result.headers, result.body))

        order.asked += 1
        order.ask(href, done)

    def _answer(self, answer: ResourceAnswer) -> None:
        if self._child is not None:
            try:
                self._child.channel.send(answer)
            except ChannelClosed:
                return  # the receiving thread reports the same

    def _rendered(self, document: RenderedDocument) -> None:
        order = self._orders.pop(document.order, None)
        if order is None:
            return None
        if document.problem:
            return order.done(_failed(order.page, document.problem), None)
        self._deaths = 0
        if document.body is None:
            return order.done(order.page, None)
        cost = Rendering(order.page, order.requests, order.bytes, document.seconds, document.cpu_seconds)
        return order.done(_as_rendered(document, order, document.body), cost)


class _Programs:
    """Scripts that were read within the hour, the oldest dropped first."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[float, Page]] = OrderedDict()
        self._size = 0

    def get(self, href: str, now: float) -> Page | None:
        until, page = self._known.get(href, (0.0, None))
        return page if until > now else None

    def put(self, href: str, page: Page, now: float) -> None:
        if page.status != 200 or "no-store" in page.header("cache-control").lower():
            return
        self._drop(href)
        self._known[href] = (now + _CACHE_SECONDS, page)
        self._size += len(page.body)
        while self._size > _CACHE_BYTES:
            self._drop(next(iter(self._known)))

    def _drop(self, href: str) -> None:
        old = self._known.pop(href, None)
        if old is not None:
            self._size -= len(old[1].body)


def _as_rendered(document: RenderedDocument, order: _Order, body: bytes) -> Page:
    """The page after its scripts. Its validators are dropped: an unchanged shell says nothing about the data in it."""
    cost = f"{order.requests} requests, {order.bytes} bytes, {document.seconds:.1f} s"
    headers = [(name, value) for name, value in order.page.headers if name not in _DROPPED]
    message = f"read after its scripts ran ({document.reason}): {cost}"
    if order.refused:
        message += f"; {order.refused} requests refused or failed"
    return msgspec.structs.replace(
        order.page,
        body=body,
        headers=(*headers, ("content-type", "text/html; charset=utf-8"), (LOCAL_HEADER, cost)),
        truncated=document.truncated,
        wire_bytes=(order.page.wire_bytes or len(order.page.body)) + order.bytes,
        findings=(*order.page.findings, Finding("rendered", message, "info", "fetch")),
    )


def _failed(page: Page, problem: str) -> Page:
    finding = Finding(
        "render-failed",
        f"its scripts could not be run, so it was read without them: {problem}",
        "warning",
        "fetch",
        advice="see limits.render_seconds, limits.render_requests and `quadloom check`",
    )
    return msgspec.structs.replace(page, findings=(*page.findings, finding))


def find_browser(settings: Settings) -> str:
    """The Chromium to run: `crawl.browser_path`, else one on the path; "" = the one that Playwright has installed.

    Raises `SettingsError` if a part is missing, and says which.
    """
    why = f"crawl.browser = {settings.crawl.browser!r} needs"
    if importlib.util.find_spec("playwright") is None:
        raise SettingsError(
            f"{why} the package playwright, which is not installed",
            hint="pip install 'quadloom[browser]', and Chromium from your system; or crawl.browser = \"never\"",
        )
    if settings.crawl.browser_path:
        if shutil.which(settings.crawl.browser_path) is None:
            raise SettingsError(f"crawl.browser_path: {settings.crawl.browser_path} is no program")
        return settings.crawl.browser_path
    for name in BROWSERS:
        if (found := shutil.which(name)) is not None:
            return found
    if any((Path.home() / ".cache/ms-playwright").glob("chromium*")):
        return ""
    raise SettingsError(
        f"{why} a Chromium, and none of {', '.join(BROWSERS)} is on the path",
        hint="install Chromium from your system (apt install chromium), or name one in crawl.browser_path",
    )


def open_renderer(settings: Settings, wake: Callable[[], None], clock: Callable[[], float]) -> PageRenderer | None:
    """The renderer of `crawl.browser`; None for "never". Raises `SettingsError` if a part is missing."""
    if settings.crawl.browser == "never" or settings.crawl.transport != "http:":
        return None  # a replay gets rendered pages from the archive
    find_browser(settings)
    return BrowserRenderer(settings, wake=wake, clock=clock)
