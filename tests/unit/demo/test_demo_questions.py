"""The demo's web answers the demo's questions."""

from __future__ import annotations

import io

import pyoxigraph

from fakeweb.reader import Reader
from quadloom.demo.questions import QUESTIONS
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


def test_every_question_has_an_answer() -> None:
    web = demo_web(8000)
    store = store_of(web)
    for question in QUESTIONS:
        if question.command == "sparql":
            rows = list(store.query(question.query, use_default_graph_as_union=True))
            assert len(rows) >= 3, question.title
        else:
            names = [web.layout.name(host, item).lower() for host in web.hosts for item in range(host.size)]
            assert any(question.query in name for name in names)


def test_people_have_two_names() -> None:
    rows = list(store_of(demo_web(8000)).query(QUESTIONS[2].query, use_default_graph_as_union=True))
    assert all(row["here"] != row["there"] for row in rows)
    assert any("registry" in row["here"].value for row in rows)
