from __future__ import annotations

import gzip
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from quadloom.fetching.sitemaps import Entry, SitemapReader, read, unix_time

URLSET = b"""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
  <url><loc> http://e.org/a?x=1&amp;y=2 </loc><lastmod>2024-02-29</lastmod><changefreq>Daily</changefreq>
    <priority>0.8</priority><image:image><image:loc>http://e.org/i.png</image:loc></image:image></url>
  <url><loc>http://e.org/b</loc><lastmod>2024-02-29T12:00:00+01:00</lastmod></url>
  <url><lastmod>2024-01-01</lastmod></url>
</urlset>"""


def entries(data: bytes, size: int = 1 << 20, reader: SitemapReader | None = None) -> list[Entry]:
    return list(read((data[at : at + size] for at in range(0, len(data), size)), reader))


@pytest.mark.parametrize("size", [1, 13, 1 << 20])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_urlset_in_any_pieces(size: int, pack: type) -> None:
    day = 1709164800.0
    assert entries(pack(URLSET), size) == [
        Entry("http://e.org/a?x=1&y=2", day, "daily", 0.8),
        Entry("http://e.org/b", day + 11 * 3600),
    ]


def test_index_and_text_and_no_namespace() -> None:
    index = b"<sitemapindex><sitemap><loc>http://e.org/1.xml.gz</loc><lastmod>2024</lastmod></sitemap></sitemapindex>"
    assert entries(index) == [Entry("http://e.org/1.xml.gz", 1704067200.0, index=True)]
    text = b"\xef\xbb\xbfhttp://e.org/a\r\nrubbish\r\n\r\nhttps://e.org/b"
    for size in (1, 1000):
        assert [entry.loc for entry in entries(text, size)] == ["http://e.org/a", "https://e.org/b"]
    assert [
        entry.loc for entry in entries("<urlset><url><loc>http://e.org/ü</loc></url></urlset>".encode("utf-16"))
    ] == ["http://e.org/ü"]


@pytest.mark.parametrize(
    ("data", "code", "kept"),
    [
        (URLSET[:-120], "sitemap-xml", 1),
        (b"<urlset><url><loc>http://e.org/</loc></url><url><broken</urlset>", "sitemap-xml", 1),
        (b"<html><body>Not found, really</body></html>", "sitemap-root", 0),
        (b'<!DOCTYPE urlset [<!ENTITY a "b">]><urlset><url><loc>&a;</loc></url></urlset>', "sitemap-dtd", 0),
        (b"<urlset>" + b"<a>" * 100, "sitemap-depth", 0),
        (b"", "sitemap-empty", 0),
        (b"\x1f\x8b\x08\x00rubbish rubbish rubbish rubbish", "sitemap-gzip", 0),
    ],
)
def test_defects_keep_what_was_read_and_are_told(data: bytes, code: str, kept: int) -> None:
    reader = SitemapReader()
    assert len(entries(data, 50, reader)) == kept
    assert [finding.code for finding in reader.findings] == [code]


def test_limits() -> None:
    many = b"<urlset>" + b"<url><loc>http://e.org/</loc></url>" * 100 + b"</urlset>"
    reader = SitemapReader(max_urls=10)
    assert len(entries(many, 64, reader)) == 10
    assert reader.findings[0].code == "sitemap-too-many"
    reader = SitemapReader(max_bytes=1000)
    assert len(entries(many, 64, reader)) < 30
    assert reader.findings[0].code == "sitemap-too-large"
    bomb = SitemapReader(max_bytes=1 << 20)
    assert entries(gzip.compress(b"<urlset>" + b" " * (50 << 20)), 4096, bomb) == []
    assert bomb.findings[0].code == "sitemap-too-large"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1970", 0.0), ("2024-02", 1706745600.0), ("2024-02-30", 0.0), ("yesterday", 0.0), ("", 0.0),
     ("2024-02-29T00:00:00Z", 1709164800.0), ("2024-02-29T00:00Z", 1709164800.0), ("9999999999", 0.0)],
)  # fmt: skip
def test_dates(text: str, expected: float) -> None:
    assert unix_time(text) == expected


def million(count: int = 1_000_000) -> Iterator[bytes]:
    yield b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    for start in range(0, count, 1000):
        yield b"".join(
            b"<url><loc>http://example.org/catalogue/item-%d</loc><lastmod>2024-02-29</lastmod></url>" % number
            for number in range(start, start + 1000)
        )
    yield b"</urlset>"


def test_a_million_urls_need_less_than_100_mb() -> None:
    """In a process of its own, because peak memory only ever grows."""
    answer = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    urls, peak = map(int, answer.stdout.split())
    assert urls == 1_000_000
    assert peak < 100 * 1024


if __name__ == "__main__":
    total = sum(1 for _ in read(million()))
    with open("/proc/self/status", encoding="ascii") as status:
        print(total, *re.findall(r"VmHWM:\s+(\d+) kB", status.read()))
