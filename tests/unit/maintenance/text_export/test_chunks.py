"""Chunks for retrieval systems: stable ids, and only what has changed since a date."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from quadloom.asking.export.selection import Selection
from quadloom.maintenance.text_export.chunks import MOST_CHARACTERS, sections
from quadloom.warehouse import Warehouse
from unit.web.web_fixture import store_page

FIRST, LATER = 1_700_000_000.0, 1_700_100_000.0
EVENT = '{"@context": "https://schema.org", "@type": "Event", "@id": "#it", "name": "Event %d", "startDate": "%s"}'


def url(number: int) -> str:
    return f"http://a.example/{number}"


def page(number: int, *, second: str = "the second part has some words about gardens and rivers") -> str:
    data = f'<script type="application/ld+json">{EVENT % (number, f"2026-05-{1 + number % 28:02d}")}</script>'
    return (
        f"<html lang=en><title>Page {number}</title><main><h1>Event {number}</h1>"
        f"<p>The first part of page {number} has some words about music and bridges.</p>"
        f"<h2>When</h2><p>On page {number} {second}.</p>"
        f"<h2>Where</h2><p>In the third part of page {number} there is a hall beside a river.</p></main>{data}</html>"
    )


def exported(path: Path, selection: Selection | None = None) -> list[dict[str, Any]]:
    stream = io.BytesIO()
    with Warehouse.read(path) as read:
        read.maintenance.export(stream, format="chunks", selection=selection)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    with Warehouse.open(path) as made:
        for number in range(100):
            store_page(made, url(number), page(number), FIRST)
        made.maintenance.rebuild()
    return path


def test_a_chunk_says_where_it_stands(path: Path) -> None:
    found = exported(path)
    mine = [one for one in found if one["page"] == url(7)]
    assert [one["path"] for one in mine] == [
        ["Page 7", "Event 7"],
        ["Page 7", "Event 7", "When"],
        ["Page 7", "Event 7", "Where"],
    ]
    assert mine[0]["data"] == {
        "@id": f"{url(7)}#it",
        "@type": ["http://schema.org/Event"],
        "http://schema.org/name": [{"@value": "Event 7"}],
        "http://schema.org/startDate": [{"@value": "2026-05-08", "@type": "http://schema.org/Date"}],
    }
    assert all("data" not in one and one["types"] == ["http://schema.org/Event"] for one in mine[1:])
    assert all(one["op"] == "put" and one["language"] == "en" and one["warc"]["length"] for one in mine)
    assert len({one["id"] for one in found}) == len(found) == 300 and exported(path) == found


def test_what_changed_since_is_sent_and_no_more(path: Path) -> None:
    known = {one["id"]: one for one in exported(path)}
    with Warehouse.open(path) as made:
        store_page(made, url(3), page(3, second="the second part was written again"), LATER)
        store_page(made, url(100), page(100), LATER)
        made.maintenance.rebuild()
    sent = exported(path, Selection(since=LATER - 1))
    changed = [one for one in sent if one["page"] == url(3)]
    assert sorted(one["op"] for one in changed) == ["delete", "put"]
    assert [one["path"][-1] for one in changed if one["op"] == "put"] == ["When"]
    assert len([one for one in sent if one["page"] == url(100)]) == 3 and len(sent) == 5
    for one in sent:
        if one["op"] == "delete":
            assert set(one) == {"op", "id", "page"}
            del known[one["id"]]
        else:
            known[one["id"]] = one
    assert known == {one["id"]: one for one in exported(path)} | {
        id: one
        for id, one in known.items()
        if one["page"] == url(3)  # its unchanged chunks keep their older visit
    }
    assert set(known) == {one["id"] for one in exported(path)}


def test_sections() -> None:
    text = "intro\n\n# A\n\none\n\n## B\n\n```\n# no heading\n```\n\n# C\n\nlast"
    assert list(sections(text)) == [
        ((), "intro"),
        (("A",), "one"),
        (("A", "B"), "```\n# no heading\n```"),
        (("C",), "last"),
    ]
    assert list(sections("")) == []


@pytest.mark.parametrize("text", ["word " * 2000, "x" * 9000, "\n\n".join(["a paragraph of words"] * 500)])
def test_a_long_section_is_cut(text: str) -> None:
    parts = [part for _, part in sections(f"# A\n\n{text}")]
    assert len(parts) > 2 and all(0 < len(part) <= MOST_CHARACTERS for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())
