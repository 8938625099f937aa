"""The site over a real crawl: started by `quadloom serve --crawl`, asked by foreign clients, seen in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from e2e.live_site import PATIENCE, Live, live_site
from quadloom.crawling.run.control import ask
from servers import free_port
from waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "web-assets" / "node_modules" / "axe-core" / "axe.min.js"
PAGES = (
    "/",
    "/search?q=lighthouse",
    "/sparql",
    "/monitor",
    "/inspect",
    "/findings",
    "/findings/bad-price",
    "/sites",
    "/vocabularies",
    "/types",
    "/type?iri=Event&sources=1",
    "/type?iri=Person&sites=2",
    "/ask?type=schema:Event&property=schema:location",
    "/schema",
    "/changed",
    "/pages?outcome=new",
    "/queries",
    "/result?query=" + quote("SELECT ?e ?start { ?e schema:startDate ?start }"),
    "/topics",
    "/subscriptions",
    "/about",
    "/sign-in",
    "/nowhere",
)
# The editor with a result in it, and with an error.
EDITOR = ("/sparql?query=" + quote("SELECT ?s ?p ?o { ?s ?p ?o } LIMIT 12"), "/sparql?query=SELECT+nonsense")

OF_A_PAGE = re.compile(r"/page\?url=")
# A small phone, a phone, a desk.
WIDTHS = (320, 390, 1280)
# Scripts that react to the new size have run then.
NEXT_FRAME = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live_site(tmp_path_factory.mktemp("live")) as site:
        yield site
        site.process.terminate()
        assert site.process.wait(60) == 0, site.log.read_text()
        assert ask(site.warehouse, "status") is None, "the crawl ended with its server"


def test_a_foreign_client_speaks_sparql(live: Live) -> None:
    wrapper = pytest.importorskip("SPARQLWrapper", reason="the SPARQLWrapper package is not installed")
    client = wrapper.SPARQLWrapper(live.base + "/sparql")
    client.setQuery("PREFIX schema: <http://schema.org/> SELECT ?s { ?s a schema:Person } LIMIT 5")
    for method in (wrapper.GET, wrapper.POST):
        client.setMethod(method)
        client.setReturnFormat(wrapper.JSON)
        assert client.query().convert()["results"]["bindings"]
    client.setReturnFormat(wrapper.XML)
    assert "results" in client.query().convert().toxml()
    client.setQuery("CONSTRUCT { ?s a ?t } WHERE { ?s a ?t } LIMIT 5")
    client.setReturnFormat(wrapper.TURTLE)
    assert b"a " in client.query().convert()
    client.setReturnFormat(wrapper.RDFXML)
    assert len(client.query().convert()) == 5, "rdflib reads our RDF/XML"
    client.setQuery("ASK {}")
    client.setReturnFormat(wrapper.JSON)
    assert client.query().convert()["boolean"] is True
    client.setQuery("SELECT nonsense")
    with pytest.raises(wrapper.SPARQLExceptions.QueryBadFormed):
        client.query()


def test_the_crawl_can_be_watched_and_paused(live: Live) -> None:
    assert live.get("/monitor.json")["running"] is True
    headers = {"Authorization": f"Bearer {live.token}"}

    def say(verb: str) -> object:
        asked = urllib.request.Request(f"{live.base}/control/{verb}", method="POST", headers=headers)
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return json.load(answer)["answer"]

    assert say("pause") == "paused"
    assert say("resume") == "running"
    stream, deadline = "", time.monotonic() + 60
    while "event: paused" not in stream and time.monotonic() < deadline:
        with urllib.request.urlopen(f"{live.base}/events?once=1", timeout=PATIENCE) as answer:
            stream = answer.read().decode()
    assert "event: settled" in stream and "event: paused" in stream


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the playwright package is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no system Chromium was found")
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


class Browser:
    """Opens pages, each with a profile of its own, which wait as long as a busy machine needs."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium
        self._contexts: list[Any] = []

    def page(self, **options: object) -> Any:
        context = self._chromium.new_context(**options)
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE * 1000)
        return context.new_page()

    def watched_page(self, scripts: bool) -> tuple[Any, list[str]]:
        """A page, and everything that goes wrong in it: exceptions and messages of the console."""
        page = self.page(java_script_enabled=scripts)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        return page, errors

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Browser]:
    """Closes what the test has opened: pages that refresh themselves would go on beside the tests that follow."""
    opened = Browser(chromium)
    yield opened
    opened.close()


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_from_search_to_the_monitor(live: Live, browser: Browser, scripts: bool) -> None:
    page = browser.page(java_script_enabled=scripts)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(live.base)
    page.get_by_role("combobox", name="Search").fill("lighthouse")
    page.get_by_role("button", name="Search").click()
    page.wait_for_selector(".hits h3 a")
    page.locator(".hits h3 a").first.click()
    page.get_by_role("heading", name="Visits").wait_for()
    page.get_by_role("link", name="Statements about this page").click()
    page.locator(".statements a.iri").first.wait_for()
    page.locator(".sources-list a").first.click()
    page.wait_for_url(OF_A_PAGE)
    page.get_by_role("navigation").get_by_role("link", name="SPARQL").click()
    page.get_by_role("heading", name="SPARQL", exact=True).wait_for()
    if scripts and page.locator("script[src*='vendor/yasgui']").count():  # the browser's parts were built
        page.locator(".yasqe_queryButton").click()
        page.locator(".yasr_results table tbody tr").first.wait_for()
    else:
        page.get_by_role("button", name="Run").click()
        page.locator("#plain-result tbody tr").first.wait_for()
    page.get_by_role("navigation").get_by_role("link", name="Monitor").click()
    assert "pages fetched" in page.locator("#live #sentence").inner_text(), "refreshed with the figures that it names"
    if scripts:
        page.evaluate("document.getElementById('sentence').textContent = 'stale'")
        page.locator("#sentence", has_text="pages fetched").wait_for()
    page.locator("#live details > summary", has_text="processes").click()
    page.get_by_text("total of").wait_for()
    if scripts:
        hold = page.get_by_role("button", name="Stop refreshing")
        hold.click()
        assert page.get_by_role("button", name="Refresh again").get_attribute("aria-pressed") == "true"
    assert errors == []


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_forms_that_change_something_work_in_a_browser(live: Live, browser: Browser, scripts: bool) -> None:
    """A browser sends the origin with each form, as no other client does: the gate must accept the site's own pages."""
    page = browser.page(java_script_enabled=scripts)
    page.goto(live.base + "/inspect")
    page.get_by_text("or paste markup").click()
    page.get_by_label("HTML or data").fill('<title>Pasted</title><p vocab="http://schema.org/" typeof="Person">Ada</p>')
    page.locator("details").get_by_role("button", name="Inspect").click()
    page.get_by_role("status").get_by_text("2 items in 1 syntax ·").first.wait_for()
    _sign_in(page, live)
    page.get_by_role("button", name="Pause the crawl").click()
    page.get_by_role("button", name="Resume the crawl").click()
    page.get_by_role("button", name="Pause the crawl").wait_for()


