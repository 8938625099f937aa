"""Archives as other tools write them: what warcio finds in them is found."""

from __future__ import annotations

import gzip
import io
import shutil
import subprocess
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import brotli
import pytest
import zstandard
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from quadloom.documents.archives.files import is_archive, warc_files
from quadloom.documents.archives.pages import RecordedPage, recorded_pages, without_chunks
from quadloom.errors import ArchiveDamaged, UsageError
from quadloom.maintenance.importing.imported_pages import read_files
from quadloom.model.finding import Finding
from quadloom.settings import LimitSettings

HTML = b"<!doctype html><title>Caf\xc3\xa9</title><p>hello, reader of archives"
CHUNKS = b"5\r\n" + HTML[:5] + b"\r\n" + b"%x;name=value\r\n" % len(HTML[5:]) + HTML[5:] + b"\r\n0\r\n\r\n"
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def read(path: Path, start: int = 0) -> tuple[list[RecordedPage], list[Finding], Counter[str]]:
    findings: list[Finding] = []
    others: Counter[str] = Counter()
    with warc_files(path) as files:
        pages = [
            page
            for file in files
            for page in recorded_pages(file, LimitSettings(), findings.append, others, start=start)
        ]
    return pages, findings, others


def write(path: Path, *records: tuple[str, str, list[tuple[str, str]], bytes], packed: bool = True) -> None:
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=packed)
        for kind, url, headers, body in records:
            head = StatusAndHeaders("200 OK", headers, protocol="HTTP/1.1") if kind in ("response", "revisit") else None
            record = writer.create_warc_record(
                url,
                kind,
                payload=io.BytesIO(body),
                http_headers=head,
                warc_content_type=dict(headers).get("Content-Type", ""),
            )
            writer.write_record(record)


@pytest.mark.parametrize("coding", ["", *PACKED])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("stored", ["as sent", "without chunks", "unpacked", "both"])
def test_a_body_is_read_as_it_was_stored_whatever_its_headers_say(
    tmp_path: Path, coding: str, chunked: bool, stored: str
) -> None:
    body = PACKED[coding](HTML) if coding and stored in ("as sent", "without chunks") else HTML
    if chunked and stored in ("as sent", "unpacked"):
        body = b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
    headers = [("Content-Type", "text/html")]
    headers += [("Content-Encoding", coding)] if coding else []
    headers += [("Transfer-Encoding", "chunked")] if chunked else []
    write(tmp_path / "x.warc.gz", ("response", "http://a.example/", headers, body))
    (page,), findings, _ = read(tmp_path / "x.warc.gz")
    assert page.page.body == HTML
    assert not findings


def test_a_coding_that_nobody_knows_hides_no_text(tmp_path: Path) -> None:
    headers = [("Content-Type", "text/html"), ("Content-Encoding", "UTF-8")]
    write(
        tmp_path / "x.warc.gz",
        ("response", "http://a.example/1", headers, HTML),
        ("response", "http://a.example/2", headers, gzip.compress(HTML)),
    )
    (page,), (finding,), _ = read(tmp_path / "x.warc.gz")
    assert page.page.body == HTML
    assert "content coding" in finding.message


def test_chunks() -> None:
    assert without_chunks(CHUNKS) == HTML
    assert without_chunks(CHUNKS[:40]) == HTML[: len(without_chunks(CHUNKS[:40]))] != b""
    text = b"be\r\n" + b"a word, and another " * 20
    assert without_chunks(text) == text
    assert without_chunks(b"") == b""
    with pytest.raises(ArchiveDamaged, match="too many chunks"):
        without_chunks(b"1\r\nx\r\n" * 1_000_000)


def test_records_without_a_page_are_counted_by_name(tmp_path: Path) -> None:
    html = [("Content-Type", "text/html")]
    write(
        tmp_path / "x.warc.gz",
        ("warcinfo", "http://a.example/", [], b"software: x\r\n"),
        ("request", "http://a.example/", [], b"GET / HTTP/1.1\r\n\r\n"),
        ("response", "http://a.example/", html, HTML),
        ("revisit", "http://a.example/again", html, b""),
        ("metadata", "http://a.example/", [], b"{}"),
        ("conversion", "http://a.example/", [("Content-Type", "text/plain")], b"hello"),
        ("resource", "http://a.example/note", [("Content-Type", "text/plain")], b"a note"),
        ("resource", "urn:x:screenshot", [("Content-Type", "image/png")], b"."),
        ("response", "dns:a.example", [], b"20200101000000\r\n"),
    )
    pages, findings, others = read(tmp_path / "x.warc.gz")
    assert [page.page.url for page in pages] == ["http://a.example/", "http://a.example/note"]
    assert others == {
        "warcinfo": 1, "request": 1, "revisit": 1, "metadata": 1, "conversion": 1, "resource without a web address": 1,
        "response without a web address": 1,
    }  # fmt: skip
    assert not findings


def test_reading_starts_again_at_any_page(tmp_path: Path) -> None:
    headers = [("Content-Type", "text/html")]
    write(tmp_path / "x.warc.gz", *(("response", f"http://a.example/{n}", headers, HTML) for n in range(5)))
    pages, _, _ = read(tmp_path / "x.warc.gz")
    for number, page in enumerate(pages):
        assert read(tmp_path / "x.warc.gz", page.offset)[0] == pages[number:]


