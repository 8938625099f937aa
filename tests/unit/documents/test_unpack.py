"""Gzip files: what is inside is read within a limit, damage is told, archives of files are left alone."""

from __future__ import annotations

import gzip
import io
import tarfile
import time

import pytest

import quadloom
from quadloom.documents.unpack import unpack

SITEMAP = (
    b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    b"<url><loc>https://e.example/a</loc><lastmod>2024-05-01</lastmod></url></urlset>"
)
TRIPLES = b"<https://e.example/s> <https://e.example/p> <https://e.example/o> .\n"


@pytest.mark.parametrize("content_type", ["application/gzip", "application/x-gzip", None, "application/xml"])
def test_a_packed_sitemap_is_a_sitemap(content_type: str | None) -> None:
    seen = quadloom.transform(gzip.compress(SITEMAP), url="https://e.example/sitemap.xml.gz", content_type=content_type)
    assert seen.kind == "sitemap"
    assert [(link.target, link.kind) for link in seen.links] == [("https://e.example/a", "sitemap")]
    assert seen.lastmods and seen.lastmods[0][0] == "https://e.example/a"
    assert any("unpacked" in reason for reason in seen.reasons)


def test_a_packed_dump_of_several_members_is_read() -> None:
    body = gzip.compress(TRIPLES) + gzip.compress(TRIPLES.replace(b"/o>", b"/o2>"))
    seen = quadloom.transform(body, url="https://e.example/dump.nt.gz", content_type="application/gzip")
    assert seen.kind == "ntriples"
    assert seen.nquads.count(b"\n") == 2


def test_damaged_and_short_files_are_read_as_far_as_they_go() -> None:
    whole = gzip.compress(TRIPLES) + gzip.compress(TRIPLES.replace(b"/o>", b"/o2>"))
    seen = quadloom.transform(whole[:-12], url="https://e.example/dump.nt.gz")
    assert seen.nquads.count(b"\n") >= 1
    assert "gzip-damaged" in {finding.code for finding in seen.findings}


def test_a_bomb_ends_at_its_limit() -> None:
    bomb = gzip.compress(TRIPLES + b"x" * (100 << 20), 1)
    started = time.process_time()
    found = unpack(bomb, url="https://e.example/b.nt.gz", content_type=None, limit=1 << 20)
    assert time.process_time() - started < 2.0
    assert found is not None and len(found.body) == 1 << 20
    assert "gzip-too-large" in {finding.code for finding in found.document.findings}


def test_archives_of_files_and_packed_pictures_stay_archives() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo("a.html")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"<p>x"))
    for body in (stream.getvalue(), gzip.compress(b"\x89PNG\r\n\x1a\n" + bytes(100)), gzip.compress(b"")):
        assert quadloom.transform(body, url="https://e.example/x.gz").kind == "archive"


def test_a_list_of_addresses_is_a_sitemap_in_text_form() -> None:
    body = b"https://e.example/a\nhttps://e.example/b\r\n\nhttps://e.example/a\n"
    seen = quadloom.transform(body, url="https://e.example/sitemap.txt", content_type="text/plain")
    assert [(link.target, link.kind) for link in seen.links] == [
        ("https://e.example/a", "sitemap"),
        ("https://e.example/b", "sitemap"),
    ]
    prose = b"https://e.example/a is a page\nhttps://e.example/b is another\n"
    assert not quadloom.transform(prose, url="https://e.example/x.txt", content_type="text/plain").links


def test_a_large_sitemap_keeps_all_that_the_protocol_allows() -> None:
    entry = b"<url><loc>https://e.example/p/%d</loc></url>\n"
    head, tail = SITEMAP[: SITEMAP.index(b"<url>")], b"</urlset>"
    body = head + b"".join(entry % number for number in range(50_001)) + tail
    seen = quadloom.transform(body, url="https://e.example/s.xml")
    assert len(seen.links) == 50_000
    assert "too-many-links" in {finding.code for finding in seen.findings}
    broken = head + b"".join(entry % number for number in range(30_000)) + b"<url><loc>&oops</url>" + tail
    repaired = quadloom.transform(broken, url="https://e.example/s.xml")
    assert len(repaired.links) >= 30_000
    assert "feed-not-well-formed" in {finding.code for finding in repaired.findings}


def test_many_members_are_read_in_linear_time() -> None:
    body = gzip.compress(TRIPLES) + gzip.compress(b"") * 150_000 + gzip.compress(TRIPLES.replace(b"/o>", b"/o2>"))
    begun = time.process_time()
    found = unpack(body, url="https://e.example/dump.nt.gz", content_type=None)
    assert found is not None and found.body.count(b"\n") == 2
    assert time.process_time() - begun < 10  # about 0.5; 20 and more when every member copied the rest of the file
