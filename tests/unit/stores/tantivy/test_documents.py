"""Pages as documents of tantivy: every field can be searched, and an index of an older version can be told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import tantivy

from quadloom.model.text import TextDocument
from quadloom.stores.protocols.text import SearchRequest
from quadloom.stores.tantivy.documents import to_tantivy
from quadloom.stores.tantivy.index import TantivyText

PAGE = TextDocument(
    id="http://a.example/",
    title="A title 題名",
    headings="Headingword",
    description="Describedword",
    links="Linkword",
    images="Imageword",
    body="Body with houses",
    literals="Dataword",
    language="en",
)


def _old_index(path: Path) -> None:
    """As version 1 made it."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", stored=True, tokenizer_name="words")
    builder.add_text_field("body", tokenizer_name="words")
    builder.add_text_field("literals", tokenizer_name="words")
    for field in ("types", "vocabularies", "site", "host", "language", "kind"):
        builder.add_text_field(field, stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_float_field("fetched_at", stored=True, indexed=True, fast=True)
    builder.add_integer_field("year", fast=True)
    builder.add_bytes_field("excerpt", stored=True)
    path.mkdir()
    tantivy.Index(builder.build(), path=str(path))


def _second_index(path: Path) -> None:
    """As version 2 made it: one field for all of the text, and no copies."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    for field in ("title", "headings", "description", "literals", "links", "images", "body"):
        builder.add_text_field(field, tokenizer_name="words")
    for field in ("stems", "endings"):
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="basic")
    for field in ("types", "vocabularies", "site", "host", "language", "kind"):
        builder.add_text_field(field, stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_float_field("fetched_at", stored=True, indexed=True, fast=True)
    builder.add_integer_field("year", fast=True)
    for field in ("shown_title", "excerpt"):
        builder.add_bytes_field(field, stored=True)
    builder.add_bytes_field("analysis2")
    path.mkdir()
    tantivy.Index(builder.build(), path=str(path))


@pytest.mark.parametrize(
    "text", ["title:title", "headings:headingword", "description:describedword", "links:linkword", "images:imageword",
             "data:dataword", "text:houses", "題名"],
)  # fmt: skip
def test_every_field_is_searched(tmp_path: Path, text: str) -> None:
    index = TantivyText(tmp_path)
    index.put([PAGE])
    index.commit()
    (hit,) = index.search(SearchRequest(text=text)).hits
    assert hit.title == PAGE.title
    assert not index.is_outdated
    index.close()


def test_stems_and_endings_are_fields() -> None:
    made = to_tantivy(TextDocument(id="x", body="Lederhandschuhe", language="de")).to_dict()
    assert made["stems"] == ["lederhandschuh"]
    assert made["endings"] == ["huhcsdnahredel"]


def test_the_language_is_guessed_if_the_page_does_not_say_it(tmp_path: Path) -> None:
    index = TantivyText(tmp_path)
    index.put([TextDocument(id="x", body="Der Hund ist nicht auf der Straße, und das ist auch gut so.")])
    index.commit()
    assert index.search(SearchRequest(languages=("de",))).total == 1
    index.close()


def test_the_main_text_counts_more_than_what_surrounds_it(tmp_path: Path) -> None:
    menu, text = "Lighthouses of the world ", "Nobody asked the keeper for the key of the tower."
    about = TextDocument(id="http://a.example/1", body=menu.lower() + "lighthouses are towers", main_spans=(0, 100))
    beside = TextDocument(
        id="http://a.example/2", body=menu * 3 + text, main_spans=(3 * len(menu), 3 * len(menu) + len(text))
    )
    index = TantivyText(tmp_path)
    index.put([beside, about])
    index.commit()
    found = index.search(SearchRequest(text="lighthouses"))
    assert [hit.id for hit in found] == [about.id, beside.id]
    assert found.hits[1].snippet == text  # the menu is no sentence of the page
    assert [hit.id for hit in index.search(SearchRequest(text="text:world keeper"))][:1] == [beside.id]
    index.close()


@pytest.mark.parametrize("make", [_old_index, _second_index])
def test_an_index_of_an_older_version_is_told_and_stays_usable(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "text"
    make(path)
    index = TantivyText(path)
    assert index.is_outdated
    index.put([PAGE])
    index.commit()
    (hit,) = index.search(SearchRequest(text="title houses dataword")).hits
    assert hit.title == PAGE.title
    assert index.search(SearchRequest(text="headings:headingword")).total == (make is _second_index)
    index.close()
    assert TantivyText(path, read_only=True).is_outdated
