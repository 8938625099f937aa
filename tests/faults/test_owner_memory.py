"""Sitemaps, feeds and link floods: what the owner of a crawl holds in memory does not grow with their number."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from faults.crawling import command

SITEMAPS, FLOODS = 4, 6
MOST_MIB = 300  # the promise. Measured 270 to 278, and 305 to 416 before large graphs and bodies were packed


class Flood(BaseHTTPRequestHandler):
    """An index of sitemaps with 50,000 URLs each, a feed with 30,000 items, and pages with 40,000 links."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        base = f"http://{self.headers['host']}"
        kind, body = "text/html", f"<title>leaf</title>{self.path}"
        if self.path == "/robots.txt":
            kind, body = "text/plain", f"Sitemap: {base}/index.xml\n"
        elif self.path == "/index.xml":
            maps = "".join(f"<sitemap><loc>{base}/map{n}.xml</loc></sitemap>" for n in range(SITEMAPS))
            kind = "application/xml"
            body = f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{maps}</sitemapindex>'
        elif self.path.startswith("/map"):
            entry = "<url><loc>{0}{1}/item-number-{2}-of-a-shop</loc><lastmod>2026-01-01</lastmod></url>"
            urls = "".join(entry.format(base, self.path, n) for n in range(50_000))
            kind, body = (
                "application/xml",
                f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>',
            )
        elif self.path == "/feed":
            items = "".join(f"<item><title>{n}</title><link>{base}/news/{n}</link></item>" for n in range(30_000))
            kind, body = "application/rss+xml", f"<rss version='2.0'><channel>{items}</channel></rss>"
        elif self.path == "/":
            floods = "".join(f'<a href="/flood/{n}">flood</a>' for n in range(FLOODS))
            body = f'<title>home</title><a href="/feed">feed</a>{floods}'
        elif self.path.startswith("/flood/"):
            body = "".join(f'<a href="{self.path}/{n}/a-rather-long-name">link {n}</a>' for n in range(40_000))
        data = body.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Flood)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_memory_of_the_owner_under_floods(tmp_path: Path) -> None:
    config = tmp_path / "quadloom.toml"
    config.write_text(
        '[crawl]\ncontact = "test@quadloom.invalid"\nworkers = 2\n[politeness]\ndelay = 0.0\nip_delay = 0.0\n'
        'adaptive = 0.0\nper_site = 16\n[guard]\nallow = ["127.0.0.0/8"]\n',
        encoding="utf-8",
    )
    with serving() as home:
        pages = str(SITEMAPS + FLOODS + 60)
        arguments = command(tmp_path / "warehouse", config, "crawl", home, "--max-pages", pages, "--json", "--quiet")
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        peak = 0
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            if "VmHWM:" in status:
                peak = max(peak, int(status.partition("VmHWM:")[2].split()[0]) // 1024)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
    assert process.returncode == 0
    assert 0 < peak < MOST_MIB, f"{peak} MiB"
