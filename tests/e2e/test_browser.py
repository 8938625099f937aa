"""Pages whose content appears only after scripts: read with `crawl.browser`, within every rule of the crawl."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from command_line import quadloom as command
from fakeweb.scripted import Answer, ScriptedSite, html
from quadloom.crawling.inspect.inspection import inspect
from quadloom.errors import SettingsError
from quadloom.fetching.browser import renderer
from quadloom.fetching.browser.renderer import BROWSERS, BrowserRenderer, Rendering, find_browser
from quadloom.fetching.transport import Done
from quadloom.model.page import Page
from quadloom.settings import CrawlSettings, Settings
from quadloom.settings.loading import Value, load
from quadloom.warehouse import Warehouse
from waiting import wait_until

needs_chromium = pytest.mark.skipif(
    importlib.util.find_spec("playwright") is None or not any(map(shutil.which, BROWSERS)),
    reason="needs playwright and a Chromium",
)

APP = b"""
fetch('/api/event.json').then(answer => answer.json()).then(event => {
  const root = document.getElementById('root');
  root.innerHTML = `<h1>${event.name}</h1><p>Zither music by the weir.</p><a href="/next">on</a>`;
  const data = document.createElement('script');
  data.type = 'application/ld+json';
  data.textContent = JSON.stringify({'@context': 'https://schema.org', '@type': 'Event', 'name': event.name});
  document.head.append(data);
});
for (const attempt of [
  () => fetch('/api/private.json'),
  () => fetch('/api/order', {method: 'POST', body: 'x'}),
  () => { new Image().src = '/picture.png'; },
  () => new WebSocket('ws://127.0.0.1:PORT/'),
  () => fetch('http://127.0.0.1:PORT/').catch(() => 0),
  () => navigator.sendBeacon('/beacon', 'x'),
  () => {
    const frame = document.createElement('iframe');
    frame.src = '/frame';
    document.body.append(frame);
    setTimeout(() => frame.remove(), 200);
  },
]) try { attempt(); } catch (error) {}
"""
SHELL = "<div id=root></div><script src=/app.js></script><link rel=stylesheet href=/style.css>"
NAMES = "SELECT ?name WHERE { ?event a schema:Event ; schema:name ?name } ORDER BY ?name"


@pytest.fixture
def elsewhere() -> Iterator[socket.socket]:
    """A service of the machine that no crawl may reach: its port is not allowed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def site(elsewhere: socket.socket) -> Iterator[ScriptedSite]:
    app = APP.replace(b"PORT", str(elsewhere.getsockname()[1]).encode())
    pages = {
        "/robots.txt": Answer(b"User-agent: *\nDisallow: /api/private\n", "text/plain"),
        "/": html(SHELL)._replace(etag='"1"'),
        "/next": html("<p>" + "A page with enough text of its own needs no browser. " * 10 + "<script>1</script>"),
        "/app.js": Answer(app, "text/javascript"),
        "/api/event.json": Answer(b'{"name": "Night of the zithers"}', "application/json"),
        "/api/private.json": Answer(b"{}", "application/json"),
    }
    with ScriptedSite(pages) as site:
        yield site


def settings(site: ScriptedSite, browser: str, **sections: dict[str, Value]) -> Settings:
    crawl: dict[str, Value] = {"browser": browser, **sections.pop("crawl", {})}
    guard: dict[str, Value] = {"allow": ["127.0.0.0/8"], "ports": [site.port]}
    return load(environ={}, overrides=site.settings(crawl=crawl, guard=guard, **sections)).settings


