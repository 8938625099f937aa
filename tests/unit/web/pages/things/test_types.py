"""Types as tables, questions step by step, saved queries, the schema. The five questions of a stranger are answered by
following links, without SPARQL."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from quadloom.asking.things.cells import CellValue
from quadloom.asking.things.formats import as_csv
from quadloom.asking.things.table import TableColumn, ThingRow, ThingTable
from quadloom.settings import Settings, WebSettings
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from unit.web.things_fixture import fill_things

HTML = {"accept": "text/html"}
_GHENT = "schema:location/schema:address/schema:addressLocality is Ghent"


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    path: Path = tmp_path_factory.mktemp("things") / "data"
    fill_things(path)
    site = SiteState(path, Settings(web=WebSettings(rate=0.0, concurrency=0)), may_control=True)
    with TestClient(create_app(site), base_url="http://127.0.0.1:7272", follow_redirects=False) as client:
        yield client


def _page(client: TestClient, path: str) -> str:
    answer = client.get(path, headers=HTML)
    assert answer.status_code == 200, answer.text
    return answer.text


def _follow(client: TestClient, html: str, words: str) -> str:
    """The page behind the first link whose text contains the words."""
    for href, inner in re.findall(r'<a [^>]*?href="([^"]+)"[^>]*>(.*?)</a>', html, re.DOTALL):
        if words in re.sub(r"<[^>]+>", "", unescape(inner)):
            return _page(client, unescape(href))
    raise AssertionError(f"no link says {words!r}")


def _names(client: TestClient, query: str) -> list[str]:
    return [row["label"] for row in client.get(f"/type.json?{query}").json()["rows"]]


def test_which_events_are_in_ghent(things: TestClient) -> None:
    table = _follow(things, _page(things, "/"), "Event")
    found = _follow(things, table, "Ghent")
    assert "<strong>2</strong> things" in found
    assert "Concert 0" in found and "Concert 2" in found and "Concert 1" not in found


def test_cheapest_product_with_a_rating_above_four(things: TestClient) -> None:
    table = _follow(things, _page(things, "/types"), "Product")
    assert 'value="schema:aggregateRating/schema:ratingValue"' in table
    form = "/type?iri=schema:Product&p=schema:aggregateRating/schema:ratingValue&op=above&v=4"
    rated = _page(things, form)
    assert "rating value is more than 4" in rated and "Lamp 3" not in rated
    cheapest = _follow(things, rated, "price")
    assert cheapest.index("Lamp 2") < cheapest.index("Lamp 1"), "the cheapest comes first"


def test_who_is_described_on_two_sites(things: TestClient) -> None:
    people = _page(things, "/type?iri=Person")
    found = _follow(things, people, "described on two sites")
    assert "<strong>1</strong> thing" in found and "Ada" in found and "Ivo" not in found


def test_what_changed_since_yesterday(things: TestClient) -> None:
    changed = _follow(things, _page(things, "/"), "since yesterday")
    assert "Lamp 1" in changed and "Uma" in changed and "Ivo" not in changed
    difference = _follow(things, changed, "changed")
    assert "30.00" in difference and "25.00" in difference


def test_which_pages_have_errors(things: TestClient) -> None:
    monitor = _page(things, "/monitor")
    pages = _follow(things, monitor, "jsonld-invalid")
    assert "broken.example" in pages


def test_a_row_is_a_thing_and_not_a_description(things: TestClient) -> None:
    """Each event is on its page twice, in two spellings of schema.org and of its time."""
    table = things.get("/type.json?iri=https://schema.org/Event").json()
    assert table["total"] == 5 and table["exact"]
    assert {len(row["members"]) for row in table["rows"]} == {2}
    start = next(place for place, column in enumerate(table["columns"]) if column["label"] == "start date")
    assert [len(row["cells"][start]) for row in table["rows"]] == [1] * 5
    assert all(value["sources"] for row in table["rows"] for cell in row["cells"] for value in cell)
    assert not any(row["iri"].startswith("urn:quadloom:blank:") for row in table["rows"])


def test_merging_keeps_apart_what_differs(things: TestClient) -> None:
    people = things.get("/type.json?iri=Person").json()["rows"]
    ada = next(row for row in people if row["label"] == "Ada")
    assert len(ada["sources"]) == 2 and len(people) == 3


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("schema:location contains ghent", ["Concert 0", "Concert 2"]),
        ("schema:location is Hall 3", ["Concert 3"]),
        ("schema:startDate from 2026-05-13", ["Concert 3", "Concert 4"]),
        ("schema:startDate before 2026-05-11", ["Concert 0"]),
        ("schema:location missing", []),
        ("schema:name not Concert 1", ["Concert 0", "Concert 2", "Concert 3", "Concert 4"]),
    ],
)
def test_conditions(things: TestClient, where: str, names: list[str]) -> None:
    assert sorted(_names(things, f"iri=Event&where={quote(where)}")) == names


def test_both_spellings_of_schema_org_are_one_table(things: TestClient) -> None:
    assert sorted(_names(things, "iri=Product")) == ["Lamp 1", "Lamp 2", "Lamp 3"]
    assert _names(things, "iri=Product&where=schema:offers/schema:price+below+10&sort=schema:offers/schema:price") == [
        "Lamp 3",
        "Lamp 2",
    ]


def test_sorting_goes_by_number_and_both_ways(things: TestClient) -> None:
    up = _names(things, "iri=Product&sort=schema:offers/schema:price")
    down = _names(things, "iri=Product&sort=schema:offers/schema:price&order=desc")
    assert up == ["Lamp 3", "Lamp 2", "Lamp 1"] == down[::-1]


def test_exports_are_what_is_seen(things: TestClient) -> None:
    seen = things.get(f"/type.json?iri=Event&where={quote(_GHENT)}&sort=schema:name").json()
    text = things.get(f"/type.csv?iri=Event&where={quote(_GHENT)}&sort=schema:name").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["name"] for row in rows] == [row["label"] for row in seen["rows"]] == ["Concert 0", "Concert 2"]
    assert rows[0]["address locality"] == "Ghent" and "http://events.example/0" in rows[0]["sources"]
    answer = things.get("/sparql", params={"query": seen["sparql"], "format": "json"}).json()
    assert {row["name"]["value"] for row in answer["results"]["bindings"]} == {"Concert 0", "Concert 2"}


def test_a_formula_does_not_reach_a_spreadsheet() -> None:
    """Neither as a value nor as the name of a property, which a page chooses too."""
    column = TableColumn("http://evil.example/=1+1", "=1+1", "", "text", 1.0)
    texts = ("=1+1", "-3.5", "-x", "@a", "\t=1+1", "\uff1d1+1", "a;=1+1", "plain")
    rows = tuple(ThingRow("http://evil.example/", "", ((CellValue(text),),), (), ()) for text in texts)
    table = ThingTable(type="", name="", total=len(rows), exact=True, columns=(column,), rows=rows)
    written = as_csv(table).decode()
    lines = list(csv.reader(io.StringIO(written, newline="")))
    assert lines[0][1] == "'=1+1"
    assert [line[1] for line in lines[1:]] == [
        "'=1+1", "-3.5", "'-x", "'@a", "'\t'=1+1", "'\uff1d1+1", "a;'=1+1", "plain",
    ]  # fmt: skip


def test_the_source_of_each_value_on_demand(things: TestClient) -> None:
    plain = _page(things, "/type?iri=Event")
    assert 'id="source1"' not in plain
    shown = _follow(things, plain, "show the source of each value")
    assert 'id="source1"' in shown and 'href="#source1"' in shown


def test_a_question_step_by_step(things: TestClient) -> None:
    types = _page(things, "/ask")
    properties = _follow(things, types, "Event")
    values = _follow(things, properties, "address locality")
    asked = _follow(things, values, "Ghent")
    assert "2 things" in asked and "SELECT" in asked
    assert "Concert 2" in _follow(things, asked, "as a table")
    typed = "/ask.json?type=schema:Event&p=schema:location&op=contains&v=lyon"
    assert things.get(typed).json()["things"] == 1


def test_a_saved_query_is_a_page_csv_and_a_feed(things: TestClient) -> None:
    listed = _page(things, "/queries")
    shown = _follow(things, listed, "Events by city")
    assert "<svg" in shown and "Ghent" in shown
    assert things.get("/query/by-city.csv").text.splitlines()[0].lstrip("\ufeff") == '"city","events"'
    assert things.get("/query/by-city.atom").text.count("<entry>") == 4
    assert things.get("/query/by-city.json").json()["views"] == ["bars", "table"]
    assert things.get("/query/nothing.json").status_code == 404


@pytest.mark.parametrize(
    ("query", "view"),
    [
        ("SELECT ?e ?lat ?long { ?e schema:geo ?g . ?g schema:latitude ?lat ; schema:longitude ?long }", "map"),
        ("SELECT ?e ?start { ?e schema:startDate ?start }", "timeline"),
        ("SELECT ?e ?place { ?e schema:location ?place }", "graph"),
        ("SELECT ?name ?price { ?p schema:name ?name ; schema:offers/schema:price ?price }", "bars"),
        ("SELECT ?name { ?p schema:name ?name }", "table"),
    ],
)
def test_the_picture_follows_from_the_columns(things: TestClient, query: str, view: str) -> None:
    found = things.get("/result.json", params={"query": query}).json()
    assert found["views"][0] == view and found["rows"]
    page = _page(things, f"/result?query={quote(query)}")
    assert ('<svg class="figure"' in page) is (view != "table")
    assert "urn:quadloom:blank" not in re.sub(r'"[^"]*"', "", page), "people read names"


def test_the_schema_is_a_picture_and_a_table(things: TestClient) -> None:
    page = _page(things, "/schema")
    assert "Event ·" in page and 'href="/type?iri=schema%3APlace"' in page
    found = things.get("/schema.json").json()
    assert ["http://schema.org/Event", "http://schema.org/location", "http://schema.org/Place"] in [
        [link["source"], link["property"], link["target"]] for link in found["links"]
    ]
    svg = things.get("/schema.svg?site=shop.example")
    assert svg.headers["content-type"] == "image/svg+xml" and "Event" not in svg.text and "Product" in svg.text


@pytest.mark.parametrize(
    "path",
    ["/type?iri=Nothing", "/type?iri=Event&where=nonsense", "/type?iri=Event&sort=a+b", "/schema?site=no.example",
     "/type?iri=Event&where=schema:name+above+x", "/ask?type=Nothing", "/result?query=SELEC"],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_with_a_hint(things: TestClient, path: str) -> None:
    answer = things.get(path)
    assert answer.status_code in (400, 404) and answer.json()["hint"]


def test_a_thing_begins_with_what_a_person_wants(things: TestClient) -> None:
    page = _page(things, "/entity?iri=" + quote("http://events.example/0#it"))
    assert page.index("<h1>Concert 0</h1>") < page.index("start date") < page.index("Statements")
    assert "Where Concert 0 is" in page, "a map, since its place has coordinates"
    assert "urn:quadloom:blank" not in re.sub(r'"[^"]*"', "", page)
    assert 'href="/type?iri=schema%3AEvent"' in page


def test_a_part_has_a_page_with_a_name(things: TestClient) -> None:
    twin = things.get("/entity.json", params={"iri": "http://events.example/0#it"}).json()
    places = next(found for found in twin["properties"] if found["iri"].endswith("/location"))
    part = places["statements"][0]["value"]["text"]
    page = _page(things, f"/entity?iri={part}")
    assert "<h1>Hall 0</h1>" in page and "without an address of its own" in page
    address = things.get("/entity.json", params={"iri": part}).json()["properties"]
    nameless = next(found for found in address if found["iri"].endswith("/address"))["statements"][0]["value"]["text"]
    assert "<h1>Address of Hall 0</h1>" in _page(things, f"/entity?iri={nameless}")


def test_same_as_is_merged_by_choice(things: TestClient) -> None:
    alone = _page(things, "/entity?iri=" + quote("http://registry.example/ada#it"))
    assert "keeper" not in alone
    merged = _follow(things, alone, "called the same")
    assert "keeper" in merged and "1952-07-21" in merged and "2 names" in merged
    assert "keeper" not in _follow(things, merged, "this name alone")


def test_history_says_what_was_before_and_after(things: TestClient) -> None:
    """The offer keeps its node though its price changes: each value is that of its time."""
    lamp = things.get("/entity.json", params={"iri": "http://shop.example/p/1#it", "history": "1"}).json()
    (change,) = lamp["history"]["changes"]
    assert (change["property"], change["before"], change["after"]) == ("offers › price", ["30.00 EUR"], ["25.00 EUR"])
    assert change["page"] == "http://shop.example/p/1" and lamp["history"]["first_seen"] == change["before_at"]
    page = _page(things, "/entity?history=1&iri=" + quote("http://shop.example/p/1#it"))
    assert "<del>30.00 EUR</del>" in page and "<ins>25.00 EUR</ins>" in page
    proof = re.search(r'href="(/page[^"]+#difference)"', page)
    assert proof is not None and "<del>30.00</del>" in _page(things, unescape(proof.group(1)))


def test_the_neighbourhood_opens_by_links(things: TestClient) -> None:
    page = _page(things, "/entity?iri=" + quote("http://events.example/0#it"))
    wider = _follow(things, page, "Hall 0")
    assert "<h1>" in wider
    opening = re.search(r'<a href="(/entity\?iri=[^"]*open=[^"]*)"', page)
    assert opening is not None
    assert "Ghent" in _page(things, unescape(opening.group(1)))
