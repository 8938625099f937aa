"""Citations name what they cite so that a stranger finds it again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from quadloom.asking.evidence.cite import FORMATS, cite
from quadloom.errors import NothingFound
from quadloom.warehouse import Warehouse
from unit.web.web_fixture import BOOK, PERSON, fill

THING = f"{BOOK}#it"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cite") / "data"
    fill(path)
    return path


def test_each_page_that_states_a_value_is_cited_with_its_record(path: Path) -> None:
    with Warehouse.read(path) as read:
        found = cite(read.stores, THING, "isbn", public_url="https://data.example/")
        assert {(one.page, one.value.text) for one in found if one.value} == {(BOOK, "978-3"), (PERSON, "979-9")}
        for one in found:
            assert one.record is not None and one.visited and one.archived.startswith("https://data.example/memento/")
            stored = (path / "archive" / one.record.file).read_bytes()
            member = stored[one.record.offset : one.record.offset + one.record.length]
            assert hashlib.sha256(member).hexdigest() == one.record.sha256
            assert one.record.id.startswith("urn:uuid:") and one.record.payload_digest.startswith("sha1:")


def test_a_page_is_cited_as_itself_and_a_thing_with_all_its_values(path: Path) -> None:
    with Warehouse.read(path) as read:
        (page,) = cite(read.stores, BOOK)
        assert page.value is None and page.title == "The Distant Lighthouse"
        assert {one.property for one in cite(read.stores, THING)} >= {
            "http://schema.org/name",
            "http://schema.org/isbn",
        }
        with pytest.raises(NothingFound):
            cite(read.stores, THING, "schema:price")
        with pytest.raises(NothingFound):
            cite(read.stores, "urn:nothing")


def test_formats_hold_what_bibliographies_need(path: Path) -> None:
    with Warehouse.read(path) as read:
        found = cite(read.stores, THING, "schema:name")
    assert "The Distant Lighthouse, name: The Distant Lighthouse. “The Distant Lighthouse”" in FORMATS["text"](found)
    (entry,) = json.loads(FORMATS["csl"](found))
    assert entry["type"] == "webpage" and entry["URL"] == BOOK and len(entry["accessed"]["date-parts"][0]) == 3
    assert json.loads(FORMATS["json"](found))[0]["record"]["sha256"]
    bibtex = FORMATS["bibtex"](found)
    assert bibtex.startswith("@misc{books-example-") and f"url = {{{BOOK}}}" in bibtex


def test_hostile_titles_cannot_leave_their_field(path: Path) -> None:
    with Warehouse.read(path) as read:
        found = cite(read.stores, "http://evil.example/thing", "name")
    bibtex = FORMATS["bibtex"](found)
    assert bibtex.count("@misc{") == 1 and "\\{\\{7*7\\}\\}" in bibtex
    depth = 0
    for place, sign in enumerate(bibtex):
        if sign in "{}" and bibtex[place - 1] != "\\":
            depth += 1 if sign == "{" else -1
            assert depth >= 0
    assert depth == 0
