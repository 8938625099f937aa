"""What the pages of an archive say, without a warehouse."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path

from quadloom.documents.archives import read_archive
from quadloom.model.finding import Finding
from quadloom.model.page import Page
from quadloom.stores.archive.warc_record import encode, file_header


def test_pages_come_one_by_one_with_what_they_say(tmp_path: Path) -> None:
    html = (("content-type", "text/html"),)
    pages = [
        Page(f"http://a.example/{n}", f"http://a.example/{n}", 200, html, b"<title>%d" % n, 1.0, 0.1) for n in range(9)
    ]
    path = tmp_path / "a.warc.gz"
    path.write_bytes(file_header(path.name, 0.0) + b"".join(encode(page).member for page in pages) + b"\xff" * 99)
    findings: list[Finding] = []
    found = read_archive(path, report=findings.append)
    assert [(page.url, said.title) for page, said in islice(found, 2)] == [
        ("http://a.example/0", "0"),
        ("http://a.example/1", "1"),
    ]
    assert [said.title for _, said in found] == [str(number) for number in range(2, 9)]
    assert [finding.code for finding in findings] == ["warc-record"]


def test_decoding_bodies_imports_no_parser() -> None:
    code = "import sys, quadloom.documents.archives.content_coding; print('selectolax' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
