"""One truth about a page that is gone: every door says so from the first 404 on, and takes it back when it is there."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import quadloom

_GONE = "SELECT ?page ?since { GRAPH ql:pages { ?page ql:gone ?since } }"


class _Shop(http.server.BaseHTTPRequestHandler):
    is_gone = False

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        thing = {
            "@context": "https://schema.org",
            "@type": "Product",
            "@id": f"{self.path}#it",
            "name": "Kettle" + self.path[1:],
        }
        data = f'<script type="application/ld+json">{json.dumps(thing)}</script>' if self.path != "/" else ""
        body = (
            f'<html lang="en"><title>Kettle{self.path}</title><a href="/a">a</a> <a href="/b">b</a> kettle{data}</html>'
        )
        is_found = self.path in ("/", "/a") or (self.path == "/b" and not _Shop.is_gone)
        self.send_response(200 if is_found else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        if is_found:
            self.wfile.write(body.encode())


class _Place:
    def __init__(self, folder: Path, url: str) -> None:
        self.url = url
        self._folder = folder
        config = '[crawl]\ncontact="https://example.org/bot"\n[politeness]\ndelay=0\nip_delay=0\n[guard]\nallow=["127.0.0.0/8"]\n'
        (folder / "q.toml").write_text(config)

    def run(self, *words: str) -> str:
        done = quadloom(
            "--config", str(self._folder / "q.toml"), "-w", str(self._folder / "w"), *words, cwd=self._folder
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def turn(self, *, gone: bool) -> None:
        _Shop.is_gone = gone
        self.run("refresh", f"{self.url}/b")
        self.run("crawl")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Place]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Shop) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = _Place(tmp_path_factory.mktemp("gone"), f"http://127.0.0.1:{server.server_port}")
        place.run("crawl", f"{place.url}/")
        yield place
        server.shutdown()


def test_one_404_is_said_everywhere_and_taken_back(place: _Place) -> None:
    page = f"{place.url}/b"
    place.turn(gone=False)
    assert place.run("sparql", _GONE).count(page) == 0
    place.turn(gone=True)
    assert place.run("sparql", _GONE).count(page) == 1
    assert f"\t{page}\t" in next(line for line in place.run("changes").splitlines() if line.startswith("gone"))
    assert page not in place.run("search", "kettle") and page in place.run("search", "kettle", "--gone")
    assert "not found since" in place.run("show", f"{page}#it")
    table = place.run("table", "Product")
    assert "Kettleb" in table and "1 thing on pages that are not found any more" in table
    assert "Kettleb" not in place.run("table", "Product", "--present")
    place.turn(gone=False)
    assert place.run("sparql", _GONE).count(page) == 0
    assert "Kettleb" in place.run("table", "Product", "--present")
    assert "not found since" not in place.run("show", f"{page}#it")


def test_verify_and_rebuild_agree_with_the_mark(place: _Place) -> None:
    place.turn(gone=True)
    place.run("verify")
    place.run("rebuild")
    assert place.run("sparql", _GONE).count(f"{place.url}/b") == 1
