"""Pages as Markdown, in a folder and as JSON Lines."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from quadloom.asking.export.selection import Selection
from quadloom.errors import UsageError
from quadloom.model.page import Page
from quadloom.process.bulk_tasks import in_processes
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.warehouse import Warehouse

PAGES = {
    "http://a.example/": b'<html lang=en><title>Whales</title><h1>Whales</h1><p>See <a href="/b?c=1&d=../x">b</a>.',
    "http://a.example/b?c=1&d=../x": b"<title>B: \"two\"</title><p itemscope itemtype='http://schema.org/Thing'>&lt;b>.",
    "http://c.example/data.json": b'{"a": 1}',
}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    folder = tmp_path_factory.mktemp("markdown")
    pages = [
        Page(
            url, url, 200, (("content-type", "text/html" if body[:1] == b"<" else "application/json"),), body, 1e9, 0.1
        )
        for url, body in PAGES.items()
    ]
    source = folder / "in.warc.gz"
    source.write_bytes(file_header(source.name, 0.0) + b"".join(encode(page).member for page in pages))
    with Warehouse.open(folder / "warehouse") as opened:
        opened.maintenance.import_(source)
        yield opened


def test_lines(warehouse: Warehouse) -> None:
    stream = io.BytesIO()
    assert warehouse.maintenance.export(stream, format="markdown").pages == 2
    found = {row["url"]: row for row in map(json.loads, stream.getvalue().splitlines())}
    assert list(found) == sorted(found, key=list(found).index) and len(found) == 2
    first = found["http://a.example/"]
    assert first["markdown"] == "# Whales\n\nSee [b](http://a.example/b?c=1&d=../x).\n"
    assert (first["title"], first["language"], first["time"]) == ("Whales", "en", "2001-09-09T01:46:40Z")
    (archive,) = warehouse.path.rglob(f"archive/**/{first['warc']['file']}*")
    member = archive.read_bytes()[first["warc"]["offset"] :][: first["warc"]["length"]]
    assert b"<h1>Whales" in gzip.decompress(member)


def test_a_file_and_a_selection(warehouse: Warehouse, tmp_path: Path) -> None:
    chosen = Selection(types=("http://schema.org/Thing",))
    warehouse.maintenance.export(tmp_path / "things.jsonl.gz", selection=chosen)
    lines = gzip.decompress((tmp_path / "things.jsonl.gz").read_bytes()).splitlines()
    assert [json.loads(line)["markdown"] for line in lines] == ["&lt;b&gt;.\n"]


def test_a_folder(warehouse: Warehouse, tmp_path: Path) -> None:
    assert warehouse.maintenance.export(tmp_path / "out", format="markdown").pages == 2
    files = sorted(file.relative_to(tmp_path / "out") for file in (tmp_path / "out").rglob("*.md"))
    assert [file.parts[0] for file in files] == ["a.example"] * 2, "a name stays in its folder whatever the URL says"
    _, front, text = (tmp_path / "out" / files[0]).read_text(encoding="utf-8").split("---\n")
    assert 'title: "B: \\"two\\""\n' in front
    assert text == "\n&lt;b&gt;.\n"


def test_several_processes_are_refused(warehouse: Warehouse, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        warehouse.maintenance.export(tmp_path / "out", format="markdown", runner=in_processes(2))
