"""A site with a link that leads nowhere: the audit names the page that has it; `why` and `refresh` say more."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from command_line import quadloom

_PAGES = {"/": "<a href=/first>one</a> <a href=/second>two</a>", "/first": "<a href=/lost>x</a>", "/second": "nothing"}


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = _PAGES.get(self.path, "not here").encode()
        self.send_response(200 if self.path in _PAGES else 404)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Place:
    def __init__(self, folder: Path, base: str) -> None:
        self.folder = folder
        self.base = base

    def run(self, *words: str) -> tuple[str, str]:
        done = quadloom(*words, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("dead-links")
    (folder / "quadloom.toml").write_text('[guard]\nallow = ["127.0.0.0/8"]\n', encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found = Place(folder, f"http://127.0.0.1:{server.server_port}")
        found.run("crawl", f"{found.base}/", "--own-site")
        yield found
        server.shutdown()


def test_an_audit_names_the_page_that_has_the_dead_link(place: Place) -> None:
    text, _ = place.run("audit")
    lines = [line.strip() for line in text.splitlines()]
    assert f"linked from {place.base}/first" in lines[lines.index(f"{place.base}/lost") + 1]
    report = json.loads(place.run("audit", "--format", "json")[0])
    assert [group["linked_from"] for group in report["groups"] if group["linked_from"]] == [
        {f"{place.base}/lost": [f"{place.base}/first"]}
    ]
    assert f"{place.base}/lost linked from {place.base}/first:" in place.run("audit", "--format", "junit")[0]
    page, _ = place.run("audit", "--format", "html")
    assert f'linked from<ul><li><a href="{place.base}/first">' in page


def test_why_begins_with_a_sentence(place: Place) -> None:
    _, said = place.run("why", f"{place.base}/second")
    first, second = said.splitlines()
    assert first == f"{place.base}/second is waiting"
    assert second.startswith("Read every ") and second.endswith("; visited once so far.")
    assert json.loads(place.run("why", f"{place.base}/second", "--json")[0])["summary"] == second


def test_refresh_says_which_url_was_never_read(place: Place) -> None:
    _, said = place.run("refresh", f"{place.base}/first", f"{place.base}/frist")
    assert said.splitlines() == [
        "2 pages are due; to read them now: `quadloom crawl`",
        f"hint: {place.base}/frist was never read before; is it spelt correctly?",
    ]
    answer = json.loads(place.run("refresh", f"{place.base}/frist", "--json")[0])
    assert answer == {"requested": 1, "new": [f"{place.base}/frist"]}
