"""Take the pictures in docs/images again: the demo's web, crawled and served here, in a headless Chromium.

    python tools/take_screenshots.py

Needs the development requirements and `make web` (without it the editor and the chart are not in the pictures).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from e2e.live_site import Live, live_site  # noqa: E402  the tests' way to a running site, which is found only now

IMAGES = ROOT / "docs" / "images"
PERSON = "SELECT ?person WHERE { ?person a schema:Person ; schema:birthPlace ?place ; schema:sameAs ?other } LIMIT 1"
CITIES = (
    "SELECT ?city (COUNT(DISTINCT ?event) AS ?events) WHERE { ?event a schema:Event ; "
    "schema:location/schema:address/schema:addressLocality ?name BIND(STR(?name) AS ?city) } "
    "GROUP BY ?city ORDER BY DESC(?events) ?city"
)
MONITOR = {"monitor-1280-dark": "/monitor"}  # while the crawl runs


def pictures(live: Live) -> dict[str, str]:
    """Name of a picture, which ends in width and theme → address."""
    found = live.get("/sparql?format=json&query=" + quote(PERSON))
    person = found["results"]["bindings"][0]["person"]["value"]  # type: ignore[index]
    return {
        "home-1280-light": "/",
        "search-1280-light": "/search?q=lighthouse",
        "search-390-dark": "/search?q=lighthouse",
        "type-1280-light": "/type?iri=schema:Event",
        "entity-1280-dark": "/entity?iri=" + quote(person, safe=""),
        "findings-1280-light": "/findings",
        "result-1280-dark": "/result?query=" + quote(CITIES),
    }


def take(browser: Browser, live: Live, name: str, path: str) -> None:
    _, width, theme = name.rsplit("-", 2)
    size = {"width": int(width), "height": 900 if int(width) > 500 else 844}
    page = browser.new_context(color_scheme=theme, viewport=size).new_page()
    page.goto(live.base + path)
    page.wait_for_timeout(3000)  # charts draw themselves, and refresh once
    page.screenshot(path=str(IMAGES / f"{name}.png"))
    page.context.close()
    print(f"{name}.png")


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with (
        tempfile.TemporaryDirectory(prefix="quadloom-pictures-") as folder,
        live_site(Path(folder), delay=1.0) as live,
        sync_playwright() as running,
    ):
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        live.get("/monitor.json")  # from now on there are points for the chart
        time.sleep(8.0)
        for name, path in MONITOR.items():
            take(browser, live, name, path)
        time.sleep(20.0)  # for the rest of the sites
        for name, path in pictures(live).items():
            take(browser, live, name, path)
        browser.close()


if __name__ == "__main__":
    main()