@pytest.mark.browser
def test_the_editor_is_part_of_the_site(live: Live, browser: Browser) -> None:
    """Its colours, its links, its error messages, and no error for a query that the server accepts."""
    page = browser.page(color_scheme="dark")
    page.goto(live.base + "/sparql?query=" + quote("SELECT ?s { ?s a schema:Person } LIMIT 3"))
    if not page.locator("script[src*='vendor/yasgui']").count():
        pytest.skip("the browser's parts were not built: run `make web`")
    page.locator("#yasgui .yasr_results a.iri").first.wait_for()
    ground = "node => getComputedStyle(node).backgroundColor"
    assert page.locator("#yasgui .CodeMirror").first.evaluate(ground) == page.locator("html").evaluate(ground)
    assert page.locator("#yasgui .parseErrorIcon").count() == 0, "schema: needs no PREFIX line"
    with page.context.expect_page() as opened:  # beside the query, which would be lost
        page.locator("#yasgui .yasr_results a.iri").first.click()
    opened.value.get_by_role("heading", name="Statements").wait_for()
    page.goto(live.base + "/sparql?query=SELECT+nonsense")
    refusal = page.locator("#yasgui [role=alert]")
    refusal.wait_for()
    assert "does not parse at line 1" in refusal.inner_text() and "{" not in refusal.inner_text()


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_newcomer_finds_things_their_source_and_csv(live: Live, browser: Browser, scripts: bool) -> None:
    page, errors = browser.watched_page(scripts)
    page.goto(live.base)
    page.locator(".bars a", has_text="Person").click()
    page.locator(".things tbody th a").first.click()
    page.locator("#sources ~ ol a").first.click()
    page.wait_for_url(OF_A_PAGE)
    page.go_back()
    page.go_back()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("iri,name") and len(lines) > 1
    assert errors == []


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_an_analyst_asks_draws_saves_and_subscribes(live: Live, browser: Browser, scripts: bool) -> None:
    page, errors = browser.watched_page(scripts)
    _sign_in(page, live)
    page.get_by_role("navigation").get_by_role("link", name="Ask").click()
    page.locator(".chips a", has_text="Person").first.click()
    page.locator(".chips a", has_text="birth date").click()
    page.get_by_role("combobox", name="Condition").select_option("from")
    page.get_by_role("combobox", name="Value").fill("1900-01-01")
    if scripts:
        page.locator("#would", has_text="leaves").wait_for()
    page.get_by_role("button", name="Add condition").click()
    page.get_by_role("link", name="Timeline").click()
    page.locator("svg.figure circle").first.wait_for(state="attached")
    name = f"people-{'with' if scripts else 'without'}-scripts"
    page.locator("form[action='/queries'] input[name=name]").fill(name)
    page.get_by_role("button", name="Save").click()
    page.wait_for_url(f"**/query/{name}")
    page.get_by_role("button", name="Subscribe").click()
    page.wait_for_url("**/subscriptions")
    page.get_by_role("rowheader", name=name).wait_for()
    assert errors == []


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_an_operator_goes_from_a_count_to_a_page_and_its_reasons(live: Live, browser: Browser, scripts: bool) -> None:
    page, errors = browser.watched_page(scripts)
    page.goto(live.base + "/monitor")
    if scripts:
        page.get_by_role("button", name="Stop refreshing").click()
    assert page.locator(".tile").count() >= 6
    page.get_by_role("link", name="new", exact=True).click()
    page.locator("tbody th a").first.click()
    page.locator("summary", has_text="ead every").click()
    page.get_by_role("heading", name="Every number behind it").wait_for()
    assert errors == []


