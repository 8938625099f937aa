"""A page through time, from WARC files of several versions: refresh by difference, history, changes, statistics."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.errors import NothingFound
from quadloom.model.page import Page
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.warehouse import Warehouse

URL = "http://site.example/event"


def archive(path: Path, at: float, *tags: str, url: str = URL) -> Path:
    """A WARC file with one page that names these things."""
    rows = "".join(f'<p property="schema:tag{n}">{tag}</p>' for n, tag in enumerate(tags))
    body = f'<html lang="en"><title>Things</title><body vocab="http://schema.org/" typeof="Event">{rows}</body></html>'
    page = Page(url, url, 200, (("content-type", "text/html"),), body.encode(), at, 0.1)
    path.write_bytes(file_header(path.name, at) + encode(page).member)
    return path


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.open(tmp_path / "warehouse")


def test_versions_differences_and_the_graph_as_of_a_time(warehouse: Warehouse, tmp_path: Path) -> None:
    tags = [f"tag {n}" for n in range(12)]
    versions = [tags, [*tags[:-1], "changed"], tags[:6], tags[:6]]
    with warehouse:
        for number, version in enumerate(versions):
            at = 1000.0 * (number + 1)
            report = warehouse.maintenance.import_(archive(tmp_path / f"{number}.warc.gz", at, *version))
            outcome = (report.new, report.changed, report.unchanged)
            assert outcome == [(1, 0, 0), (0, 1, 0), (0, 1, 0), (0, 0, 1)][number]
            assert warehouse.maintenance.verify().ok
            assert warehouse.ask.graph_at(URL).nquads == warehouse.stores.quads.graph(URL)
        assert [visit.fetched_at for visit in warehouse.ask.history(URL).visits] == [4000.0, 3000.0, 2000.0, 1000.0]
        changes = warehouse.ask.changes(URL, 1500.0, 2500.0)
        assert [line for line in changes.added if "changed" in line] == list(changes.added)
        assert len(changes.added) == len(changes.removed) == 1
        assert not warehouse.ask.changes(URL, 3000.0)
        assert b"tag 11" in warehouse.ask.graph_at(URL, 1999.0).nquads
        assert b"tag 11" not in warehouse.ask.graph_at(URL, "1970-01-01T00:34:00Z").nquads
        with pytest.raises(NothingFound):
            warehouse.ask.graph_at(URL, 999.0)
        with pytest.raises(NothingFound):
            warehouse.ask.history("http://site.example/other")


def test_statistics_follow_the_differences(warehouse: Warehouse, tmp_path: Path) -> None:
    with warehouse:
        warehouse.maintenance.import_(archive(tmp_path / "1.warc.gz", 1000.0, "a", "b", "c"))
        warehouse.maintenance.import_(archive(tmp_path / "2.warc.gz", 2000.0, "a", "B"))
        assert dict(warehouse.ask.statistics().classes) == {"http://schema.org/Event": 1}
        before = warehouse.ask.statistics(limit=1000)
        assert "http://schema.org/tag2" not in dict(before.properties)
        (html,) = before.by_kind
        assert (html.kind, html.sampled, html.versions, html.changed_statements) == ("html", 1, 1, 3.0)
        warehouse.maintenance.rebuild()
        assert warehouse.ask.statistics(limit=1000) == before


def test_xml_has_statistics_of_its_own(warehouse: Warehouse, tmp_path: Path) -> None:
    url, body = (
        "http://site.example/a.xml",
        b'<!DOCTYPE a SYSTEM "a.dtd"><a xmlns="http://v.example/"><b><c>x</c></b></a>',
    )
    page = Page(url, url, 200, (("content-type", "application/xml"),), body, 1000.0, 0.1)
    path = tmp_path / "xml.warc.gz"
    path.write_bytes(file_header(path.name, 1000.0) + encode(page).member)
    with warehouse:
        assert warehouse.ask.statistics().xml.documents == 0
        warehouse.maintenance.import_(path)
        xml = warehouse.ask.statistics().xml
    assert (xml.documents, xml.elements, xml.depth, xml.deepest) == (1, 3.0, 3.0, 3)
    assert xml.dtds == (("http://site.example/a.dtd", 1),)
    assert xml.namespaces == (("http://v.example/", 1),)


def test_foreign_archives_are_read_within_limits(warehouse: Warehouse, tmp_path: Path) -> None:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>From elsewhere</title>"
    record = (
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1d9b1c3e-0000-4000-8000-000000000001>\r\n"
        "WARC-Date: 2020-01-02T03:04:05Z\r\nWARC-Target-URI: http://else.example/x\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    path = tmp_path / "foreign.warc"
    path.write_bytes(record.encode() + block + b"\r\n\r\n")
    with warehouse:
        assert warehouse.maintenance.import_(path).new == 1
        (hit,) = warehouse.search("elsewhere").hits
        assert hit.id == "http://else.example/x"
        assert warehouse.ask.history(hit.id).page.fetched_at == 1577934245.0
