"""Numbers of things on the pages against an independent count: rdflib over the N-Quads export, the hierarchy as the
public file of schema.org has it, and a union-find written from the documented rule (`docs/reference/numbers.md`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from rdflib import RDF, Dataset, Literal, Namespace, URIRef
from rdflib.namespace import FOAF, OWL, RDFS, SKOS
from starlette.testclient import TestClient

from quadloom.documents.checks.vocabulary import FOLDER
from quadloom.settings import Settings, WebSettings
from quadloom.stores.statistics import STATISTICS, Statistics
from quadloom.warehouse import Warehouse
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from unit.web.things_fixture import fill_things, page_of
from unit.web.web_fixture import store_page

_SCHEMA, _DC = Namespace("http://schema.org/"), Namespace("http://purl.org/dc/terms/")
_NAMES = (_SCHEMA.name, RDFS.label, FOAF.name, SKOS.prefLabel, _SCHEMA.headline, _DC.title)
_MARKS = tuple(_SCHEMA[name] for name in ("startDate", "isbn", "sku", "gtin13", "birthDate", "price"))
_HOST = "http://town.example"


def _event(number: int, **more: object) -> dict[str, object]:
    return {"@id": f"{_HOST}/{number}#it", "@type": "Event", "name": f"Evening {number}", **more}


_SUBCLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
_SCHEDULED = "schema.org/EventScheduled"
_PAGES = {
    "/1": page_of(_event(1, **{"@type": "MusicEvent", "startDate": "2026-06-01"})),
    "/2": page_of(_event(2, **{"@type": "TheaterEvent", "startDate": "2026-07-02T19:30",
                               "eventStatus": f"http://{_SCHEDULED}"})),
    "/3": page_of(_event(3, startDate="next friday", eventStatus={"@id": f"https://{_SCHEDULED}"}), scheme="https"),
    "/4": page_of(_event(4, startDate="2026", sameAs={"@id": f"{_HOST}/1#it"})),
    # A play twice on one page, once without an IRI and only as an event; another one of that name on another day.
    "/5": page_of(_event(5, **{"@type": "TheaterEvent", "startDate": "2026-08-01"}),
                  {"@type": "Event", "name": "Evening 5"},
                  {"@type": "Event", "name": "Evening 5", "startDate": "2026-08-09"}),
    "/6": page_of({"@id": f"{_HOST}/6#it", "@type": "Kettle", "name": "Kettle", "subClassOf": ""},
                  {"@id": "http://schema.org/Kettle", _SUBCLASS: {"@id": "http://schema.org/Product"}},
                  {"@id": "http://schema.org/Person", _SUBCLASS: {"@id": "http://schema.org/Event"}}),
    "/7": page_of({"@type": "Recipe", "@id": f"{_HOST}/7#it", "name": "Soup", "totalTime": "PT25M"},
                  {"@type": "Recipe", "@id": f"{_HOST}/7#b", "name": "Stew", "totalTime": "PT1H30M"},
                  {"@type": "Recipe", "@id": f"{_HOST}/7#c", "name": "Bread", "totalTime": "a day"}),
    "/8": page_of({"@type": "Product", "@id": f"{_HOST}/8#it", "name": "Lens", "weight": "1 kg",
                   "offers": [{"@type": "Offer", "price": "744.00", "priceCurrency": "USD"},
                              {"@type": "Offer", "price": "1,112.00", "priceCurrency": "AUD"}]}),
}  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("truth") / "data"
    fill_things(path)
    with Warehouse.open(path, settings=Settings()) as warehouse:
        for place, markup in _PAGES.items():
            store_page(warehouse, _HOST + place, markup, 1.75e9)
        warehouse.stores.text.commit()
        counts = Statistics.recounted(warehouse.stores.quads)
        STATISTICS.put_encoded(warehouse.stores.catalog, counts.encode())
    return path


@pytest.fixture(scope="module")
def site(path: Path) -> Iterator[TestClient]:
    state = SiteState(path, Settings(web=WebSettings(rate=0.0, concurrency=0)))
    with TestClient(create_app(state), base_url="http://127.0.0.1:7272") as client:
        yield client


def _http(term: URIRef) -> URIRef:
    return URIRef(str(term).replace("https://schema.org/", "http://schema.org/"))


class _Oracle:
    """What the pages state, read by rdflib."""

    def __init__(self, site: TestClient) -> None:
        data = Dataset()
        data.parse(data=site.get("/export.nq").content, format="nquads")
        self.quads = [
            (s, _http(p), _http(o) if isinstance(o, URIRef) else o, g)
            for s, p, o, g in data.quads()
            if not str(g).startswith("urn:quadloom:")
        ]
        lines = (FOLDER / "schema.tsv").read_text().splitlines()
        self.parents = {
            _SCHEMA[row[1]]: [_SCHEMA[name] for name in row[2].split()]
            for row in (line.split("\t") for line in lines)
            if row[0] == "type" and len(row) > 2
        }
        known = {_SCHEMA[row[1]] for row in (line.split("\t") for line in lines) if row[0] == "type"}
        for lower, predicate, upper, _ in self.quads:
            if predicate == RDFS.subClassOf and lower not in known:
                self.parents.setdefault(lower, []).append(upper)
        self.types = {o for _, p, o, _ in self.quads if p == RDF.type}

    def is_below(self, type: URIRef, wanted: URIRef) -> bool:
        return type == wanted or any(self.is_below(upper, wanted) for upper in self.parents.get(type, ()))

    def descriptions(self, type: URIRef) -> list[tuple[str, str]]:
        return [(str(s), str(g)) for s, p, o, g in self.quads if p == RDF.type and self.is_below(o, type)]

    def things(self, type: URIRef) -> list[set[str]]:
        """Groups of the things of a type that are one."""
        members = {thing for thing, _ in self.descriptions(type)}
        group = {thing: thing for thing in members}

        def top(thing: str) -> str:
            while group.setdefault(thing, thing) != thing:
                thing = group[thing]
            return thing

        named, marks = defaultdict(set), defaultdict(lambda: defaultdict(set))
        for s, p, o, g in self.quads:
            if str(s) in members and p in (OWL.sameAs, _SCHEMA.sameAs) and isinstance(o, URIRef):
                group[top(str(s))] = top(str(o))
            if str(s) in members and p in _NAMES and isinstance(o, Literal):
                named[str(g), str(o).casefold()].add(str(s))
            if str(s) in members and p in _MARKS:
                marks[str(s)][p].add(str(o).removesuffix(":00+00:00").removesuffix(":00Z"))
        for alike in named.values():
            ordered = sorted(alike, key=lambda iri: ("urn:quadloom:blank:" in iri, len(iri), iri))
            for place, one in enumerate(ordered):
                for other in ordered[:place]:
                    both = marks[one].keys() & marks[other].keys()
                    differ = any(marks[one][p].isdisjoint(marks[other][p]) for p in both)
                    if not differ and "urn:quadloom:blank:" in one + other:
                        group[top(one)] = top(other)
                        break
        groups = defaultdict(set)
        for thing in members:
            groups[top(thing)].add(thing)
        return list(groups.values())


def test_each_number_of_a_type_is_that_of_its_table_and_of_an_independent_count(path: Path, site: TestClient) -> None:
    oracle = _Oracle(site)
    answer = site.get("/types.json").json()
    listed = [*answer["types"], *answer["parts"]]
    assert {one["iri"] for one in listed} == {str(type) for type in oracle.types}
    for one in listed:
        type = URIRef(one["iri"])
        assert one["exact"]
        assert one["things"] == len(oracle.things(type)), type
        assert one["descriptions"] == len(set(oracle.descriptions(type))), type
        assert one["things"] == site.get("/type.json", params={"iri": one["iri"]}).json()["total"], type
        assert one["own"] == site.get("/type.json", params={"iri": one["iri"], "alone": "1"}).json()["total"], type
        assert one["things"] == site.get("/ask.json", params={"type": one["short"]}).json()["things"], type


def test_subtypes_are_in_the_table_of_their_type_and_a_choice(site: TestClient) -> None:
    found = site.get("/type.json?iri=schema:Event").json()
    kinds = {
        value["label"]: value["count"]
        for facet in found["facets"]
        if facet["path"] == "rdf:type"
        for value in facet["values"]
    }
    assert kinds["music event"] == 1 and kinds["theater event"] == 2
    music = site.get("/type.json?iri=schema:Event&where=rdf:type is music event").json()
    assert [row["label"] for row in music["rows"]] == ["Evening 1"] and len(music["rows"][0]["members"]) == 2
    tree = {one["short"]: one for one in site.get("/types.json").json()["types"]}
    assert tree["schema:MusicEvent"]["parent"] == "http://schema.org/Event" and tree["schema:MusicEvent"]["depth"] == 1


def test_a_page_may_place_its_own_type_but_not_those_of_a_vocabulary(site: TestClient) -> None:
    products = [row["label"] for row in site.get("/type.json?iri=schema:Product").json()["rows"]]
    assert "Kettle" in products
    people = {row["label"] for row in site.get("/type.json?iri=schema:Person").json()["rows"]}
    assert people and not people & {row["label"] for row in site.get("/type.json?iri=schema:Event").json()["rows"]}


@pytest.mark.parametrize("type", ["schema:Event", "schema:Product", "schema:Person", "schema:Place"])
def test_facets_count_the_rows_behind_them(site: TestClient, type: str) -> None:
    for facet in site.get("/type.json", params={"iri": type}).json()["facets"]:
        for value in facet["values"]:
            where = f"{facet['path']} is {value['value']}"
            assert site.get("/type.json", params={"iri": type, "where": where}).json()["total"] == value["count"], where


def test_a_member_of_an_enumeration_as_iri_and_as_text_is_one_value(site: TestClient) -> None:
    answer = site.get(
        "/type.json", params={"iri": "schema:Event", "where": "schema:eventStatus is EventScheduled"}
    ).json()
    assert {row["label"] for row in answer["rows"]} == {"Evening 2", "Evening 3"}


@pytest.mark.parametrize(
    ("type", "where", "names", "left"),
    [
        ("Event", "startDate from 2026-06-02", {"Evening 2", "Evening 5"}, {"Evening 3"}),
        ("Event", "startDate before 2026-05", {"Evening 1"}, {"Evening 3"}),  # 2026, of what is one with evening 1
        ("Event", "startDate from 2026-07-02T20:00+01:00", {"Evening 2", "Evening 5"}, {"Evening 3"}),
        ("Recipe", "totalTime below PT30M", {"Soup"}, {"Bread"}),
        ("Recipe", "totalTime above 30 min", {"Stew"}, {"Bread"}),
        ("Product", "offers/price above 1000", {"Lens"}, set()),
        ("Product", "offers/price above 1000 USD", set(), {"Lamp 1", "Lamp 2", "Lamp 3"}),
        ("Product", "offers/price below 800 USD", {"Lens"}, {"Lamp 1", "Lamp 2", "Lamp 3"}),
        ("Product", "weight below 2 lb", set(), {"Lens"}),
    ],
)
def test_values_are_compared_as_what_they_are(
    site: TestClient, type: str, where: str, names: set[str], left: set[str]
) -> None:
    answer = site.get("/type.json", params={"iri": f"schema:{type}", "where": where}).json()
    assert {row["label"] for row in answer["rows"]} >= names
    assert not {row["label"] for row in answer["rows"]} & left
    assert sum(one["count"] for one in answer["unreadable"]) == len(left)
    for one in answer["unreadable"]:
        behind = site.get("/type.json", params={"iri": f"schema:{type}", "where": one["condition"]}).json()
        assert {row["label"] for row in behind["rows"]} == left and behind["total"] == one["count"]


def test_a_page_says_what_a_comparison_left_out(site: TestClient) -> None:
    html = site.get("/type?iri=schema:Event&where=startDate+from+2026", headers={"accept": "text/html"}).text
    assert "1 thing whose start date cannot be compared with 2026" in html


def test_a_price_keeps_its_currency(site: TestClient) -> None:
    answer = site.get("/type.json?iri=schema:Product&col=schema:name&col=schema:offers/schema:price").json()
    (lens,) = (row for row in answer["rows"] if row["label"] == "Lens")
    shown = {(value["text"], value["currency"]) for value in lens["cells"][1]}
    assert shown == {("744.00", "USD"), ("1,112.00", "AUD")}
    assert "1,112.00 AUD | 744.00 USD" in site.get("/type.csv?iri=schema:Product&col=schema:offers/schema:price").text
