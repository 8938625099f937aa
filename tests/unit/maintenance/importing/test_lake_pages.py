"""A lake loaded into a warehouse gives the quads that were in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.cli.main import run
from quadloom.model.page import Page
from quadloom.stores.archive.warc_record import encode
from quadloom.warehouse import Warehouse

pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'quadloom[lake]'")

TURTLE = r"""
@prefix : <http://a.example/> .
:s :text "line\nbreak \"quoted\" back\\slash \t tab" ; :word "Wort"@de ; :number 1.5 ; :thing :o, [ :in _:b ] .
_:b :date "2020-01-01"^^<http://www.w3.org/2001/XMLSchema#date> .
"""


def exported(folder: Path) -> list[bytes]:
    with Warehouse.open(folder) as warehouse:
        warehouse.maintenance.export(folder / "all.nq")
    lines = (folder / "all.nq").read_bytes().splitlines()
    return sorted(line for line in lines if not line.endswith(b"<urn:quadloom:pages> ."))


def test_the_quads_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bodies = [
        ("text/turtle", TURTLE),
        ("text/html", "<title>Nothing</title>"),
        ("text/turtle", TURTLE.replace("1.5", "7")),
    ]
    pages = [
        Page(
            f"http://a.example/{n}",
            f"http://a.example/{n}",
            200,
            (("content-type", kind),),
            body.encode(),
            1e9 + n,
            0.1,
        )
        for n, (kind, body) in enumerate(bodies)
    ]
    Path("a.warc.gz").write_bytes(b"".join(encode(page).member for page in pages))
    assert run(["bulk", "a.warc.gz", "--to", "tables", "--workers", "1"]) == 0
    assert run(["-w", "one", "import", "a.warc.gz"]) == 0
    assert run(["-w", "two", "import", "tables"]) == 0
    assert len(exported(tmp_path / "one")) > 12
    assert exported(tmp_path / "two") == exported(tmp_path / "one")
    with Warehouse.open(tmp_path / "two") as warehouse:
        rows = {row.href: row for row in warehouse.stores.catalog.scan(limit=10)}
    assert (rows["http://a.example/1"].kind, rows["http://a.example/1"].title) == ("html", "Nothing")
    assert rows["http://a.example/2"].fetched_at == 1e9 + 2
    assert run(["-w", "two", "import", "."]) == 2
