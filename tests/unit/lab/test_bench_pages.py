"""The benchmark of archived pages: groups by size and by syntax, measured on pages of a real WARC file."""

from __future__ import annotations

from pathlib import Path

from command_line import quadloom
from quadloom_lab.commands.bench_pages import PageCost, constructs, sizes

_DATA = '<script type="application/ld+json">{"@context": "https://schema.org", "@type": "Event", "name": "x"}</script>'


def test_groups_by_size_have_all_pages() -> None:
    costs = [PageCost(float(size), ("jsonld",) if size % 2 else (), 0.1, 1.0, size / 10) for size in range(1, 21)]
    rows = sizes(costs)
    assert sum(row.pages for row in rows) == 20
    assert [row.kilobytes for row in rows] == sorted(row.kilobytes for row in rows)
    groups = constructs(costs)
    assert {name: row.pages for name, row in groups.items()} == {"all": 20, "no data": 10, "jsonld": 10}
    assert groups["all"].slowest == 2.0 and groups["jsonld"].median == 1.0


def test_pages_of_an_archive_are_measured_and_drawn(tmp_path: Path) -> None:
    records = b"".join(_record(number) for number in range(9))
    (tmp_path / "pages.warc").write_bytes(records)
    done = quadloom("bench", "pages", "pages.warc", "--rounds", "1", "--plot", "cost.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = [line.split("\t") for line in done.stdout.splitlines()]
    assert ["all", "9"] in [row[:2] for row in table] and ["jsonld", "5"] in [row[:2] for row in table]
    assert "CPU time of a page by its size" in (tmp_path / "cost.svg").read_text(encoding="utf-8")


def test_an_archive_without_pages_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.warc").write_bytes(b"")
    done = quadloom("bench", "pages", "empty.warc", cwd=tmp_path)
    assert done.returncode == 2 and "no HTML page" in done.stderr


def _record(number: int) -> bytes:
    page = (
        f"<html><title>{number}</title><main>{'words ' * 50 * number}</main>{_DATA if number % 2 == 0 else ''}</html>"
    )
    http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n\r\n{page}"
    return (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.org/{number}\r\n"
        f"WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-00000000000{number}>\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n{http}\r\n\r\n"
    ).encode()
