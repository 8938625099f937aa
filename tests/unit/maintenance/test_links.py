"""`verify` covers the link matrix and older versions of pages; `rebuild` repairs the matrix, import and crash replay
fill it."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from quadloom.crawling.ingest.intake import Ingest
from quadloom.maintenance.archive_order import all_pages
from quadloom.maintenance.links import StoredLinks
from quadloom.maintenance.verify import VerifyReport
from quadloom.model.page import Page
from quadloom.planning.ranking.link_matrix import LinkMatrix
from quadloom.settings import CrawlSettings, Settings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.warehouse import Warehouse

SETTINGS = msgspec.structs.replace(Settings(), crawl=CrawlSettings(workers=1))


def page(number: int, at: float = 1000.0) -> Page:
    url = f"http://site.example/{number}"
    links = "".join(f'<a href="/{target}">{target}</a>' for target in range(number, number + 3))
    body = f"<title>Page {number} at {at}</title>{links}"
    return Page(url, url, 200, (("content-type", "text/html"),), body.encode(), at, 0.1)


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    """Twelve pages, the first of which has an older version."""
    source = tmp_path / "source.warc.gz"
    pages = [page(0, 500.0), *map(page, range(12))]
    source.write_bytes(file_header(source.name, 0.0) + b"".join(encode(item).member for item in pages))
    with Warehouse.open(tmp_path / "warehouse", settings=SETTINGS) as warehouse:
        assert warehouse.maintenance.import_(source).pages == 13
    return tmp_path / "warehouse"


def verified(path: Path) -> VerifyReport:
    with Warehouse.open(path, settings=SETTINGS) as warehouse:
        return warehouse.maintenance.verify()


def test_links_of_imported_pages_are_in_the_matrix(imported: Path) -> None:
    assert verified(imported).ok
    matrix = LinkMatrix(imported / "links")
    assert matrix.rebuild().links == 12 * 3


def test_missing_links_are_found_and_rebuilt(imported: Path) -> None:
    with Warehouse.read(imported) as warehouse:
        changed = next(iter(all_pages(warehouse.stores.catalog)))
    matrix = LinkMatrix(imported / "links")
    matrix.append(changed.fingerprint, [(4711, "plain")])
    matrix.close()
    report = verified(imported)
    assert [(drift.what, drift.subject) for drift in report.drifts] == [("links", changed.href)]
    assert "`quadloom rebuild`" in report.advice

    shutil.rmtree(imported / "links")
    report = verified(imported)
    assert {drift.what for drift in report.drifts} == {"links"} and len(report.drifts) == 12
    assert not (imported / "links").exists(), "verify creates nothing"
    with Warehouse.repair(imported, settings=SETTINGS) as warehouse:
        warehouse.maintenance.rebuild()
    assert verified(imported).ok


def test_an_unreadable_older_version_is_found(imported: Path) -> None:
    with Warehouse.read(imported) as warehouse:
        (row,) = [row for row in all_pages(warehouse.stores.catalog) if row.visits == 2]
        older = warehouse.stores.catalog.visits.of(row.fingerprint)[-1].archive
    assert older is not None and older != row.archive
    file = imported / "archive" / older.file
    data = bytearray(file.read_bytes())
    data[older.offset + 40 : older.offset + 60] = bytes(20)
    file.write_bytes(data)
    report = verified(imported)
    assert [(drift.what, drift.subject) for drift in report.drifts] == [("archive", row.href)]
    assert "restore" in report.advice


def test_links_that_a_crash_lost_return_with_the_replay(imported: Path) -> None:
    """Links are buffered, so a crash before the pages are marked as indexed loses them."""
    shutil.rmtree(imported / "links")
    with Warehouse.open(imported, settings=SETTINGS) as warehouse:
        stores = warehouse.stores
        stores.catalog.mark_indexed([IndexedPage(row.fingerprint, b"", b"") for row in all_pages(stores.catalog)])
        noted: dict[int, bytes] = {}
        ingest = Ingest(stores, SETTINGS, links_of=noted.__setitem__)
        ingest.replay()
        ingest.close()
        assert noted.keys() == {row.fingerprint for row in all_pages(stores.catalog)}


def test_a_torn_manifest_of_the_matrix_is_rebuilt_from_the_segments(imported: Path) -> None:
    assert LinkMatrix(imported / "links").rebuild().pages == 14
    (imported / "links" / "manifest.json").write_bytes(b'{"gener')
    assert LinkMatrix(imported / "links").rebuild().pages == 14


def test_stored_links_of_an_empty_folder(tmp_path: Path, imported: Path) -> None:
    links = StoredLinks(tmp_path / "nothing")
    with Warehouse.read(imported) as warehouse:
        row = next(iter(all_pages(warehouse.stores.catalog)))
    assert "0 of the 2 links" in links.difference(row, bytes(16))
    assert not links.difference(row, b""), "a page without links needs no entry"
