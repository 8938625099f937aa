"""Names that people use for types, vocabularies and times; a search and the query it stands for agree."""

from __future__ import annotations

from typing import Unpack

import pytest

from quadloom.asking.search import SearchFilters, moment, search, search_request
from quadloom.asking.sparql.prefixes import expand, shorten, type_iris
from quadloom.asking.sparql.service import QueryService
from quadloom.asking.sparql.text_patterns import as_sparql
from quadloom.errors import UsageError
from unit.asking.conftest import A, B, C, Stores


def ids(stores: Stores, text: str = "", **filters: Unpack[SearchFilters]) -> list[str]:
    return [hit.id for hit in search(stores.text, search_request(text, **filters)).hits]


def test_types_by_any_name(stores: Stores) -> None:
    for name in ("Event", "schema:Event", "http://schema.org/Event", "<https://schema.org/Event>"):
        assert ids(stores, "opera", type=[name]) == [A, B]
    assert ids(stores, "opera", type=["Person"]) == []


def test_only_this_ontology(stores: Stores) -> None:
    assert ids(stores, vocabulary=["schema"]) == [A, B]
    assert ids(stores, vocabulary=["foaf"]) == []


def test_phrase_prefix_field_and_not(stores: Stores) -> None:
    assert ids(stores, '"by the sea"') == [A]
    assert ids(stores, "lightho*") == [C]
    assert ids(stores, "title:opernnacht") == [B]
    assert ids(stores, "opera -sea") == [B]


def test_dates_and_languages(stores: Stores) -> None:
    assert ids(stores, since="2022-01-01") == [A]
    assert ids(stores, until=1.55e9) == [C]
    assert ids(stores, "opera", language=["de-AT"]) == [B]


def test_facets_are_named_as_people_do(stores: Stores) -> None:
    answer = search(stores.text, search_request("opera", facets=True))
    assert ("schema:Event", 1) in answer.facets["types"]
    assert answer.facets["vocabularies"] == [("schema:", 2)]


def test_snippets_mark_the_words(stores: Stores) -> None:
    (hit,) = search(stores.text, search_request("sea")).hits
    assert "\x02sea\x03" in hit.snippet


def test_the_equal_query_finds_the_same_pages(stores: Stores, service: QueryService) -> None:
    for request in (
        search_request("opera"),
        search_request("opera", type=["Event"]),
        search_request("opera", vocabulary=["schema"], limit=5),
        search_request('"by the sea" -x"y'),
        search_request("opera", site=['no"such} site']),
    ):
        pages = [row[0] for row in service.ask(as_sparql(request)).values()]
        assert pages == [hit.id for hit in search(stores.text, request).hits]


def test_moments() -> None:
    assert moment("1970-01-02") == 86400.0
    assert moment("1970-01-01T01:00:00+01:00") == 0.0
    assert moment("") == 0.0
    assert moment("7d", now=8 * 86400.0) == 86400.0
    assert moment("90m", now=5400.0) == 0.0
    with pytest.raises(UsageError):
        moment("yesterday")


def test_names_and_back() -> None:
    assert shorten(expand("schema:Event")) == "schema:Event"
    assert expand("http://x.example/") == "http://x.example/"
    assert shorten("http://schema.org/a/b") == "http://schema.org/a/b"
    assert "http://xmlns.com/foaf/0.1/Person" in type_iris("Person")
