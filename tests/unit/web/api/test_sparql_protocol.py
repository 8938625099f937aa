"""SPARQL 1.1 Protocol: the cases of the W3C's list that concern queries, and what the standard leaves to us."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlencode

import pyoxigraph as ox
import pytest
from starlette.testclient import TestClient

from quadloom.settings import Settings, WebSettings
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from unit.web.web_fixture import BOOK, PERSON

SELECT = "SELECT ?name { ?book a schema:Book ; schema:name ?name }"
ASK = "ASK { ?s ?p ?o }"
GRAPH = "CONSTRUCT { ?s a ?t } WHERE { ?s a ?t }"
FORM = "application/x-www-form-urlencoded"
QUERY = "application/sparql-query"


def post(client: TestClient, body: str, kind: str, *, params: str = "", method: str = "POST") -> tuple[int, str]:
    answer = client.request(method, "/sparql" + params, content=body.encode(), headers={"content-type": kind})
    return answer.status_code, answer.text


def test_query_by_get(client: TestClient) -> None:
    answer = client.get("/sparql", params={"query": ASK})
    assert answer.status_code == 200 and answer.json()["boolean"] is True


def test_query_by_form(client: TestClient) -> None:
    assert post(client, urlencode({"query": ASK}), FORM)[0] == 200
    assert post(client, urlencode({"query": ASK}), FORM + "; charset=UTF-8")[0] == 200


def test_query_by_direct_post_and_by_the_query_method(client: TestClient) -> None:
    assert post(client, ASK, QUERY)[0] == 200
    assert post(client, ASK, QUERY, method="QUERY")[0] == 200


@pytest.mark.parametrize("way", ["get", "form", "post"])
def test_dataset_of_the_request(client: TestClient, way: str) -> None:
    query = f"SELECT ?isbn {{ <{BOOK}#it> schema:isbn ?isbn }}"
    named = "SELECT ?g { GRAPH ?g { ?s schema:isbn ?o } }"

    def ask(text: str, dataset: list[tuple[str, str]]) -> set[str]:
        fields = urlencode([("query", text), *dataset])
        if way == "get":
            answer = client.get(f"/sparql?{fields}")
        elif way == "form":
            answer = client.post("/sparql", content=fields, headers={"content-type": FORM})
        else:
            answer = client.post(f"/sparql?{urlencode(dataset)}", content=text, headers={"content-type": QUERY})
        return {cell["value"] for row in answer.json()["results"]["bindings"] for cell in row.values()}

    assert ask(query, []) == {"978-3", "979-9"}, "all graphs together"
    assert ask(query, [("default-graph-uri", BOOK)]) == {"978-3"}
    assert ask(query, [("default-graph-uri", BOOK), ("default-graph-uri", PERSON)]) == {"978-3", "979-9"}
    assert ask(named, [("named-graph-uri", PERSON)]) == {PERSON}
    assert ask(query, [("named-graph-uri", PERSON)]) == set(), "no default graph was named"


def test_the_request_wins_over_from(client: TestClient) -> None:
    query = f"SELECT ?isbn FROM <{BOOK}> {{ ?s schema:isbn ?isbn }}"
    answer = client.get("/sparql", params={"query": query, "default-graph-uri": PERSON}).json()
    assert [row["isbn"]["value"] for row in answer["results"]["bindings"]] == ["979-9"]


@pytest.mark.parametrize(
    ("method", "body", "kind", "params", "status"),
    [
        ("PUT", "", "", "?" + urlencode({"query": ASK}), 405),
        ("GET", "", "", "?" + urlencode([("query", ASK), ("query", SELECT)]), 400),
        ("GET", "", "", "?" + urlencode({"query": "ASK {"}), 400),
        ("POST", urlencode({"query": ASK}), "text/plain", "", 415),
        ("POST", ASK, "", "", 415),
        ("POST", "", FORM, "", 400),
        ("POST", "", QUERY, "", 400),
        ("POST", urlencode([("query", ASK), ("query", ASK)]), FORM, "", 400),
        ("POST", urlencode({"update": "CLEAR ALL"}), FORM, "", 400),
        ("POST", "CLEAR ALL", "application/sparql-update", "", 415),
        ("GET", "", "", "?" + urlencode({"query": "INSERT DATA { <x:a> <x:b> <x:c> }"}), 400),
        ("GET", "", "", "?" + urlencode({"query": "SELECT * { SERVICE <http://127.0.0.1/> { ?s ?p ?o } }"}), 400),
        ("GET", "", "", "?" + urlencode({"query": ASK, "default-graph-uri": "not an iri"}), 400),
        ("GET", "", "", "?" + urlencode({"query": ASK, "format": "docx"}), 406),
        ("POST", urlencode({"query": "SELECT * {}" + " " * 70_000}), FORM, "", 413),
    ],
)
def test_bad_requests(client: TestClient, method: str, body: str, kind: str, params: str, status: int) -> None:
    headers = {"content-type": kind} if kind else {}
    answer = client.request(method, f"/sparql{params}", content=body.encode(), headers=headers)
    assert answer.status_code == status
    refusal = answer.json()
    assert refusal["ok"] is False and refusal["status"] == status and refusal["error"] and refusal["hint"]


def test_a_query_that_is_not_utf8(client: TestClient) -> None:
    answer = client.post("/sparql", content=b"ASK { ?s ?p '\xff' }", headers={"content-type": QUERY})
    assert answer.status_code == 400


def test_syntax_errors_say_where(client: TestClient) -> None:
    refusal = client.get("/sparql", params={"query": "SELECT *\nWHERE { ?s ?p }"}).json()
    assert refusal["line"] == 2 and refusal["column"] > 0


@pytest.mark.parametrize(
    ("query", "accept", "media"),
    [
        (SELECT, "", "application/sparql-results+json"),
        (SELECT, "*/*", "application/sparql-results+json"),
        (SELECT, "application/sparql-results+xml", "application/sparql-results+xml"),
        (SELECT, "text/csv", "text/csv"),
        (SELECT, "text/tab-separated-values", "text/tab-separated-values"),
        (SELECT, "application/sparql-results+json;q=0.2, text/csv;q=0.8", "text/csv"),
        (SELECT, "application/*;q=0.9, text/csv;q=0.1", "application/sparql-results+json"),
        (SELECT, "application/sparql-results+json;q=0, */*;q=0.1", "application/sparql-results+xml"),
        (SELECT, "application/json", "application/sparql-results+json"),
        (ASK, "application/sparql-results+xml", "application/sparql-results+xml"),
        (GRAPH, "", "text/turtle"),
        (GRAPH, "application/n-triples", "application/n-triples"),
        (GRAPH, "application/ld+json", "application/ld+json"),
        (GRAPH, "application/rdf+xml, text/turtle;q=0.5", "application/rdf+xml"),
    ],
)
def test_negotiation(client: TestClient, query: str, accept: str, media: str) -> None:
    answer = client.get("/sparql", params={"query": query}, headers={"accept": accept})
    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] == media
    assert answer.headers["vary"].split(", ")[0] == "Accept"


@pytest.mark.parametrize(("query", "accept"), [(SELECT, "image/png"), (SELECT, "text/turtle"), (GRAPH, "text/csv")])
def test_nothing_acceptable(client: TestClient, query: str, accept: str) -> None:
    assert client.get("/sparql", params={"query": query}, headers={"accept": accept}).status_code == 406


def test_all_formats_say_the_same(client: TestClient) -> None:
    parsers = {"json": ox.QueryResultsFormat.JSON, "xml": ox.QueryResultsFormat.XML, "tsv": ox.QueryResultsFormat.TSV}
    found = []
    for name, parser in parsers.items():
        body = client.get("/sparql", params={"query": SELECT, "format": name}).content
        rows = ox.parse_query_results(body, parser)
        assert isinstance(rows, ox.QuerySolutions)
        found.append([str(row["name"]) for row in rows])
    assert found[0] == found[1] == found[2] and found[0]
    graphs = {
        "turtle": ox.RdfFormat.TURTLE,
        "nt": ox.RdfFormat.N_TRIPLES,
        "rdfxml": ox.RdfFormat.RDF_XML,
        "jsonld": ox.RdfFormat.JSON_LD,
    }
    sets = []
    for name, kind in graphs.items():
        body = client.get("/sparql", params={"query": GRAPH, "format": name}).content
        sets.append({str(quad.triple) for quad in ox.parse(body, kind)})
    assert sets[0] and all(found == sets[0] for found in sets)


def test_service_description(client: TestClient) -> None:
    answer = client.get("/sparql", headers={"accept": "text/turtle"})
    quads = list(ox.parse(answer.content, ox.RdfFormat.TURTLE))
    words = {quad.predicate.value.rpartition("#")[2] for quad in quads}
    assert {"endpoint", "supportedLanguage", "resultFormat", "feature", "defaultDataset"} <= words
    assert any(str(quad.object).endswith("UnionDefaultGraph>") for quad in quads)
    assert any(quad.object == ox.NamedNode("http://127.0.0.1:7272/sparql") for quad in quads)


def test_large_results_stream_and_small_ones_tell_their_length(client: TestClient) -> None:
    many = "SELECT ?a ?b ?c ?d { ?s ?a ?b . ?t ?c ?d . ?u ?e ?f }"
    answer = client.get("/sparql", params={"query": many})
    assert answer.status_code == 200 and len(answer.content) > 256 * 1024
    assert len(answer.json()["results"]["bindings"]) > 1000
    assert "content-length" in client.get("/sparql", params={"query": ASK}).headers


def test_text_joins_triples(client: TestClient) -> None:
    query = 'SELECT ?page ?book { ?page ql:matches "distant" . GRAPH ?page { ?book a schema:Book } }'
    rows = client.get("/sparql", params={"query": query}).json()["results"]["bindings"]
    assert rows[0]["page"]["value"] == BOOK


def test_csv_for_spreadsheets(client: TestClient) -> None:
    query = 'SELECT ?x { BIND("=1+1" AS ?x) }'
    safe = client.get("/sparql", params={"query": query, "format": "spreadsheet"})
    assert safe.headers["content-type"].startswith("text/csv")
    assert safe.content.decode("utf-8-sig") == '"x"\r\n"\'=1+1"\r\n'
    assert client.get("/sparql", params={"query": query, "format": "csv"}).text == "x\r\n=1+1\r\n"
    graph = client.get("/sparql", params={"query": GRAPH, "format": "spreadsheet"})
    assert graph.status_code == 406


@pytest.mark.parametrize("web", [WebSettings(rate=0, cors="on"), WebSettings(rate=0, host="192.0.2.1")])
def test_other_sites_may_ask(warehouse_path: Path, web: WebSettings) -> None:
    foreign = {"origin": "https://other.example"}
    with TestClient(create_app(SiteState(warehouse_path, Settings(web=web))), base_url="http://localhost") as client:
        answer = client.post("/sparql", data={"query": ASK}, headers=foreign)
        assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == "*"
        preflight = client.options("/sparql", headers=foreign)
        assert preflight.status_code == 204 and "POST" in preflight.headers["access-control-allow-methods"]


@pytest.mark.parametrize("web", [WebSettings(rate=0), WebSettings(rate=0, host="192.0.2.1", cors="off")])
def test_other_sites_read_nothing_from_loopback_unless_asked(warehouse_path: Path, web: WebSettings) -> None:
    foreign = {"origin": "https://other.example", "sec-fetch-site": "cross-site"}
    paths = ("/sparql?query=ASK{}", "/export.nq", "/search.json?q=lighthouse", "/.well-known/void", "/openapi.json")
    with TestClient(create_app(SiteState(warehouse_path, Settings(web=web))), base_url="http://localhost") as client:
        for path in paths:
            answer = client.get(path, headers=foreign)
            assert answer.status_code == 200 and "access-control-allow-origin" not in answer.headers, path
        assert client.post("/sparql", data={"query": ASK}, headers=foreign).status_code == 403
        preflight = client.options("/sparql", headers={**foreign, "access-control-request-method": "POST"})
        assert preflight.status_code == 405 and "access-control-allow-origin" not in preflight.headers
        assert client.post("/sparql", data={"query": ASK}).status_code == 200, "programs and own pages ask as before"


def test_graph_store(client: TestClient) -> None:
    one = client.get(f"/store?graph={quote(BOOK)}", headers={"accept": "application/n-quads"})
    assert one.status_code == 200 and all(f"<{BOOK}> ." in line for line in one.text.splitlines())
    everything = client.get("/store?default", headers={"accept": "application/n-triples"})
    assert len(everything.text.splitlines()) > len(one.text.splitlines())
    assert client.head(f"/store?graph={quote(BOOK)}").status_code == 200
    assert client.get("/store?graph=http://never.example/").status_code == 404
    assert client.get("/store").status_code == 400
    assert client.get("/store?default&graph=http://a.example/").status_code == 400
    assert client.get("/store?graph=relative").status_code == 400
    assert client.get(f"/store?graph={quote(BOOK)}", headers={"accept": "image/png"}).status_code == 406
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        answer = client.request(method, f"/store?graph={quote(BOOK)}")
        assert answer.status_code == 405 and "GET" in answer.headers["allow"]
