"""The demo's web answers the demo's questions."""

from __future__ import annotations

import io

import pyoxigraph

from fakeweb.reader import Reader
from quadloom.cli.demo_sites.questions import QUESTIONS
from quadloom_lab.fakeweb import FakeWeb, FakeWebServer, demo_web
from quadloom_lab.fakeweb.content.rdf_documents import document
from quadloom_lab.fakeweb.sites.layout import PageRef


def store_of(web: FakeWeb) -> pyoxigraph.Store:
    """Every page's thing in a graph of the page's name."""
    store = pyoxigraph.Store()
    for host in web.hosts:
        for item in range(host.size):
            ref = PageRef(host.index, "page" if host.registry else "item", item)
            if not (host.registry or web.layout.is_html(ref)):
                continue
            text = document("nq", [web.layout.thing(ref, 0)], web.layout.url(ref))
            store.load(io.BytesIO(text.encode()), format=pyoxigraph.RdfFormat.N_QUADS)
    return store


def test_the_demo_web_is_small_and_sound(demo_site: FakeWebServer) -> None:
    web = demo_site.web
    assert len(web.hosts) == 6
    reachable = web.reachable()
    assert 60 <= len(reachable) <= 130
    reader = Reader(demo_site.port)
    assert {reader.get(url).status for url in reachable} == {200, 303}


_TWO_NAMES = """PREFIX schema: <http://schema.org/>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
SELECT DISTINCT ?here ?there WHERE {
  GRAPH ?page { ?here a schema:Person ; schema:sameAs|owl:sameAs ?there . }
  GRAPH ?other { ?there a schema:Person . }
  FILTER (?page != ?other && STR(?here) < STR(?there))
}"""
_IN_GHENT = """PREFIX schema: <http://schema.org/>
SELECT DISTINCT ?event WHERE {
  ?event a schema:Event ; schema:location/schema:address/schema:addressLocality ?city . FILTER(STR(?city) = "Ghent")
}"""


def rows_of(store: pyoxigraph.Store, query: str) -> list[pyoxigraph.QuerySolution]:
    found = store.query(query, use_default_graph_as_union=True)
    assert isinstance(found, pyoxigraph.QuerySolutions)
    return list(found)


def test_every_question_has_an_answer() -> None:
    """What the tables select, asked in SPARQL; that the tables give the same is tested with them."""
    web = demo_web(8000)
    store = store_of(web)
    search, ghent, two_sites = QUESTIONS
    names = [web.layout.name(host, item).lower() for host in web.hosts for item in range(host.size)]
    assert any(search.query in name for name in names)
    assert ghent.where.endswith("is Ghent")
    assert rows_of(store, _IN_GHENT)
    assert two_sites.sites == 2 and two_sites.arguments == "table Person --sites 2"
    assert len(rows_of(store, _TWO_NAMES)) >= 3


def test_people_have_two_names() -> None:
    rows = rows_of(store_of(demo_web(8000)), _TWO_NAMES)
    assert all(row["here"] != row["there"] for row in rows)
    assert any("registry" in row["here"].value for row in rows)