@needs_chromium
@pytest.mark.browser
def test_a_shell_is_read_after_its_scripts_and_within_the_rules(
    tmp_path: Path, site: ScriptedSite, elsewhere: socket.socket
) -> None:
    with Warehouse.open(tmp_path, settings=settings(site, "auto", politeness={"delay": 0.2})) as warehouse:
        session = warehouse.crawl([site.url()])
        assert {one.visit.href for one in session} == {site.url("/"), site.url("/next")}, "links of scripts are found"
        assert [row["name"].value for row in warehouse.sparql(NAMES).rows()] == ["Night of the zithers"]
        assert [hit.id for hit in warehouse.search("zither weir").hits] == [site.url("/")]
        cost = session.report().rendering
        assert cost is not None and (cost.pages, cost.requests) == (1, 2) and cost.bytes > len(APP)
        (page,) = [row for row in warehouse.stores.catalog.scan() if row.href == site.url("/")]
        assert "rendered" in {finding.code for finding in page.findings}
        found = [one for _, one in warehouse.stores.archive.scan() if one.url == site.url("/")]
        bodies = [one.body for one in found if isinstance(one, Page)]
        assert [b"zithers" in body for body in bodies] == [False, True], "the original, then the rendered"
        assert page.etag == "", "an unchanged shell says nothing about its data"
    paths = [asked.path for asked in site.log]
    assert sorted(paths) == ["/", "/api/event.json", "/app.js", "/next", "/robots.txt"]
    assert all("Quadloom/" in asked.headers["User-Agent"] for asked in site.log)
    elsewhere.settimeout(0.2)
    with pytest.raises(TimeoutError):
        elsewhere.accept()


@needs_chromium
@pytest.mark.browser
def test_scripts_that_never_end_cost_their_own_page(site: ScriptedSite) -> None:
    site.pages["/"] = html("<div id=root></div><script>for (;;) {}</script>")
    seen = inspect(site.url(), settings=settings(site, "auto", limits={"render_seconds": 2.0}))
    assert seen.status == 200
    assert [finding.code for finding in seen.findings if "render" in finding.code] == ["render-failed"]
    site.pages["/"] = html(SHELL)
    seen = inspect(site.url(), settings=settings(site, "always"))
    assert "rendered" in {finding.code for finding in seen.findings}


@needs_chromium
@pytest.mark.browser
def test_a_browser_that_is_killed_gives_its_pages_back_and_leaves_no_process() -> None:
    page = Page(
        "http://a.example/", "http://a.example/", 200, (("content-type", "text/html"),), html(SHELL).body, 0.0, 0.1
    )
    back: list[Page] = []
    asked: list[str] = []

    def ask(href: str, _done: Done) -> None:
        asked.append(href)  # and never answers

    def done(result: Page, _rendering: Rendering | None) -> None:
        back.append(result)

    rendering = BrowserRenderer(Settings(crawl=CrawlSettings(browser="auto")), wake=lambda: None)
    try:
        rendering.render(page, time.time() + 100, ask, done)
        _until(rendering, lambda: bool(asked))
        child = rendering._child
        assert child is not None and asked == ["http://a.example/app.js"]
        processes = _descendants(child.process.pid)
        assert len(processes) > 2
        os.kill(child.process.pid, signal.SIGKILL)
        _until(rendering, lambda: bool(back))
        assert back[0].body == page.body and back[0].findings[0].code == "render-failed"
        _until(rendering, lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in processes))
    finally:
        rendering.close()


def _until(rendering: BrowserRenderer, ready: Callable[[], object]) -> None:
    wait_until(lambda: rendering.step() or ready(), seconds=100)


def _descendants(pid: int) -> set[int]:
    children = {
        int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()
    }
    return children.union(*(_descendants(child) for child in children)) if children else set()


def test_without_its_parts_it_says_what_is_missing(
    tmp_path: Path, site: ScriptedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "quadloom.toml").write_text('[crawl]\nbrowser = "auto"\n[guard]\nallow = ["127.0.0.0/8"]\n')
    with monkeypatch.context() as changed:
        changed.setattr(importlib.util, "find_spec", lambda _name: None)
        done = command("crawl", site.url(), "--contact", "a@b.example", cwd=tmp_path)
        assert done.returncode == 3
        assert "playwright" in done.stderr and "pip install 'quadloom[browser]'" in done.stderr
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: object())
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(SettingsError, match="needs a Chromium") as missing:
        find_browser(Settings(crawl=CrawlSettings(browser="always")))
    assert "browser_path" in missing.value.hint
    assert not site.log, "nothing was requested"


def test_by_default_no_browser_is_looked_for(site: ScriptedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderer, "find_browser", lambda _settings: pytest.fail("not needed"))
    seen = inspect(site.url(), settings=settings(site, "never"))
    assert seen.status == 200 and [asked.path for asked in site.log] == ["/robots.txt", "/"]