def test_texts_of_a_wet_file_are_pages(tmp_path: Path) -> None:
    path = tmp_path / "x.warc.wet.gz"
    write(path, ("conversion", "http://a.example/", [("Content-Type", "text/plain")], b"only words"))
    (page,), findings, others = read(path)
    assert (page.page.body, page.page.content_type) == (b"only words", "text/plain")
    assert not findings
    assert not others


def test_a_file_without_pages_is_an_error_that_names_what_it_has(tmp_path: Path) -> None:
    write(tmp_path / "x.wat.gz", *(("metadata", "http://a.example/", [], b"{}") for _ in range(3)))
    findings: list[Finding] = []
    assert not list(read_files([tmp_path / "x.wat.gz"], LimitSettings(), now=1e9, report=findings.append))
    assert [(finding.severity, "it has 3 metadata" in finding.message) for finding in findings] == [("error", True)]


@pytest.mark.parametrize("packed", [False, True])
def test_arc(tmp_path: Path, packed: bool) -> None:
    def record(url: str, kind: str, data: bytes) -> bytes:
        one = f"{url} 192.0.2.1 20010203040506 {kind} {len(data)}\n".encode() + data + b"\n"
        return gzip.compress(one) if packed else one

    http = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + HTML
    version = b"1 0 Internet Archive\nURL IP-address Archive-date Content-type Archive-length\n"
    path = tmp_path / ("x.arc.gz" if packed else "x.arc")
    records = [
        record("filedesc://x.arc", "text/plain", version),
        record("http://a.example/", "text/html", http),
        record("http://a.example/old", "text/html", http.replace(b"200 OK", b"301 Moved")),
    ]
    path.write_bytes(b"".join(records))
    (page,), findings, others = read(path)
    assert (page.page.url, page.page.body, page.page.fetched_at) == ("http://a.example/", HTML, 981173106.0)
    assert not findings
    assert others == {"filedesc": 1, "redirect": 1}
    path.write_bytes(b"".join(records[:2]) + (b"" if packed else b"no record\n"))
    assert [len(part) for part in read(path)[:2]] == [1, 0 if packed else 1]
    path.write_bytes(b"".join(records)[:-30])
    assert len(read(path)[1]) == 1


def test_wacz(tmp_path: Path) -> None:
    headers = [("Content-Type", "text/html")]
    for name in "ab":
        write(tmp_path / f"{name}.warc.gz", ("response", f"http://{name}.example/", headers, HTML))
    with zipfile.ZipFile(tmp_path / "x.wacz", "w") as target:
        for name in "ab":
            target.write(tmp_path / f"{name}.warc.gz", f"archive/{name}.warc.gz")
        target.writestr("pages/pages.jsonl", "{}")
        target.writestr("archive/../../up.warc.gz", b"outside")
    pages, _, _ = read(tmp_path / "x.wacz")
    assert {page.page.url for page in pages} == {"http://a.example/", "http://b.example/"}
    (tmp_path / "y.wacz").write_bytes(b"no zip")
    with pytest.raises(UsageError, match="not a WACZ"):
        read(tmp_path / "y.wacz")


def test_names_of_archives() -> None:
    names = ["a.warc", "a.warc.gz", "a.WARC.zst", "a.warc.lz4", "a.warc.wet.gz", "a.warc.wat.gz", "a.arc.gz", "a.wacz"]
    assert all(is_archive(Path(name)) for name in names)
    assert not any(is_archive(Path(name)) for name in ("a.nq.gz", "arc", "a.gz", "warc.txt"))


@pytest.fixture
def site() -> Iterator[str]:
    """Chunks, gzip, a redirect and an error, as servers send them."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            links = b"".join(b'<a href="%s">x</a>' % name for name in (b"/chunked", b"/moved", b"/gone"))
            self.send_response({"/moved": 301, "/gone": 404}.get(self.path, 200))
            self.send_header("Content-Type", "text/html")
            if self.path == "/moved":
                self.send_header("Location", "/chunked")
            if self.path == "/chunked":
                self.send_header("Transfer-Encoding", "chunked")
            body = CHUNKS if self.path == "/chunked" else HTML + links
            if self.path != "/chunked":
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.skipif(shutil.which("wget") is None, reason="needs wget")
def test_an_archive_of_wget_has_the_pages_that_warcio_finds(tmp_path: Path, site: str) -> None:
    command = ["wget", "--quiet", "--recursive", "--warc-file=crawl", "--no-check-certificate", "--tries=1", site]
    subprocess.run(command, cwd=tmp_path, timeout=60, check=False, env={"PATH": "/usr/bin:/bin", "no_proxy": "*"})
    path = tmp_path / "crawl.warc.gz"
    wanted = {}
    with path.open("rb") as file:
        for record in ArchiveIterator(file):
            if record.rec_type == "response" and record.http_headers.get_statuscode() == "200":
                wanted[record.rec_headers.get_header("WARC-Target-URI").strip("<>")] = record.content_stream().read()
    pages, findings, others = read(path)
    assert {page.page.url: page.page.body for page in pages if page.page.url.startswith("http")} == wanted
    assert set(wanted) >= {site, f"{site}chunked"}
    assert others["redirect"] == 1
    assert others["error response"] >= 1
    assert not findings
