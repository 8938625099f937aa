"""A bad record of a WARC file costs itself: it is reported with its offset, and everything after it is read."""

from __future__ import annotations

import gzip
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from quadloom.documents.archives import warc_records
from quadloom.maintenance.importing.imported_pages import read_files
from quadloom.model.finding import Finding
from quadloom.model.page import Page
from quadloom.model.url import resolve
from quadloom.settings import LimitSettings, Settings
from quadloom.stores.archive.warc_record import encode
from quadloom.warehouse import Warehouse

Pack = Callable[[bytes], bytes]
HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>hello"


def record(name: str, *, length: str = "", extra: bytes = b"", block: bytes = HTTP) -> bytes:
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{name}\r\n"
        f"WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {length or len(block)}\r\n"
    )
    return head.encode() + extra + b"\r\n" + block + b"\r\n\r\n"


def read(path: Path, data: bytes) -> tuple[list[str], list[Finding]]:
    path.write_bytes(data)
    findings: list[Finding] = []
    pages = read_files([path], LimitSettings(), now=1e9, report=findings.append)
    return [item.page.url.rpartition("/")[2] for item in pages], findings


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    "bad",
    [
        record("huge", length="99999999999999"),
        record("large", length="4000"),
        record("absurd", length="9" * 40),
        record("negative", length="-5"),
        record("no-number", length="many"),
        record("long", extra=b"X: " + b"y" * 100_000 + b"\r\n"),
        record("body", length="50000", block=b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 200),
    ],
    ids=["huge", "large", "absurd", "negative", "no-number", "long-header", "cut"],
)
def test_a_bad_record_costs_itself(tmp_path: Path, bad: bytes, pack: Pack) -> None:
    first, last = pack(record("1")), pack(record("2")) + pack(record("3"))
    names, (finding,) = read(tmp_path / "x.warc.gz", first + pack(bad) + last)
    assert names == ["1", "2", "3"]
    assert (finding.code, finding.severity) == ("warc-record", "error")
    assert f"x.warc.gz: the record at offset {len(first)} " in finding.message
    names, (finding,) = read(tmp_path / "x.warc.gz", pack(bad) + first + last)
    assert names == ["1", "2", "3"]
    assert "offset 0 " in finding.message


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_what_is_no_record_is_passed_over(tmp_path: Path, pack: Pack) -> None:
    names, findings = read(tmp_path / "x.warc", pack(record("1")) + b"\xff" * 3000 + pack(record("2")))
    assert (names, len(findings)) == (["1", "2"], 1)
    names, findings = read(tmp_path / "x.warc", b"\xff" * 3000 + pack(record("1")) + pack(record("2")))
    assert (names, len(findings)) == (["1", "2"], 1)
    names, findings = read(tmp_path / "x.warc", b"\xff" * 3000)
    assert (names, [finding.severity for finding in findings]) == ([], ["error"])


def test_damaged_compression_costs_one_record(tmp_path: Path) -> None:
    first, second = gzip.compress(record("1")), bytearray(gzip.compress(record("2")))
    second[60] ^= 0xFF
    names, (finding,) = read(tmp_path / "x.warc.gz", first + second + gzip.compress(record("3")))
    assert names == ["1", "3"]
    assert finding.severity == "error"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_file_that_breaks_off_is_a_warning(tmp_path: Path, pack: Pack) -> None:
    names, (finding,) = read(tmp_path / "x.warc", pack(record("1")) + pack(record("2"))[:-30])
    assert names == ["1"]
    assert (finding.code, finding.severity) == ("warc-cut", "warning")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_wherever_a_file_breaks_off_its_last_record_is_read_or_reported(tmp_path: Path, pack: Pack) -> None:
    first, last = pack(record("1")), pack(record("2"))
    for size in range(1, len(last)):
        names, findings = read(tmp_path / "x.warc", first + last[:size])
        if names == ["1"]:
            assert len(findings) == 1, f"cut after {size} bytes"
            assert f"offset {len(first)} " in findings[0].message or "after offset" in findings[0].message
        else:
            assert names == ["1", "2"] and not findings, "only what ends a record is missing"
    for size in range(1, len(first)):
        names, findings = read(tmp_path / "x.warc", first[:size])
        assert bool(names) != bool(findings), f"the only record, cut after {size} bytes"


def test_bodies_that_look_like_records_stay_bodies(tmp_path: Path) -> None:
    nested = record("1", block=HTTP + b"\r\n\r\n" + record("inner"))
    names, findings = read(tmp_path / "x.warc", nested + record("2", length="-1") + record("3"))
    assert (names, len(findings)) == (["1", "3"], 1)


def test_own_records_and_the_end_of_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "http://a.example/own"
    own = encode(Page(url, url, 200, (("content-type", "text/html"),), b"<p>own", 1e9, 0.1)).member
    data = own + gzip.compress(record("bad", length="-1")) * 150 + own
    names, findings = read(tmp_path / "x.warc.gz", data)
    assert (names, len(findings)) == (["own", "own"], 150)
    # Each of these costs a pass over the rest of the file: a file of n such records would cost n² bytes.
    monkeypatch.setattr(warc_records, "_FREE_BYTES", 100_000)
    many = gzip.compress(record("cut", length="9000000")) * 2000
    names, findings = read(tmp_path / "x.warc.gz", gzip.compress(record("1")) + many + gzip.compress(record("2")))
    assert names == ["1"]
    assert 100 < len(findings) < 200
    assert "bad records, too many" in findings[-1].message


