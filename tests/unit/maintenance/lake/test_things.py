"""Things as a table: one column for each property, with the type of its values."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path

import pytest

from quadloom.cli.main import run
from quadloom.model.page import Page
from quadloom.stores.archive.warc_record import encode

pytest.importorskip("duckdb", reason="needs duckdb: pip install 'quadloom[lake]'")
parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: pip install 'quadloom[lake]'")

EVENTS: list[dict[str, object]] = [
    {"name": "One", "startDate": "2026-05-01", "maximumAttendeeCapacity": 40, "keywords": ["b", "a"],
     "offers": {"@type": "Offer", "price": "9.50"}, "doorTime": "2026-05-01T18:00:00+02:00", "endDate": "2026-05-02"},
    {"name": "Two", "startDate": "2026-06-01", "maximumAttendeeCapacity": 7, "endDate": "2026-02-31"},
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pages = []
    for number, event in enumerate(EVENTS):
        url = f"http://{number}.example/"
        data = {"@context": "https://schema.org", "@type": "Event", "@id": f"{url}#e", **event}
        body = f'<script type="application/ld+json">{json.dumps(data)}</script>'.encode()
        pages.append(Page(url, url, 200, (("content-type", "text/html"),), body, 1.0, 0.1))
    Path("a.warc.gz").write_bytes(b"".join(encode(page).member for page in pages))
    return tmp_path


def test_columns_have_types() -> None:
    assert run(["bulk", "a.warc.gz", "--to", "tables", "--things", "schema:Event", "--workers", "1"]) == 0
    one, two = parquet.read_table("tables/things-Event.parquet").to_pylist()
    assert one == {
        "url": "http://0.example/", "subject": "http://0.example/#e", "name": "One", "startDate": date(2026, 5, 1),
        "maximumAttendeeCapacity": 40, "keywords": ["a", "b"], "offers/price": 9.5,
        "doorTime": datetime(2026, 5, 1, 16), "endDate": "2026-05-02",
    }  # fmt: skip
    assert two == {
        "url": "http://1.example/", "subject": "http://1.example/#e", "name": "Two", "startDate": date(2026, 6, 1),
        "maximumAttendeeCapacity": 7, "keywords": None, "offers/price": None, "doorTime": None, "endDate": "2026-02-31",
    }  # fmt: skip


def test_csv_and_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bulk", "a.warc.gz", "--to", "tables", "--workers", "1"]) == 0
    assert run(["lake", "things", "Event", "events.csv", "--place", "tables"]) == 0
    head, one, _ = Path("events.csv").read_text(encoding="utf-8").splitlines()
    assert head.startswith("url,subject,doorTime,endDate,keywords")
    assert "a | b" in one
    assert run(["lake", "things", "Person'", "x.csv", "--place", "tables"]) == 4
    assert run(["lake", "things", "Event", "x.doc", "--place", "tables"]) == 2
    assert run(["bulk", "a.warc.gz", "--to", "nq", "--format", "nq", "--things", "Event"]) == 2
    capsys.readouterr()
