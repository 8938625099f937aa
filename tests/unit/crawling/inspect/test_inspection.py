"""`inspect`: URLs with robots and redirects over real HTTP, files, bytes, the command, and what it prints."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Literal

import pyoxigraph as ox
import pytest

import quadloom
from quadloom.cli.main import run
from quadloom.crawling.inspect.inspection import inspect
from quadloom.documents.pipeline import process_page
from quadloom.errors import UsageError
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import GuardSettings, IndexSettings, PolitenessSettings, Settings

PAGE = b"""<html lang="en"><head><title>An evening</title><meta property="og:title" content="E">
<script type="application/ld+json">{"@context": "https://schema.org", "@id": "#event", "@type": "Event",
 "name": "Opera", "location": {"@type": "Place", "name": "Hall"}}</script>
<script type="application/ld+json">{"@context": "https://schema.org", oops}</script></head>
<body><a href="/other">Other</a></body></html>"""
FEED = (
    b'<rss version="2.0"><channel><title>News</title><item><title>One</title><link>https://site.example/1</link></item>'
    b"</channel></rss>"
)


class Site:
    """A small site that remembers what it was asked for."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.asked: list[str] = []


@pytest.fixture
def site() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            here.asked.append(self.path)
            answers = {
                "/robots.txt": (200, "text/plain", b"User-agent: *\nDisallow: /private", ""),
                "/page": (200, "text/html; charset=utf-8", PAGE, ""),
                "/moved": (301, "text/plain", b"", "/page"),
                "/circle": (302, "text/plain", b"", "/circle"),
            }
            status, media_type, body, location = answers.get(self.path, (404, "text/plain", b"", ""))
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here = Site(f"http://127.0.0.1:{server.server_address[1]}")
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield here
    server.shutdown()
    server.server_close()


LOCAL = Settings(
    guard=GuardSettings(allow=["127.0.0.0/8"]), politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0)
)


def test_a_page_is_visited_as_the_crawl_would(site: Site) -> None:
    seen = inspect(f"{site.root}/page", settings=LOCAL)
    assert site.asked == ["/robots.txt", "/page"]
    assert (seen.status, seen.media_type, seen.robots, seen.size) == (200, "text/html", "allowed", len(PAGE))
    assert [(item.syntax, item.type, item.id) for item in seen.items] == [
        ("opengraph", "", "<page>"),
        ("jsonld", "schema:Event", "#event"),
        ("jsonld", "schema:Place", "_:b0"),
    ]
    assert seen.items[1].properties == ("schema:name", "schema:location")
    assert seen.quads == seen.nquads.count(b"\n") > 5
    assert f"{site.root}/other" in [link.target for link in seen.links]
    assert [(finding.syntax, finding.line) for finding in seen.findings if finding.code == "jsonld-invalid"] == [
        ("jsonld", 4)
    ]
    assert {finding.code for finding in seen.findings} == {
        "jsonld-invalid",
        "schema-missing-required",
        "schema-missing-recommended",
    }
    assert seen.failure == ""
    assert seen.timings.fetch > 0 < seen.timings.transform


def test_redirects_are_followed_and_reported(site: Site) -> None:
    seen = inspect(f"{site.root}/moved", settings=LOCAL)
    assert seen.url == f"{site.root}/page"
    assert [(hop.status, hop.location) for hop in seen.hops] == [(301, f"{site.root}/page")]
    assert inspect(f"{site.root}/circle", settings=LOCAL).failure.startswith("redirects")


def test_what_robots_forbid_is_not_asked_for(site: Site) -> None:
    seen = inspect(f"{site.root}/private/x", settings=LOCAL)
    assert site.asked == ["/robots.txt"]
    assert seen.robots == "disallowed"
    assert seen.failure.startswith("robots")
    assert seen.nquads == b""


def test_errors_of_the_site_and_the_guard_are_in_the_answer(site: Site) -> None:
    missing = inspect(f"{site.root}/nothing", settings=LOCAL)
    assert (missing.status, missing.robots) == (404, "allowed")
    assert missing.failure == "status: HTTP 404"
    guarded = inspect(f"{site.root}/page")
    assert guarded.failure.startswith("guard")
    assert site.asked == ["/robots.txt", "/nothing"]


