"""Malicious pages, crawled and then shown in a real browser: none of their scripts runs."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from urllib.parse import quote

import pytest
import uvicorn

from e2e.live_site import PATIENCE
from quadloom.settings import Settings, WebSettings
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from unit.web.web_fixture import ATTACKS, EVIL, fill
from waiting import wait_until

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("attacks") / "data"
    fill(path)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    app = create_app(SiteState(path, Settings(web=WebSettings(rate=0))))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    wait_until(lambda: server.started)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=20)


def _addresses() -> list[str]:
    fixed = [
        "/",
        "/search?q=lighthouse",
        f"/page?url={quote(EVIL)}",
        f"/page/body?url={quote(EVIL)}",
        "/vocabularies",
        "/entity?iri=" + quote("http://evil.example/thing"),
        "/entity.svg?iri=" + quote("http://evil.example/thing"),
        "/site/evil.example",
        "/site/evil.example/picture.svg",
        "/monitor",
        f"/page.json?url={quote(EVIL)}",
        "/sparql?query=" + quote("SELECT * { ?s ?p ?o }"),
    ]
    places = (
        "/search?q=",
        "/search?type=",
        "/search?since=",
        "/entity?iri=",
        "/page?url=",
        "/sparql?query=",
        "/site/",
        "/inspect?markup=",
        "/sites?sort=",
        "/",
    )
    # Each place meets two attacks and each attack several places; all pairs would take a minute.
    return fixed + [
        place + quote(ATTACKS[(number + turn) % len(ATTACKS)], safe="")
        for number, place in enumerate(places)
        for turn in (0, 3)
    ]


def test_no_script_runs(base: str) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="the playwright package is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no system Chromium was found")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = chromium.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        for address in _addresses():
            page.goto(base + address)
            assert page.evaluate("window.hit") is None, address
            assert page.locator("main a[href^='javascript' i]").count() == 0, address
        assert dialogs == []
        # The test can fail: without protection the same title does run.
        page.goto("about:blank")
        page.set_content(f"<title>x</title>{ATTACKS[1][2:]}")
        page.wait_for_function("window.hit === 1")
        chromium.close()
