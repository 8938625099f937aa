"""The process of the browser: `python -m quadloom.fetching.browser.chromium FD`. Playwright drives a headless Chromium.

What keeps it harmless:

* Chromium's network leads nowhere: no name resolves and its proxy is a closed port. What scripts may have is handed to
  them from the fetch process; sockets, workers of services, downloads, frames and windows are refused.
* Each page gets a profile of its own, without cookies, that is thrown away afterwards.
* A page has `limits.render_seconds`. A page that does not let go of the processor then costs the browser, which is
  started again for the next one; this process ends with its owner.
* Heaps of scripts and of the driver are capped, and so is this process.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, Error, Route, async_playwright

from quadloom.documents.syntaxes.html.shell import why_shell
from quadloom.fetching.browser.renderer import (
    RenderedDocument,
    RenderOrder,
    ResourceAnswer,
    ResourceWanted,
    find_browser,
)
from quadloom.fetching.transport import user_agent
from quadloom.model import wire
from quadloom.process import limits
from quadloom.process.channel import Channel, ChannelClosed, attach
from quadloom.process.clock import unix_time
from quadloom.settings import Settings

PARALLEL = 2  # pages in the browser at a time
_QUIET = 0.5  # seconds without a request after which a page is finished
_TICK = 0.05
_CLOSE_SECONDS = 5.0
_PAGES_PER_BROWSER = 200
_PROGRAMS = frozenset({"script"})
_DATA = frozenset({"xhr", "fetch"})
_HEAP_MIB = 512
_ARGUMENTS = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--mute-audio",
    "--no-first-run",
    f"--js-flags=--max-old-space-size={_HEAP_MIB}",
)
_WITHOUT_PEERS = "for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection']) delete window[name];"
_IDLE = "() => new Promise(done => requestIdleCallback(() => done(1), {timeout: 2000}))"
_OPEN_TO_ALL = {"access-control-allow-credentials": "true", "access-control-allow-headers": "*"}
_PASSED_ON = frozenset({"content-type", "cache-control", "link", "etag", "last-modified", "x-total-count"})


class BrowserLost(Exception):
    """The page does not let go of its browser."""


class _Renderer:
    def __init__(self, settings: Settings, channel: Channel, playwright: Any) -> None:
        self._settings = settings
        self._channel = channel
        self._playwright = playwright
        self._program = find_browser(settings)
        self._browser: Browser | None = None
        self._pages = 0
        self._turns = asyncio.Semaphore(PARALLEL)
        self._starting = asyncio.Lock()
        self._requests = 0
        self._asked: dict[int, asyncio.Future[ResourceAnswer]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def receive(self) -> None:
        """Called when the channel is readable."""
        self.take(self._channel.poll())

    def take(self, messages: list[bytes]) -> None:
        for data in messages:
            message = wire.decode(data, RenderOrder | ResourceAnswer)  # type: ignore[arg-type]
            if isinstance(message, RenderOrder):
                task = asyncio.get_running_loop().create_task(self._serve(message))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            elif (future := self._asked.pop(message.request, None)) is not None and not future.done():
                future.set_result(message)

    async def ask(self, order: int, href: str, is_program: bool) -> ResourceAnswer:
        self._requests += 1
        number = self._requests
        future: asyncio.Future[ResourceAnswer] = asyncio.get_running_loop().create_future()
        self._asked[number] = future
        self._channel.send(ResourceWanted(order, number, href, is_program))
        return await future

    async def _serve(self, order: RenderOrder) -> None:
        reason = "crawl.browser = always" if self._settings.crawl.browser == "always" else why_shell(order.page.body)
        if not reason:
            return self._channel.send(RenderedDocument(order.number))
        async with self._turns:
            seconds = min(order.seconds, order.until - unix_time())
            if seconds < 1.0:
                late = "other pages took all the time that its visit had"
                return self._channel.send(RenderedDocument(order.number, problem=late))
            return self._channel.send(await self._render(order, reason, seconds))

    async def _render(self, order: RenderOrder, reason: str, seconds: float) -> RenderedDocument:
        begun, cpu = time.monotonic(), _cpu_of_descendants()
        try:
            browser = await self._running()
            html = await _PageLoad(self, browser, order, self._settings).run(seconds)
        except (Error, BrowserLost, TimeoutError) as error:
            if not isinstance(error, Error) or self._browser is None or not self._browser.is_connected():
                await self._drop_browser()
            problem = str(error).splitlines()[0][:200] if str(error) else f"not finished within {seconds:.0f} s"
            return RenderedDocument(order.number, problem=problem)
        body = html.encode("utf-8", "replace")
        most = self._settings.limits.body_bytes
        return RenderedDocument(
            order.number,
            body[:most],
            len(body) > most,
            reason,
            seconds=time.monotonic() - begun,
            cpu_seconds=max(0.0, _cpu_of_descendants() - cpu),
        )

    async def _running(self) -> Browser:
        async with self._starting:
            self._pages += 1
            if self._browser is not None and self._pages > _PAGES_PER_BROWSER and self._turns.locked() is False:
                await self._drop_browser()
            if self._browser is None or not self._browser.is_connected():
                self._pages = 1
                self._browser = await self._playwright.chromium.launch(
                    executable_path=self._program or None,
                    headless=True,
                    args=list(_ARGUMENTS),
                    chromium_sandbox=os.geteuid() != 0,  # Chromium refuses to sandbox for root
                    env=_environment(),
                    timeout=60_000,
                )
            return self._browser

    async def _drop_browser(self) -> None:
        browser, self._browser = self._browser, None
        if browser is not None:
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await browser.close()
            except (Error, TimeoutError):
                os._exit(1)  # the owner starts this process again, and the driver ends the browser with it


class _PageLoad:
    """One page in a profile of its own."""

    def __init__(self, renderer: _Renderer, browser: Browser, order: RenderOrder, settings: Settings) -> None:
        self._renderer = renderer
        self._browser = browser
        self._order = order
        self._settings = settings
        self._pending = 0
        self._active_at = time.monotonic()
        self._is_loaded = False

    async def run(self, seconds: float) -> str:
        """The document after its scripts. Raises `BrowserLost` if the page does not answer."""
        until = time.monotonic() + seconds
        context = await self._browser.new_context(
            user_agent=user_agent(self._settings.crawl), service_workers="block", accept_downloads=False
        )
        try:
            return await self._load(context, until)
        finally:
            await self._close(context)

    async def _load(self, context: BrowserContext, until: float) -> str:
        await context.add_init_script(_WITHOUT_PEERS)
        await context.route("**/*", self._on_request)
        await context.route_web_socket("**/*", lambda socket: socket.close())
        page = await context.new_page()
        context.on("page", lambda opened: asyncio.ensure_future(opened.close()))
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + until - time.monotonic()):
                await page.goto(self._order.page.final_url, wait_until="domcontentloaded", timeout=0)
                while not self._is_quiet():
                    await asyncio.sleep(_TICK)
                    if self._is_quiet():
                        await page.evaluate(_IDLE)
        except TimeoutError:
            pass  # what is there by now counts, if the page lets go of it
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                return await page.content()
        except TimeoutError:
            raise BrowserLost(f"its scripts were still running after {self._order.seconds:.0f} s") from None

    def _is_quiet(self) -> bool:
        return self._pending == 0 and time.monotonic() - self._active_at >= _QUIET

    async def _close(self, context: BrowserContext) -> None:
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await context.close()
        except (Error, TimeoutError):
            raise BrowserLost("its scripts do not end") from None

    async def _on_request(self, route: Route) -> None:
        self._active_at = time.monotonic()
        self._pending += 1
        try:
            with suppress(Error):  # the page has gone meanwhile
                await self._respond(route)
        finally:
            self._pending -= 1
            self._active_at = time.monotonic()

    async def _respond(self, route: Route) -> None:
        request = route.request
        kind = request.resource_type
        if request.is_navigation_request():
            if self._is_loaded or request.frame.parent_frame is not None:
                return await route.abort()
            self._is_loaded = True
            page = self._order.page
            return await route.fulfill(status=200, headers={"content-type": page.content_type}, body=page.body)
        if kind == "stylesheet":
            return await route.fulfill(status=200, headers={"content-type": "text/css"}, body=b"")
        allowed = _open_to(request.headers.get("origin", ""))
        if request.method == "OPTIONS" and kind in _DATA | {"preflight", "other"}:
            return await route.fulfill(status=204, headers=allowed)
        if request.method != "GET" or kind not in _PROGRAMS | _DATA or not request.url.startswith(("http:", "https:")):
            return await route.abort()
        answer = await self._renderer.ask(self._order.number, _without_fragment(request.url), kind in _PROGRAMS)
        if not answer.status:
            return await route.abort()
        headers = {name: value for name, value in answer.headers if name in _PASSED_ON}
        return await route.fulfill(status=answer.status, headers=headers | allowed, body=answer.body)


def _open_to(origin: str) -> dict[str, str]:
    """Scripts may read what they asked for: nothing here is anybody's secret, because no request carries a login."""
    return {**_OPEN_TO_ALL, "access-control-allow-origin": origin or "*"}


