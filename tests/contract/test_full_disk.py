"""A really full disk: each embedded store says `DiskFull`, keeps what it acknowledged, goes on when there is room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from quadloom.cli.main import run
from quadloom.errors import DiskFull
from quadloom.model.page import Page
from quadloom.model.quads import Quads
from quadloom.model.text import TextDocument
from quadloom.settings import CrawlSettings, GuardSettings, PolitenessSettings, Settings, StoreSettings
from quadloom.stores.archive.warc import WarcArchive
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.quads.oxigraph import OxigraphQuads
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.schema import SCHEMA
from quadloom.stores.tantivy.index import TantivyText
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 8 MB with a ballast file that can be taken away."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount a tmpfs")
    (place / "ballast").write_bytes(bytes(4 << 20))
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=False)


def test_sqlite(disk: Path) -> None:
    database = SqliteDatabase.open(disk / "quadloom.db", SCHEMA)
    catalog = SqliteCatalog(database)
    written = 0
    with pytest.raises(DiskFull) as refusal:
        while written < 100_000:
            catalog.values.put(f"{written:06d}", bytes(10_000))
            written += 1
    assert refusal.value.hint
    assert len(catalog.values.names("")) == written > 10
    (disk / "ballast").unlink()
    catalog.values.put("more", b"room")
    assert len(catalog.values.names("")) == written + 1
    database.close()


def test_archive(disk: Path) -> None:
    archive = WarcArchive([disk / "archive"])
    pages = [Page(f"http://a.example/{n}", "", 200, (), os.urandom(100_000), 1.0, 0.1) for n in range(100)]
    refs = []
    with pytest.raises(DiskFull):
        for page in pages:
            refs += archive.put([encode(page)])
            archive.sync()
    assert 10 < len(refs) < 100
    (disk / "ballast").unlink()
    refs += archive.put([encode(pages[len(refs)])])
    archive.sync()
    assert [archive.get(ref) for ref in refs] == pages[: len(refs)]
    assert [ref for ref, _ in archive.scan()] == refs
    archive.close()


def test_quads(disk: Path) -> None:
    store = OxigraphQuads(disk / "quads")
    written: list[Quads] = []
    with pytest.raises(DiskFull):
        for number in range(100_000):
            graph = f"http://a.example/{number}"
            text = "".join(f'<{graph}> <x:p> "{os.urandom(50).hex()}" <{graph}> .\n' for _ in range(50))
            quads = Quads.of(graph, "".join(sorted(text.splitlines(keepends=True))).encode())
            store.replace(quads)
            written.append(quads)
    store.close()
    (disk / "ballast").unlink()
    again = OxigraphQuads(disk / "quads")
    assert all(again.graph(quads.graph) == quads.nquads for quads in written)
    again.close()


def test_text(disk: Path) -> None:
    index = TantivyText(disk / "text")
    committed = 0
    with pytest.raises(DiskFull) as refusal:
        for batch in range(1000):
            index.put([TextDocument(id=f"{batch}/{n}", body=os.urandom(20_000).hex(" ", 4)) for n in range(5)])
            index.commit()
            committed += 5
    assert refusal.tb, "kept, as a handler does while it recovers: its frames must not hold the lock of the folder"
    (disk / "ballast").unlink()
    assert len(index) == committed > 0
    index.put([TextDocument(id="more", body="room")])
    index.commit()
    assert len(index) == committed + 1
    index.close()


def test_a_crawl_goes_on_when_one_of_its_disks_is_full(disk: Path, tmp_path: Path) -> None:
    """The small disk takes a file or two; the rest goes to the other one. Without it, `verify` names it."""
    (disk / "more").write_bytes(bytes((8 << 20) - (4 << 20) - (200 << 10)))
    spec = WebSpec(seed=5, pages=80, hosts=4, traps=False, faults=False, slow_seconds=0.0, crawl_delay=0.0)
    with serve_in_process(FakeWeb(spec)) as serving:
        settings = Settings(
            crawl=CrawlSettings(contact="a@b.example", scope="any", workers=1, max_wait=0.5, batch=16),
            politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, per_site=8, adaptive=0.0),
            guard=GuardSettings(allow=["127.0.0.0/8"], hosts=serving.web.hosts_override()),
            stores=StoreSettings(directories=[str(disk / "archive")], archive_file_bytes=60_000),
        )
        with Warehouse.open(tmp_path / "w", settings=settings) as warehouse:
            crawl = warehouse.crawl(serving.web.seeds)
            for _ in crawl:
                pass
            report = crawl.report()
    assert report.pages > 80
    assert [state.problem for state in report.disks] == ["", "no room left"]
    assert f"archive directory {disk / 'archive'} is left out: no room left" in report.notices
    assert list((disk / "archive").glob("*.warc.gz")), "it was used as long as it had room"
    (disk / "ballast").unlink()
    with Warehouse.read(tmp_path / "w", settings=settings) as warehouse:
        assert warehouse.maintenance.verify().ok
    forgotten = msgspec.structs.replace(settings, stores=StoreSettings())
    with Warehouse.read(tmp_path / "w", settings=forgotten) as warehouse:
        advice = warehouse.maintenance.verify().advice
    assert f"add {disk / 'archive'} to stores.directories" in advice
    assert "rebuild" not in advice
    for place in (tmp_path / "w" / "archive", disk / "archive"):
        (place / "directories.json").unlink()  # as a version wrote it that had no such file
    with Warehouse.read(tmp_path / "w", settings=forgotten) as warehouse:
        advice = warehouse.maintenance.verify().advice
    assert "stores.directories" in advice


def test_what_is_written_elsewhere(disk: Path, tmp_path: Path) -> None:
    """Exports, reports, lakes and copies on a full disk: an error with a hint, the older file stays, and all is well
    when there is room."""
    path, warc = tmp_path / "w", tmp_path / "pages.warc.gz"
    pages = [
        Page(url, url, 200, (("content-type", "text/html"),), _page(n), 1.7e9, 0.1)
        for n in range(60)
        for url in [f"http://a.example/{n}"]
    ]
    warc.write_bytes(file_header(warc.name, 0.0) + b"".join(encode(page).member for page in pages))
    assert run(["-w", str(path), "import", str(warc)]) == 0
    (disk / "all.nq").write_text("older")
    rest = os.open(disk / "rest", os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while True:
            os.write(rest, bytes(4096))
    os.close(rest)
    commands = [
        ["export", str(disk / "all.nq")],
        ["report", "-o", str(disk / "report.html")],
        ["lake", "sync", str(disk / "lake")],
        ["backup", str(disk / "copy")],
    ]
    for command in commands:
        assert run(["-w", str(path), *command]) == 6, command
    assert (disk / "all.nq").read_text() == "older"
    (disk / "rest").unlink()
    (disk / "ballast").unlink()
    for command in commands:
        assert run(["-w", str(path), *command]) == 0, command
    assert (disk / "all.nq").read_text().count("Whale") >= len(pages)


def _page(number: int) -> bytes:
    noise = os.urandom(300).hex()
    return (
        f'<title>Whale {number}</title><p vocab="http://schema.org/" typeof="Event"><b property="name">{noise}'.encode()
    )
