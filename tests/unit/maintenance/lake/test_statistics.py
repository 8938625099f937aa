"""Statistics of a lake against numbers counted by hand, and their report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from quadloom.cli.main import run
from quadloom.model.page import Page
from quadloom.stores.archive.warc_record import encode

pytest.importorskip("duckdb", reason="needs duckdb: pip install 'quadloom[lake]'")
parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: pip install 'quadloom[lake]'")

EVENT = '<script type="application/ld+json">{"@context": "https://schema.org", "@type": "Event", "name": "%s"}</script>'
ITEM = '<div itemscope itemtype="http://schema.org/Place"><b itemprop="name">x</b></div>'
PAGES = {
    "http://www.one.example/1": EVENT % "a" + EVENT % "b",
    "http://www.one.example/2": EVENT % "c" + ITEM,
    "http://two.test/": ITEM,
    "http://three.test/": "<p>nothing but words",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    pages = [
        Page(url, url, 200, (("content-type", "text/html"),), body.encode(), 1.0, 0.1) for url, body in PAGES.items()
    ]
    Path("a.warc.gz").write_bytes(b"".join(encode(page).member for page in pages))
    yield tmp_path


def test_numbers_and_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bulk", "a.warc.gz", "--to", "tables", "--report", "report.html", "--workers", "1"]) == 0
    capsys.readouterr()
    assert run(["--json", "lake", "statistics", "tables"]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert (summary["pages"], summary["pages_with_data"]) == (4, 3)
    assert (summary["domains"], summary["domains_with_data"], summary["entities"]) == (3, 2, 5)
    classes = parquet.read_table(folder / "tables/statistics/classes.parquet").to_pylist()
    assert classes == [
        {"class": "http://schema.org/Event", "entities": 3, "pages": 2, "domains": 1},
        {"class": "http://schema.org/Place", "entities": 2, "pages": 2, "domains": 2},
    ]
    syntaxes = {
        row["syntax"]: row for row in parquet.read_table(folder / "tables/statistics/syntaxes.parquet").to_pylist()
    }
    assert syntaxes["jsonld"] == {"syntax": "jsonld", "pages": 2, "domains": 1}
    assert syntaxes["microdata"] == {"syntax": "microdata", "pages": 2, "domains": 2}
    tlds = parquet.read_table(folder / "tables/statistics/tlds.parquet").to_pylist()
    assert {"syntax": "microdata", "tld": "test", "domains": 1, "pages": 1} in tlds
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "http://schema.org/Place" in page
    assert page.count("<svg") == 2
    HTMLParser().feed(page)


def test_a_lake_of_a_warehouse_says_what_it_lacks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", "a.warc.gz"]) == 0
    assert run(["lake", "sync", "--workers", "1"]) == 0
    assert run(["lake", "statistics"]) == 2
    assert "quadloom bulk" in capsys.readouterr().err