def _without_fragment(url: str) -> str:
    return urlsplit(url)._replace(fragment="").geturl()


def _environment() -> dict[str, str | float | bool]:
    """Nothing of the user's own: scripts of strangers run there."""
    passed = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH") if name in os.environ}
    return {**passed, "LANG": "C.UTF-8", "TZ": "UTC"}


def _cpu_of_descendants() -> float:
    """CPU seconds of the driver and all processes of the browser so far; 0 without /proc."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    ticks = os.sysconf("SC_CLK_TCK")
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            fields = stat.read_text().rpartition(")")[2].split()
            pid = int(stat.parent.name)
            parents[pid] = int(fields[1])
            spent[pid] = sum(int(value) for value in fields[11:15]) / ticks
    ours = found = {os.getpid()}
    while found:
        found = {pid for pid, parent in parents.items() if parent in ours and pid not in ours}
        ours |= found
    return sum(spent[pid] for pid in ours - {os.getpid()})


async def _main(channel: Channel, settings: Settings) -> None:
    async with async_playwright() as playwright:
        limits.limit_memory(settings.limits.transform_bytes)  # not before: the driver and Chromium would inherit it
        renderer = _Renderer(settings, channel, playwright)
        ended = asyncio.get_running_loop().create_future()

        def readable() -> None:
            try:
                renderer.receive()
            except ChannelClosed:
                ended.cancel()

        asyncio.get_running_loop().add_reader(channel.fileno(), readable)
        renderer.take(channel.complete())
        await ended


def main() -> None:
    os.environ["NODE_OPTIONS"] = f"--max-old-space-size={_HEAP_MIB}"
    channel = attach()
    settings = channel.receive(Settings)
    with suppress(asyncio.CancelledError, ChannelClosed):
        asyncio.run(_main(channel, settings))


if __name__ == "__main__":
    main()