def test_files_and_bytes(tmp_path: Path) -> None:
    file = tmp_path / "feed.rss"
    file.write_bytes(FEED)
    seen = quadloom.inspect(str(file))
    assert (seen.kind, seen.robots, seen.status) == ("rss", "not asked", 0)
    assert seen.url == file.as_uri()
    again = inspect(FEED, url="https://site.example/feed", content_type="text/xml")
    assert [item.type for item in again.items] == ["rss:channel", "rss:item"]
    with pytest.raises(UsageError, match="No such file"):
        inspect(str(tmp_path / "nothing"))


@pytest.fixture
def page_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "page.html"
    file.write_bytes(PAGE)
    return file


def test_the_command_prints_a_report_of_80_columns(page_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", str(page_file), "--url", "https://example.org/event/1"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"https://example.org/event/1  text/html · {len(PAGE)} B"
    assert out[1].startswith("✗ 3 items in 2 syntaxes · ")
    assert out[1].endswith(" · 2 errors")
    assert "jsonld     schema:Event  #event  name, location" in out
    assert any(line.startswith("    jsonld · line 4") for line in out)
    assert all(len(line) <= 80 for line in out)


def test_formats(page_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*arguments: str) -> str:
        assert run(["inspect", str(page_file), "--url", "https://example.org/event/1", "--quiet", *arguments]) == 0
        return capsys.readouterr().out

    nquads = printed("--format", "nquads")
    statements = {quad.triple for quad in ox.parse(nquads, ox.RdfFormat.N_QUADS)}
    turtle = {quad.triple for quad in ox.parse(printed("--format", "turtle"), ox.RdfFormat.TURTLE)}
    jsonld = {quad.triple for quad in ox.parse(printed("--format", "jsonld"), ox.RdfFormat.JSON_LD)}
    assert len(statements) == len(turtle) == len(jsonld) > 5
    record = json.loads(printed("--format", "json"))
    assert record == {**json.loads(printed("--json")), "timings": record["timings"]}
    assert record["nquads"] == nquads
    assert record["items"][1]["type"] == "schema:Event"
    only = printed("--syntax", "jsonld", "--format", "nquads")
    assert "http://ogp.me" not in only
    assert "http://schema.org/Event" in only


def test_a_syntax_that_does_not_exist_is_an_error(page_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", str(page_file), "--syntax", "json-ld"]) == 3
    assert "did you mean jsonld?" in capsys.readouterr().err


def test_standard_input_and_exit_codes(
    page_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FEED)))
    assert run(["inspect", "-", "--content-type", "text/xml"]) == 0
    assert "rss:item" in capsys.readouterr().out
    assert run(["inspect", "http://127.0.0.1:9/"]) == 1
    assert "✗ failed: guard" in capsys.readouterr().out
    assert run(["inspect", "no-such-file"]) == 2
    assert "hint: give a URL" in capsys.readouterr().err


@pytest.mark.parametrize("links", ["none", "typed", "all"])
def test_the_statements_are_those_that_a_crawl_stores(links: Literal["none", "typed", "all"]) -> None:
    body = PAGE.replace(b"</head>", b'<link rel="alternate" type="application/rss+xml" title="News" href="/f"></head>')
    settings = Settings(index=IndexSettings(links=links))
    url = "https://site.example/page"
    shown = inspect(body, settings=settings, url=url, content_type="text/html")
    page = Page(url, url, 200, (("content-type", "text/html"),), body, 0.0, 0.0)
    stored = process_page(page, Visit(url, url, "site.example", 1), settings, ()).quads
    assert shown.quads == stored.count
    assert shown.nquads.count(b"/f>") == stored.nquads.count(b"/f>")
    assert (b"/other>" in shown.nquads) is (links == "all")
    assert [item.type for item in shown.items if item.type] == ["schema:Event", "schema:Place"]
