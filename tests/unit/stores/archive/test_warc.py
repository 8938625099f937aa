"""WARC files as other tools and a crash see them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from warcio.archiveiterator import ArchiveIterator

from quadloom.errors import ArchiveDamaged, StoreError
from quadloom.model.page import Failure, Page
from quadloom.stores.archive.warc import WarcArchive
from quadloom.stores.archive.warc_record import encode


def page(number: int, size: int = 5000) -> Page:
    headers = (("content-type", "text/html; charset=utf-8"), ("content-encoding", "br"), ("content-length", "17"))
    body = random.Random(number).randbytes(size)
    return Page(f"http://a.example/{number}", f"http://a.example/{number}", 200, headers, body, 1.7e9, 0.1, "192.0.2.1")


def written(directory: Path, count: int) -> Path:
    archive = WarcArchive([directory])
    archive.put([encode(page(number)) for number in range(count)])
    archive.put([encode(Failure("http://a.example/f", "dns", "no such name", True, 1.0))])
    archive.close()
    (path,) = directory.glob("*.warc.gz")
    return path


def test_warcio_reads_pages_digests_and_true_lengths(tmp_path: Path) -> None:
    with written(tmp_path, 20).open("rb") as file:
        records = []
        for record in ArchiveIterator(file, check_digests="raise"):
            records.append(
                (record.rec_type, record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read())
            )
            if record.rec_type == "response":
                assert record.http_headers.get_header("Content-Encoding") is None
                assert record.http_headers.get_header("X-Archive-Orig-Content-Encoding") == "br"
                assert record.http_headers.get_header("Content-Length") == "5000"
    assert [kind for kind, _, _ in records] == ["warcinfo", *["response"] * 20, "metadata"]
    assert [(uri, body) for kind, uri, body in records if kind == "response"] == [
        (page(number).url, page(number).body) for number in range(20)
    ]


def test_fastwarc_reads_pages(tmp_path: Path) -> None:
    with written(tmp_path, 20).open("rb") as file:
        bodies = [
            record.reader.read()
            for record in FastIterator(file, parse_http=True)
            if record.record_type == WarcRecordType.response
        ]
    assert bodies == [page(number).body for number in range(20)]


@pytest.mark.parametrize("tail", [b"", b"\0" * 3000, None])
def test_a_torn_tail_is_cut_at_opening(tmp_path: Path, tail: bytes | None) -> None:
    archive = WarcArchive([tmp_path])
    refs = archive.put([encode(page(number)) for number in range(5)])
    archive.sync()
    (path,) = tmp_path.glob("*.open")
    whole = path.stat().st_size
    torn = encode(page(9)).member[:-7] if tail is None else tail
    with path.open("ab") as file:
        file.write(torn)
    beside = WarcArchive([tmp_path], read_only=True)
    assert [ref for ref, _ in beside.scan()] == refs
    again = WarcArchive([tmp_path])  # the first owner was killed
    (closed,) = tmp_path.glob("*.warc.gz")
    assert closed.stat().st_size == whole
    assert [ref for ref, _ in again.scan()] == refs
    assert beside.get(refs[2]) == page(2)  # a reader finds the file under its final name


@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_write_before_a_whole_record_does_not_close_the_archive(tmp_path: Path, lost: int) -> None:
    """Neither write was synced, and a power cut has kept only the second: the header of the file, or a record."""
    archive = WarcArchive([tmp_path])
    refs = archive.put([encode(page(number)) for number in range(3)])
    archive.sync()
    (path,) = tmp_path.glob("*.open")
    data = bytearray(path.read_bytes())
    start, end = (0, refs[0].offset) if lost == 0 else (refs[0].offset, refs[1].offset)
    data[start:end] = bytes(end - start)
    path.write_bytes(data + b"\x1f\x8b torn")
    again = WarcArchive([tmp_path])
    assert again.get(refs[2]) == page(2)
    (closed,) = tmp_path.glob("*.warc.gz")
    assert closed.stat().st_size == len(data), "the torn end is cut"


def test_a_file_without_any_record_disappears(tmp_path: Path) -> None:
    (tmp_path / "quadloom-00000001.warc.gz.open").write_bytes(b"\x1f\x8b")
    WarcArchive([tmp_path])
    assert list(tmp_path.iterdir()) == []


def test_damage_in_the_middle_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, 5)
    archive = WarcArchive([tmp_path])
    refs = [ref for ref, _ in archive.scan()]
    data = bytearray(path.read_bytes())
    data[refs[2].offset + 100] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ArchiveDamaged, match=f"{path.name}:{refs[2].offset}"):
        archive.get(refs[2])
    assert archive.get(refs[3]) == page(3)
    with pytest.raises(ArchiveDamaged):
        list(archive.scan())


def test_directories_take_turns(tmp_path: Path) -> None:
    disks = [tmp_path / name for name in "abc"]
    archive = WarcArchive(disks, file_bytes=10_000)
    refs = archive.put([encode(page(number)) for number in range(12)])
    archive.close()
    assert [len(list(disk.glob("*.warc.gz"))) for disk in disks] == [2, 2, 2]
    disks[2].rename(tmp_path / "moved")
    assert WarcArchive([*disks[:2], tmp_path / "moved"]).get(refs[-1]) == page(11)


def test_an_unwritable_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(StoreError, match="cannot write"):
        WarcArchive([tmp_path / "file" / "archive"])