def _sign_in(page: Any, live: Live) -> None:
    page.goto(live.base + "/sign-in")
    page.get_by_label("Token").fill(live.token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda address: "sign-in" not in address)


@pytest.mark.slow
@pytest.mark.browser
def test_pages_are_accessible(live: Live, browser: Browser) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: run npm ci in web-assets")
    hits = live.get("/search.json?q=lighthouse")["hits"]
    assert isinstance(hits, list)
    url = quote(hits[0]["id"])
    serious = {}
    for theme in ("light", "dark"):
        page = browser.page(color_scheme=theme)
        for path in (*PAGES, *EDITOR, f"/page?url={url}", f"/entity?iri={url}", f"/site/{hits[0]['site']}"):
            page.goto(live.base + path)
            page.wait_for_timeout(300)
            if path in EDITOR and page.locator("script[src*='vendor/yasgui']").count():
                page.locator("#yasgui .yasr_results, #yasgui .errorResult").first.wait_for()
            page.evaluate(AXE.read_text(encoding="utf-8"))
            found = page.evaluate("() => axe.run({runOnly: ['wcag2a','wcag2aa','wcag21aa','wcag22aa']})")
            for violation in found["violations"]:
                if violation["impact"] in ("serious", "critical"):
                    nodes = [node["html"][:200] for node in violation["nodes"]]
                    serious[f"{path} {theme} {violation['id']}"] = nodes[:3]
    assert serious == {}


@pytest.mark.browser
def test_no_page_is_wider_than_the_screen(live: Live, browser: Browser) -> None:
    page = browser.page()
    hit = live.get("/search.json?q=lighthouse")["hits"][0]  # type: ignore[index]
    url = quote(hit["id"])
    wider = {}
    for path in (*PAGES, *EDITOR, f"/page?url={url}", f"/entity?iri={url}", f"/site/{hit['site']}"):
        page.goto(live.base + path)
        if path in EDITOR and page.locator("script[src*='vendor/yasgui']").count():
            page.locator("#yasgui .yasr_results, #yasgui .errorResult").first.wait_for()
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            page.evaluate(NEXT_FRAME)
            if page.evaluate("document.documentElement.scrollWidth") > width:
                wider[path] = width
    assert wider == {}


@pytest.mark.browser
def test_the_keyboard_alone_is_enough(live: Live, browser: Browser) -> None:
    """Skip link first, `/` to the search box, Enter to search; out of the editor by Escape and Tab; focus is seen."""
    page = browser.page()
    page.goto(live.base + "/about")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("/")
    page.keyboard.type("lighthouse")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hits h3 a")
    link = page.locator(".hits h3 a").first
    link.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert link.evaluate("node => node === document.activeElement && getComputedStyle(node).outlineStyle") == "solid"
    page.goto(live.base + "/sparql")
    if page.locator("script[src*='vendor/yasgui']").count():
        page.locator("#yasgui .CodeMirror").wait_for()
        page.locator("#yasgui .CodeMirror").click()
        inside = "document.querySelector('#yasgui .CodeMirror').contains(document.activeElement)"
        assert page.evaluate(inside)
        page.keyboard.press("Escape")
        for _ in range(8):  # the buttons to run and to share stand inside it
            page.keyboard.press("Tab")
            if not page.evaluate(inside):
                break
        assert not page.evaluate(inside), "the editor is no trap"


@pytest.mark.browser
def test_print_shows_the_content_and_nothing_to_click(live: Live, browser: Browser) -> None:
    page = browser.page()
    page.goto(live.base + "/search?q=lighthouse")
    page.emulate_media(media="print")
    assert page.locator(".hits h3").first.is_visible()
    assert not page.locator("nav").first.is_visible() and not page.locator("form").first.is_visible()


def test_files_in_the_working_directory_are_not_run(tmp_path: Path) -> None:
    (tmp_path / "xml.py").write_text("open('was-run', 'w')")
    (tmp_path / "quadloom.toml").write_text(f"[web]\nport = {free_port()}\n[crawl]\ncontact = 'test@example.org'\n")
    command = [sys.executable, "-P", "-m", "quadloom", "-w", "data", "serve", "--crawl", "http://127.0.0.1:9/"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
        try:
            made = (tmp_path / "data" / "quadloom.db").exists
            wait_until(made, (tmp_path / "log").read_text, alive=process)
        finally:
            process.terminate()
            process.wait(60)
    assert not (tmp_path / "was-run").exists()
