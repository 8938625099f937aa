"""The contract of `Archive`."""

from __future__ import annotations

import pytest
from contract_backends import Files
from msgspec.structs import replace

from quadloom.errors import ArchiveDamaged, StoreError
from quadloom.model.finding import Finding
from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Failure, Hop, Page
from quadloom.stores.archive.warc_record import encode


def page(number: int, body: bytes = b"<html>hello</html>") -> Page:
    return Page(
        f"http://a.example/{number}",
        f"http://a.example/{number}/",
        200,
        (("content-type", "text/html"), ("content-encoding", "gzip"), ("set-cookie", "a=1"), ("set-cookie", "b=2")),
        body,
        1_700_000_000.25 + number,
        0.125,
        "192.0.2.7",
        "2",
        (Hop("http://a.example/x", 301, "/y"),),
        False,
        (Finding("charset", "ünknown"),),
        77,
    )


FAILURE = Failure("http://a.example/f", "status", "503 Service Unavailable", True, 1.5, 0.5, 503, 30.0, "192.0.2.7")


def test_what_is_put_comes_back_equal(files: Files) -> None:
    records: list[Page | Failure] = [page(1), FAILURE, page(2, b""), page(3, bytes(range(256)) * 300)]
    refs = files.archive.put([encode(record) for record in records])
    files.archive.sync()
    assert [files.archive.get(ref) for ref in refs] == records
    assert files.archive.size() >= sum(ref.length for ref in refs)


@pytest.mark.parametrize(
    "changes",
    [
        {"truncated": True},
        {"headers": (("x", " space "), ("y", "line\r\nInjected: 1"), ("z", "Zürich ☃"), ("", ""))},
        {"body": b"\r\n\r\nWARC/1.1\r\n\r\n"},
        {"status": 299},
        {"address": "2001:db8::1", "hops": ()},
        {"final_url": "http://a.example/ümlaut\r\nX: y"},
        {"headers": ()},
        {
            "headers": (
                ("content-length", "9"),
                ("transfer-encoding", "chunked"),
                ("x-archive-orig-content-length", "1"),
            )
        },
    ],
)
def test_odd_pages_come_back_equal(files: Files, changes: dict[str, object]) -> None:
    odd = replace(page(1), **changes)
    (ref,) = files.archive.put([encode(odd)])
    files.archive.sync()
    assert files.archive.get(ref) == odd


def test_scan_gives_all_in_order_of_writing_over_many_files(files: Files) -> None:
    records = [
        page(number, f"{number}".encode() + bytes((number * k * k) % 251 for k in range(3000))) for number in range(60)
    ]
    refs: list[ArchiveRef] = []
    for start in range(0, 60, 7):
        refs += files.archive.put([encode(record) for record in records[start : start + 7]])
    files.archive.sync()
    assert list(files.archive.scan()) == list(zip(refs, records, strict=True))


def test_a_file_is_read_as_a_whole(files: Files) -> None:
    first = files.archive.put([encode(page(1)), encode(page(2))])
    files.archive.seal()
    (second,) = files.archive.put([encode(page(3))])
    files.archive.sync()
    assert list(files.archive.read_file(first[0].file)) == list(zip(first, (page(1), page(2)), strict=True))
    assert list(files.archive.read_file(second.file)) == [(second, page(3))]
    for missing in ("none.warc.gz", "quadloom-00000099.warc.gz", "other/quadloom-00000001.warc.gz", "../secret"):
        assert list(files.archive.read_file(missing)) == []


def test_reopening_keeps_references(files: Files) -> None:
    refs = files.archive.put([encode(page(1))])
    files.archive.sync()
    files.archive.close()
    archive = files.open()
    refs += archive.put([encode(page(2))])
    archive.sync()
    assert [archive.get(ref) for ref in refs] == [page(1), page(2)]
    assert [ref for ref, _ in archive.scan()] == refs


def test_wrong_references_raise(files: Files) -> None:
    (ref,) = files.archive.put([encode(page(1))])
    files.archive.sync()
    for wrong in (
        ArchiveRef("none.warc.gz", 0, 10),
        replace(ref, offset=ref.offset + 1),
        replace(ref, length=ref.length - 9),
        replace(ref, offset=10_000_000),
        replace(ref, file="../secret"),
    ):
        with pytest.raises(ArchiveDamaged):
            files.archive.get(wrong)


def test_a_record_can_be_copied_byte_for_byte_into_another_file(files: Files) -> None:
    (old,) = files.archive.put([encode(page(1))])
    files.archive.seal()
    copied = files.archive.record(old)
    (new,) = files.archive.put([copied])
    files.archive.sync()
    assert new.file != old.file
    assert copied.key == page(1).url
    assert files.archive.record(new) == copied
    assert files.archive.get(new) == page(1)
    with pytest.raises(ArchiveDamaged):
        files.archive.record(replace(old, length=old.length - 9))


def test_only_ended_files_are_listed_and_removed(files: Files) -> None:
    first = files.archive.put([encode(page(1)), encode(page(2))])
    assert files.archive.files() == {}
    files.archive.seal()
    (second,) = files.archive.put([encode(page(3))])
    files.archive.sync()
    assert files.archive.files() == {first[0].file: sum(ref.length for ref in first)}
    before = files.archive.size()
    with pytest.raises(StoreError):
        files.archive.remove(second.file)
    for _ in range(2):  # gone is gone, a second time is no error
        files.archive.remove(first[0].file)
    assert files.archive.files() == {}
    assert before - files.archive.size() >= sum(ref.length for ref in first)
    assert list(files.archive.scan()) == [(second, page(3))]
    with pytest.raises(ArchiveDamaged):
        files.archive.get(first[0])
