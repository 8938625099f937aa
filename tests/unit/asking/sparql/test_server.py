"""The same questions, answered by a SPARQL server: what users may ask does not depend on where the quads are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from quadloom.asking.sparql.service import QueryService
from quadloom.asking.sparql.worker import with_prefixes
from quadloom.errors import QueryRefused, StoreError
from quadloom.settings import LimitSettings
from quadloom.stores.protocols.queries import QuerySource, SparqlServer
from quadloom.stores.quads.sparql import SparqlQuads
from servers import sparql_server
from unit.asking.conftest import PAGES, Stores
from unit.asking.sparql.test_service import (
    test_a_client_has_its_share,
    test_a_query_left_early_is_ended,
    test_a_url_that_is_no_iri_does_not_break_a_text_pattern,
    test_all_pages_are_the_default_graph,
    test_ask_and_construct,
    test_from_is_honoured,
    test_known_prefixes_need_no_declaration,
    test_many_threads,
    test_own_prefixes_win,
    test_rows_and_bytes_are_limited_and_the_document_is_whole,
    test_syntax_errors_say_where,
    test_what_costs_too_much_is_ended_and_the_next_query_answers,
    test_words_in_a_predicate_list_and_with_another_prefix,
    test_words_join_with_patterns,
)

__all__ = [
    "test_a_client_has_its_share", "test_a_query_left_early_is_ended",
    "test_a_url_that_is_no_iri_does_not_break_a_text_pattern", "test_all_pages_are_the_default_graph",
    "test_ask_and_construct", "test_from_is_honoured", "test_known_prefixes_need_no_declaration", "test_many_threads",
    "test_own_prefixes_win", "test_rows_and_bytes_are_limited_and_the_document_is_whole",
    "test_syntax_errors_say_where", "test_what_costs_too_much_is_ended_and_the_next_query_answers",
    "test_words_in_a_predicate_list_and_with_another_prefix", "test_words_join_with_patterns",
]  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[SparqlServer]:
    process = sparql_server("--timeout-s", "4")  # else it would compute on what nobody waits for
    url = process.url
    address = SparqlServer(query=f"{url}/query", update=f"{url}/update", union="union-default-graph=true")
    with closing(SparqlQuads(address)) as quads:
        quads.insert_new(PAGES)
    yield address
    process.stop()


@pytest.fixture(scope="module")
def service(stores: Stores, server: SparqlServer) -> Iterator[QueryService]:
    limits = LimitSettings(query_seconds=3.0, query_bytes=1 << 30, query_rows=1000)
    with QueryService(QuerySource(servers=(server,)), limits, text=stores.text, processes=2, concurrency=2) as made:
        yield made


def test_results_in_every_form(service: QueryService) -> None:
    query = "SELECT ?n { ?x <urn:x:n> ?n }"
    assert service.ask(query, format="csv").read() == b"n\r\n7\r\n"
    assert service.ask(query, format="tsv").read() == b'?n\n"7"^^<urn:x:t>\n'
    turtle = service.ask("DESCRIBE <http://c.example/3>", format="turtle").read()
    assert b"dcterms:" not in turtle
    assert b"urn:x:n" in turtle


@pytest.mark.parametrize("update", ["DROP ALL", "INSERT DATA { <x:s> <x:p> 1 }", "DELETE WHERE { ?s ?p ?o }"])
def test_updates_never_reach_the_server(service: QueryService, server: SparqlServer, update: str) -> None:
    with pytest.raises(QueryRefused):
        service.ask(update)
    with closing(SparqlQuads(server)) as quads:
        assert len(quads) == 10


def test_a_server_that_is_gone_is_told_of(stores: Stores) -> None:
    nobody = SparqlServer(query="http://127.0.0.1:9/query", update="http://127.0.0.1:9/update")
    with (
        QueryService(QuerySource(servers=(nobody,)), LimitSettings(query_seconds=30.0)) as service,
        pytest.raises(StoreError, match="connect"),
    ):
        service.ask("ASK {}")


def test_a_server_that_answers_nonsense_is_told_of(server: SparqlServer) -> None:
    wrong = SparqlServer(query=server.query.replace("/query", "/"), update=server.update)
    with pytest.raises(StoreError, match="answer"):
        SparqlQuads(wrong)


def test_only_used_and_undeclared_prefixes_are_added() -> None:
    known = {"a": "http://a.example/", "b": "http://b.example/", "c": "http://c.example/"}
    query = 'PREFIX a: <urn:own:> SELECT * { ?x a:y "c:z" ; b:y <c:z> }'
    assert with_prefixes(query, known) == f"PREFIX b: <http://b.example/>\n{query}"
