"""Queries on several SPARQL servers: answered as one store would, or refused with the way to an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from quadloom.asking.sparql.service import QueryService
from quadloom.asking.sparql.spread import spread
from quadloom.errors import QueryRefused
from quadloom.model.quads import Quads
from quadloom.settings import LimitSettings
from quadloom.stores.protocols.queries import QuerySource, ServerChoice, SparqlServer
from quadloom.stores.quads.sharded import ShardedQuads
from quadloom.stores.quads.sparql_client import SparqlClient
from quadloom.stores.shards import server_number
from servers import shared_sparql_server

PAGES = [f"http://site{number}.example/" for number in range(12)]
NAME = "http://schema.org/name"


def test_what_is_sent_where() -> None:
    here = server_number(PAGES[0], 3)
    assert spread(f"SELECT (COUNT(*) AS ?n) {{ GRAPH <{PAGES[0]}> {{ ?s ?p ?o }} }}", 3) == ServerChoice(server=here)
    assert spread(f"SELECT * FROM <{PAGES[0]}> {{ ?s ?p ?o }} ORDER BY ?s", 3) == ServerChoice(server=here)
    assert spread("SELECT * { ?s ?p ?o }", 3, [PAGES[0]]) == ServerChoice(server=here)
    assert spread("ASK {}", 3).server == 0
    assert spread("SELECT * { GRAPH ?g { ?s ?p ?o } }", 3) == ServerChoice()
    assert spread("SELECT DISTINCT ?s WHERE { GRAPH ?g { ?s ?p ?o } } LIMIT 7", 3) == ServerChoice(
        limit=7, distinct=True
    )


@pytest.mark.parametrize(
    "pattern",
    [
        'VALUES ?g { <http://x.example/> } GRAPH ?g { ?s ?p ?o FILTER(?o > "}") }',
        "VALUES (?g ?n) { (<http://x.example/> 1) (UNDEF 2) } GRAPH ?g { ?s ?p ?o . OPTIONAL { ?s ?q ?r } }",
        "GRAPH ?g { ?s ?p ?o MINUS { ?s <x:y> ?z } } FILTER(STRLEN(STR(?g)) > 3) BIND(STR(?o) AS ?text)",
        "GRAPH ?g { { SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s } }",
    ],
)
def test_one_graph_with_filters_and_values_is_asked_of_all(pattern: str) -> None:
    assert spread(f"SELECT * {{ {pattern} }}", 3).server is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { ?s ?p ?o }",
        "SELECT * { GRAPH ?g { ?s ?p ?o } ?s ?q ?r }",
        "SELECT * { GRAPH ?g { ?s ?p ?o } GRAPH ?h { ?s ?q ?r } }",
        "SELECT * { GRAPH ?g { ?s ?p ?o } FILTER NOT EXISTS { ?s <x:y> ?z } }",
        "SELECT * { GRAPH ?g { ?s ?p ?o } OPTIONAL { GRAPH ?h { ?s ?q ?r } } }",
        "SELECT * { { GRAPH ?g { ?s ?p ?o } } UNION { GRAPH ?g { ?o ?p ?s } } }",
        "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }",
        "SELECT ?s { GRAPH ?g { ?s ?p ?o } } ORDER BY ?s LIMIT 3",
        "SELECT ?s { GRAPH ?g { ?s ?p ?o } } OFFSET 3",
        "SELECT ?s { GRAPH ?g { ?s ?p ?o } } GROUP BY ?s",
        "SELECT ?s { GRAPH ?g { ?s ?p ?o } } VALUES ?s { <x:y> }",
        "SELECT (COUNT(*) AS ?n) { GRAPH <urn:quadloom:pages> { ?s ?p ?o } }",
        f"SELECT * FROM <{PAGES[0]}> FROM <{PAGES[1]}> FROM <{PAGES[2]}> FROM <{PAGES[3]}> {{ ?s ?p ?o }}",
        "SELECT * FROM ex:page { ?s ?p ?o }",
        "DESCRIBE <http://site1.example/#it>",
        "DESCRIBE ?s { GRAPH ?g { ?s ?p ?o } }",
    ],
)
def test_what_needs_all_graphs_is_refused_with_the_way(query: str) -> None:
    with pytest.raises(QueryRefused, match="several servers") as refused:
        spread(query, 3)
    assert "GRAPH ?page" in refused.value.hint and "quadloom lake query" in refused.value.hint


@pytest.fixture
def service() -> Iterator[QueryService]:
    servers = []
    for options in ((), ("--union-default-graph",)):
        url = shared_sparql_server(*options).url
        servers.append(SparqlServer(query=f"{url}/query", update=f"{url}/update", union="union-default-graph=true"))
        with closing(SparqlClient(servers[-1])) as client:
            client.update("DROP ALL")
    with closing(ShardedQuads(servers)) as quads:
        for number, page in enumerate(PAGES):
            lines = f'<{page}#it> <{NAME}> "n{number % 3}" <{page}> .\n<{page}#it> <x:p> <{page}> <{page}> .\n'
            quads.replace(Quads.of(page, lines.encode()))
    assert len({server_number(page, 2) for page in PAGES}) == 2
    with QueryService(QuerySource(servers=tuple(servers)), LimitSettings()) as service:
        yield service


def asked(service: QueryService, query: str, format: str = "json") -> bytes:
    with service.ask(query, format=format) as answer:
        return b"".join(answer)


def test_answers_of_all_servers_are_one_answer(service: QueryService) -> None:
    def rows(query: str) -> list[list[str]]:
        found = json.loads(asked(service, query))["results"]["bindings"]
        return sorted([cell["value"] for cell in row.values()] for row in found)

    assert rows(f"SELECT ?g {{ GRAPH ?g {{ ?s <{NAME}> ?n }} }}") == sorted([page] for page in PAGES)
    assert rows(f"SELECT DISTINCT ?n {{ GRAPH ?g {{ ?s <{NAME}> ?n }} }}") == [["n0"], ["n1"], ["n2"]]
    assert len(rows(f"SELECT ?g {{ GRAPH ?g {{ ?s <{NAME}> ?n }} }} LIMIT 5")) == 5
    assert rows(f"SELECT (COUNT(*) AS ?c) {{ GRAPH <{PAGES[3]}> {{ ?s ?p ?o }} }}") == [["2"]]
    for page in PAGES:
        assert json.loads(asked(service, f"ASK {{ GRAPH ?g {{ <{page}#it> ?p ?o }} }}"))["boolean"] is True
    assert json.loads(asked(service, "ASK { GRAPH ?g { <x:none> ?p ?o } }"))["boolean"] is False
    triples = asked(service, f"CONSTRUCT {{ <x:s> <x:n> ?n }} {{ GRAPH ?g {{ ?s <{NAME}> ?n }} }}", "nt")
    assert triples.count(b"\n") == 3, "the same statement from two servers is one"
    with pytest.raises(QueryRefused):
        asked(service, "SELECT * { ?s ?p ?o }")
