"""`recover` from archives that somebody has forged or damaged: each bad record costs itself, and every good page comes
back."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from quadloom.maintenance.archive_order import all_pages
from quadloom.maintenance.recovery.recover import RecoveryReport
from quadloom.model.page import Page
from quadloom.settings import CrawlSettings, Settings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.warehouse import Warehouse

SETTINGS = Settings(crawl=CrawlSettings(workers=1, batch_seconds=0.0))
FILE = "quadloom-00000001.warc.gz"
GOOD = 4


def page(url: str, at: float = 1000.0, body: bytes = b"<title>Whale</title>") -> bytes:
    return encode(Page(url, url, 200, (("content-type", "text/html"),), body, at, 0.1)).member


def good(number: int) -> bytes:
    return page(f"http://site.example/{number}", 1000.0 + number)


def edited(old: bytes, new: bytes) -> bytes:
    """A record in which this is written instead, with a length that is right."""
    before = gzip.decompress(page("http://forged.example/"))
    data = before.replace(old, new, 1)
    assert data != before
    head, _, block = data.partition(b"\r\n\r\n")
    return gzip.compress(
        re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % (len(block) - 4), head) + data[len(head) :]
    )


def lengthened(length: bytes) -> bytes:
    return gzip.compress(re.sub(rb"Content-Length: \d+", b"Content-Length: " + length, gzip.decompress(good(9))))


def of_another_tool() -> bytes:
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>other</title>"
    head = (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: <http://other.example/>\r\n"
        b"WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Type: application/http\r\nContent-Length: %d\r\n\r\n" % len(http)
    )
    return gzip.compress(head + http + b"\r\n\r\n")


def failure(block: bytes) -> bytes:
    head = b"WARC/1.1\r\nWARC-Type: metadata\r\nContent-Length: %d\r\n\r\n" % len(block)
    return gzip.compress(head + block + b"\r\n\r\n")


URLS = ("", "no address", "http://", "http://[::1", "javascript:alert(1)", "http://a\x00b/", "file:///etc/passwd",
        "http://" + "a" * 70_000 + "/", "http://x.example:999999/", "a//b/robots.txt", "urn:x:y")  # fmt: skip
TIMES = (b"1e308", b"-1e308", b"1e18", b"-5.0", b"253402300800.0")
STATUSES = (b"0", b"-1", b"99", b"1000", b"99999999999999999999", b"x", b"")
LENGTHS = (b"99999999999", b"9" * 5000, b"-1", b"x", b"")
BAD: dict[str, bytes] = {
    **{f"url {text[:20]!r}": page(text) for text in URLS},
    **{f"time {text!r}": edited(b'",1000.0,', b'",' + text + b",") for text in TIMES},
    **{f"status {text!r}": edited(b"HTTP/1.1 200 ", b"HTTP/1.1 " + text + b" ") for text in STATUSES},
    **{f"length {text[:20]!r}": lengthened(text) for text in LENGTHS},
    "deep JSON": edited(b",[],[],", b"," + b"[" * 50_000 + b"]" * 50_000 + b",[],"),
    "no WARC": gzip.compress(b"hello" * 1000),
    "other tool": of_another_tool(),
    "cut": good(9)[:200],
    "damaged": good(9)[:40] + b"\xff\x00\xff" + good(9)[43:],
    "empty": gzip.compress(b"") * 5,
    "failure": failure(b'["failure","","dns","",true,1e300]'),
    "failure's status": failure(b'["failure","http://f.example/","dns","",true,1.0,0.0,18446744073709551615]'),
}


def recovered(path: Path, *files: bytes) -> RecoveryReport:
    """Recover a warehouse that has lost everything but these files."""
    archive = path / "archive"
    archive.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(files, 1):
        name = f"quadloom-{number:08d}.warc.gz"
        (archive / name).write_bytes(file_header(name, 0.0) + data)
    return Warehouse.recover(path, settings=SETTINGS)


def pages(path: Path) -> list[str]:
    with Warehouse.open(path, settings=SETTINGS) as warehouse:
        assert warehouse.maintenance.verify().ok
        return sorted(row.href for row in all_pages(warehouse.stores.catalog))


def test_every_bad_record_costs_itself(tmp_path: Path) -> None:
    data = b"".join(bad + good(number) for number, bad in enumerate(BAD.values()))
    report = recovered(tmp_path / "w", data)
    assert pages(tmp_path / "w") == sorted(f"http://site.example/{number}" for number in range(len(BAD)))
    assert report.unreadable_bytes > 0.9 * sum(map(len, BAD.values()))


def test_records_in_any_order_and_many_times(tmp_path: Path) -> None:
    report = recovered(tmp_path / "w", good(3) + good(0) + good(0), good(2) + good(1) + good(2) + good(0))
    assert len(pages(tmp_path / "w")) == GOOD and report.pages == GOOD


@pytest.mark.parametrize("kind", ["link out of the archive", "broken link", "loop", "folder", "link to a folder"])
def test_names_that_are_no_files_of_the_archive(tmp_path: Path, kind: str) -> None:
    """What a folder of somebody else may contain beside the files of the archive, under names like theirs."""
    archive, outside = tmp_path / "w" / "archive", tmp_path / "outside"
    outside.write_bytes(b"a letter")
    for name in ("quadloom-00000007.warc.gz", "quadloom-00000008.warc.gz.open"):
        archive.mkdir(parents=True, exist_ok=True)
        place = archive / name
        if kind == "folder":
            place.mkdir()
        else:
            targets = {"broken link": "nowhere", "loop": name, "link to a folder": tmp_path}
            place.symlink_to(targets.get(kind, outside))
    recovered(tmp_path / "w", good(0) + good(1))
    assert len(pages(tmp_path / "w")) == 2
    assert outside.read_bytes() == b"a letter"


def test_files_in_folders_below_are_not_of_this_archive(tmp_path: Path) -> None:
    path = tmp_path / "w"
    (path / "archive" / "old").mkdir(parents=True)
    (path / "archive" / "old" / FILE).write_bytes(file_header(FILE, 0.0) + good(7))
    recovered(path, good(0))
    assert pages(path) == ["http://site.example/0"]