@pytest.mark.parametrize("empty", [1, 3, 5000])
def test_members_without_content_end_nothing(tmp_path: Path, empty: int) -> None:
    """The library takes one for the end of the file; BGZF files end so, and are joined."""
    one, nothing = gzip.compress(record("1")), gzip.compress(b"") * empty
    two = gzip.compress(record("2") + record("3"))  # several records in a member
    names, findings = read(tmp_path / "x.warc.gz", nothing + one + nothing + two + nothing + one + nothing)
    assert (names, findings) == (["1", "2", "3", "1"], [])
    names, (finding,) = read(tmp_path / "x.warc.gz", one + nothing + two + nothing + one[:50])
    assert names == ["1", "2", "3"] and finding.code == "warc-cut"


def test_many_empty_members_cost_little(tmp_path: Path) -> None:
    """60,000 of them took four seconds: what followed each was copied."""
    data = gzip.compress(record("1")) + gzip.compress(b"") * 60_000 + gzip.compress(record("2"))
    began = time.process_time()
    assert read(tmp_path / "x.warc.gz", data) == (["1", "2"], [])
    assert time.process_time() - began < 2.0


def test_a_body_is_not_decoded_beyond_its_limits(tmp_path: Path) -> None:
    """The library unpacks it all at once: 300 MB took 1.1 GB of memory."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
    bomb = gzip.compress(record("bomb", block=head + gzip.compress(bytes(100 << 20))))
    layers = record("layers", block=head.replace(b"gzip", b"gzip, gzip") + gzip.compress(gzip.compress(b"<p>x")))
    good = record("good", block=head + gzip.compress(b"<p>hello"))
    path = tmp_path / "x.warc.gz"
    path.write_bytes(bomb + gzip.compress(layers) + gzip.compress(good))
    findings: list[Finding] = []
    tracemalloc.start()
    pages = list(read_files([path], LimitSettings(body_bytes=1 << 20), now=1e9, report=findings.append))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(item.page.url[-4:], item.page.truncated, len(item.page.body)) for item in pages] == [
        ("bomb", True, 1 << 20),
        ("good", False, 8),
    ]
    assert peak < 20 << 20 and "several content codings" in findings[0].message and len(findings) == 1


def test_a_bad_file_does_not_cost_the_others(tmp_path: Path) -> None:
    bad, rdf, good = tmp_path / "bad.warc.gz", tmp_path / "bad.nq", tmp_path / "good.warc"
    bad.write_bytes(b"no warc at all")
    rdf.write_bytes(b"no quads at all")
    good.write_bytes(record("1") + record("2"))
    noticed: list[str] = []
    with Warehouse.open(tmp_path / "w", settings=Settings()) as warehouse:
        report = warehouse.maintenance.import_(bad, rdf, good, notice=lambda _kind, text: noticed.append(text))
        assert (report.new, report.skipped, report.is_complete) == (2, 2, False)
        assert [finding.code for finding in report.findings] == ["warc-record", "import-file"]
        assert "bad.warc.gz" in noticed[0] and "bad.nq" in noticed[1]
        assert warehouse.maintenance.import_(good).is_complete


@pytest.mark.parametrize(
    "url",
    [
        "http://evil.example/<script>",
        'http://evil.example/"> <urn:p> <urn:o> <http://good.example/> .',
        "http://evil.example/a b\nc",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "urn:quadloom:pages",
        "",
    ],
)
def test_a_forged_address_becomes_one_that_can_be_stored_or_costs_its_record(tmp_path: Path, url: str) -> None:
    """Records that claim to be our own are not believed more than others: the address names a graph."""
    body = b'<title>Whale</title><p vocab="http://schema.org/" typeof="Event"><b property="name">n</b>'
    header = (("content-type", "text/html"),)
    good = "http://good.example/"
    pages = [
        Page(url, good, 200, header, body, 1000.0, 0.1),
        Page(f"{good}1", url, 200, header, body, 1e300, 0.1),
        Page(good, good, 200, header, body, 1000.0, 0.1),
    ]
    file = tmp_path / "forged.warc.gz"
    file.write_bytes(b"".join(forged(page) for page in pages))
    with Warehouse.open(tmp_path / "warehouse") as warehouse:
        report = warehouse.maintenance.import_(file)
        assert report.pages + report.skipped == 3 and not report.quarantined
        assert set(warehouse.stores.quads.graphs()) <= {
            "urn:quadloom:pages", good, f"{good}1", *(found for found in (resolve(url),) if found)
        }  # fmt: skip
        assert warehouse.search("whale").total >= 1
        assert warehouse.maintenance.verify().ok


def forged(page: Page) -> bytes:
    """As `encode` writes it, with the time in the facts alone."""
    facts = encode(msgspec.structs.replace(page, fetched_at=1000.0))
    return gzip.compress(gzip.decompress(facts.member).replace(b",1000.0,", f",{page.fetched_at!r},".encode()))
