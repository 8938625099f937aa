"""A host of the user's own is crawled without the pauses that strangers get."""

from __future__ import annotations

import itertools
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from quadloom.cli.crawling.crawl import with_own_sites
from quadloom.errors import UsageError
from quadloom.settings import CrawlSettings, GuardSettings, PolitenessSettings, Settings
from quadloom.warehouse import Warehouse

PAGES = 40
DELAY = 60.0  # of a stranger: forty pages would take forty minutes
SETTINGS = Settings(
    crawl=CrawlSettings(contact="test@quadloom.invalid", workers=1, max_wait=0.5),
    politeness=PolitenessSettings(delay=DELAY, ip_delay=DELAY),
    guard=GuardSettings(allow=["127.0.0.0/8"]),
)


class _Site(BaseHTTPRequestHandler):
    """Each page links to ten others. robots.txt asks for long pauses, and forbids page 7."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/robots.txt":
            kind, body = "text/plain", b"User-agent: *\nCrawl-delay: 50\nDisallow: /7\n"
        else:
            number = int(self.path[1:] or 0)
            links = (f"<a href=/{link}>{link}</a>" for link in range(10 * number + 1, 10 * number + 11))
            kind, body = "text/html", "".join(itertools.islice(links, max(0, PAGES - 10 * number))).encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_no_pauses_but_the_paths_of_robots_txt_stay_forbidden(tmp_path: Path) -> None:
    """Judged by the end of the crawl: with one single pause it ends before its second page (`max_wait`)."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_port}/"
    try:
        with Warehouse.open(tmp_path / "warehouse", settings=with_own_sites(SETTINGS, [home])) as warehouse:
            settled = list(warehouse.crawl([home]))
    finally:
        server.shutdown()
        server.server_close()
    read = {item.visit.href for item in settled if item.page is not None and item.page.status == 200}
    assert len(read) == PAGES, "40 numbered pages and the home page, without page 7"
    assert f"{home}7" not in read


def test_without_a_url_nobody_knows_which_host_is_meant() -> None:
    with pytest.raises(UsageError, match="needs a URL"):
        with_own_sites(SETTINGS, [])
    (site,) = with_own_sites(SETTINGS, ["http://[::1]:8080/x"]).site
    assert msgspec.structs.asdict(site)["own"] is True
