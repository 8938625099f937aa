"""Queries in their killable processes: answers, limits, and that the next query is none the worse."""

from __future__ import annotations

import threading
import time

import pytest

from quadloom.asking.sparql.process import QueryProcess
from quadloom.asking.sparql.service import QueryService
from quadloom.asking.sparql.worker import QueryRefusal
from quadloom.errors import QueryLimit, QueryRefused, QuerySyntaxError
from quadloom.model.text import TextDocument
from quadloom.settings import LimitSettings
from quadloom.stores.protocols.queries import QuerySource
from quadloom.stores.protocols.text import SearchAnswer, SearchRequest
from quadloom_lab.memory.text import MemoryText
from unit.asking.conftest import A, B, C, Stores, quads
from waiting import wait_until

COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
# Twelve triple patterns without a common variable: 10^12 rows of ten quads.
PRODUCT = "SELECT (COUNT(*) AS ?n) { " + " ".join(f"?a{i} ?b{i} ?c{i} ." for i in range(12)) + " }"


def values(service: QueryService, query: str) -> list[tuple[str, ...]]:
    return service.ask(query).values()


def test_all_pages_are_the_default_graph(service: QueryService) -> None:
    assert values(service, COUNT) == [("10",)]


def test_known_prefixes_need_no_declaration(service: QueryService) -> None:
    assert values(service, "SELECT ?s { ?s a schema:Event }") == [(A + "#x",)]


def test_own_prefixes_win(service: QueryService) -> None:
    assert values(service, "PREFIX schema: <https://schema.org/> SELECT ?s { ?s a schema:Event }") == [(B + "#x",)]


def test_from_is_honoured(service: QueryService) -> None:
    assert values(service, f"SELECT (COUNT(*) AS ?n) FROM <{C}> {{ ?s ?p ?o }}") == [("2",)]
    answer = service.ask(COUNT, default_graphs=[A, C])
    assert answer.values() == [("6",)]
    named = service.ask("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }", named_graphs=[B])
    assert named.values() == [(B,)]


def test_ask_and_construct(service: QueryService) -> None:
    assert service.ask("ASK { ?s a schema:Event }").boolean()
    graph = service.ask("CONSTRUCT { ?s a ?t } { ?s a ?t }", format="nt").read()
    assert graph.count(b"\n") == 2


def test_syntax_errors_say_where(service: QueryService) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        service.ask("SELECT * {\n  ?s ?p nope:x }")
    assert (caught.value.line, caught.value.column > 8) == (2, True)
    assert "unknown prefix" in caught.value.message


def test_rows_and_bytes_are_limited_and_the_document_is_whole(service: QueryService) -> None:
    few = service.ask("SELECT * { ?s ?p ?o }", limits=LimitSettings(query_rows=3))
    assert len(few.rows()) == 3
    assert few.truncated
    short = service.ask("SELECT * { ?s ?p ?o }", limits=LimitSettings(query_result_bytes=600))
    document = short.read()
    assert len(document) <= 600
    assert document.endswith(b"]}}")
    assert short.ended is not None
    assert short.ended.truncated == "bytes"


@pytest.mark.parametrize(
    "query",
    [
        PRODUCT,
        PRODUCT.replace("(COUNT(*) AS ?n)", "*") + " ORDER BY ?a1 ?b2 ?c3",
        "SELECT * { FILTER(" + "||".join(["?a"] * 12_000) + ") }",
        "SELECT * { FILTER(" + "!" * 30_000 + "?a) }",
    ],
    ids=["product", "order", "chain", "bangs"],
)
def test_what_costs_too_much_is_ended_and_the_next_query_answers(service: QueryService, query: str) -> None:
    started = time.monotonic()
    with pytest.raises((QueryLimit, QuerySyntaxError)) as caught:
        service.ask(query).read()
    assert time.monotonic() - started < 30.0
    assert caught.value.hint
    assert values(service, COUNT) == [("10",)]


def test_regular_expressions_are_linear(service: QueryService) -> None:
    bomb = f'SELECT ?x {{ BIND("{"a" * 5000}!" AS ?x) FILTER REGEX(?x, "^(a+)+$") }}'
    assert values(service, bomb) == []


def test_memory_is_limited(stores: Stores) -> None:
    greedy = "SELECT (GROUP_CONCAT(?big) AS ?all) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l BIND(%s AS ?big) }"
    big = "CONCAT(" + ",".join(['"' + "x" * 500 + '"'] * 100) + ")"
    with QueryService(
        QuerySource(str(stores.folder / "quads")), LimitSettings(query_seconds=20.0, query_bytes=400 << 20)
    ) as small:
        with pytest.raises(QueryLimit, match="memory"):
            small.ask(greedy % big).read()
        assert small.ask(COUNT).values() == [("10",)]


def test_a_query_left_early_is_ended(service: QueryService) -> None:
    with service.ask(PRODUCT.replace("(COUNT(*) AS ?n)", "*"), limits=LimitSettings(query_rows=0)) as answer:
        next(iter(answer))
    assert values(service, COUNT) == [("10",)]


def test_a_client_has_its_share(service: QueryService) -> None:
    open_ended = PRODUCT.replace("(COUNT(*) AS ?n)", "*")
    with (
        service.ask(open_ended, client="x"),
        service.ask(open_ended, client="x"),
        pytest.raises(QueryLimit, match="running already"),
    ):
        service.ask(COUNT, client="x")
    assert service.ask(COUNT, client="x").values() == [("10",)]


class _CountingText(MemoryText):
    asked = 0

    def search(self, request: SearchRequest) -> SearchAnswer:
        self.asked += 1
        return super().search(request)


def test_words_are_searched_for_within_the_share_of_a_client(stores: Stores) -> None:
    """Otherwise one client makes the server search for as many queries as it sends at once."""
    text = _CountingText()
    words = 'SELECT * { ?page ql:matches "opera" }'
    with QueryService(
        QuerySource(str(stores.folder / "quads")), LimitSettings(), text=text, processes=2, concurrency=1
    ) as service:
        with (
            service.ask(PRODUCT.replace("(COUNT(*) AS ?n)", "*"), client="x"),
            pytest.raises(QueryLimit, match="running already"),
        ):
            service.ask(words, client="x")
        assert text.asked == 0
        for _ in range(4):
            with pytest.raises(QueryRefused, match="text patterns"):
                service.ask("SELECT * {" + '?page ql:matches "opera" . ' * 17 + "}", client="x")
        assert service.ask(words, client="x").values() == [], "a refused query leaves its place to the next one"


def test_many_threads(service: QueryService) -> None:
    found: list[list[tuple[str, ...]]] = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(service.ask(COUNT, client=str(n)).values())) for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[("10",)]] * 6


def test_a_format_that_cannot_hold_the_result(service: QueryService) -> None:
    with pytest.raises(QueryRefused, match="csv cannot hold a graph"):
        service.ask("DESCRIBE <x:y>", format="csv")


def test_what_is_written_later_is_seen(stores: Stores) -> None:
    with QueryService(QuerySource(str(stores.folder / "quads")), LimitSettings()) as late:
        query = "ASK { <http://d.example/#x> ?p ?o }"
        assert not late.ask(query).boolean()
        graph = "http://d.example/"
        stores.quads.replace(quads(graph, "<http://d.example/#x> <urn:x:p> <urn:x:o>"))
        try:
            wait_until(lambda: late.ask(query).boolean(), "what was written is not visible")
        finally:
            stores.quads.remove(graph)


def test_words_join_with_patterns(service: QueryService) -> None:
    found = values(service, 'SELECT ?page ?e { ?page ql:matches "opera" . GRAPH ?page { ?e a schema:Event } }')
    assert found == [(A, A + "#x")]
    scored = values(service, 'SELECT ?p ?s { (?p ?s) ql:matches ("opera" 5) } ORDER BY DESC(?s)')
    assert [page for page, _ in scored] == [A, B]
    assert float(scored[0][1]) > float(scored[1][1]) > 0


def test_words_in_a_predicate_list_and_with_another_prefix(service: QueryService) -> None:
    query = 'PREFIX q: <urn:quadloom:> SELECT ?t { ?page q:matches "light*" ; dcterms:title ?t . }'
    assert values(service, query) == [("Tab\there, comma",)]
    assert values(service, 'SELECT ?page { ?page <urn:quadloom:matches> "lighthouse" }') == [(C,)]


def test_words_in_a_wrong_place(service: QueryService) -> None:
    with pytest.raises(QuerySyntaxError, match="line 2, column 13"):
        service.ask('SELECT * { ?page dcterms:title ?t ;\n            ql:matches "x" }')
    with pytest.raises(QuerySyntaxError):
        service.ask("SELECT * { ?page ql:matches ?words }")


def test_a_url_that_is_no_iri_does_not_break_a_text_pattern(stores: Stores, service: QueryService) -> None:
    odd = "http://odd.example/a|b"
    stores.text.put([TextDocument(id=odd, title="zanzibar"), TextDocument(id=C + "x", title="zanzibar")])
    stores.text.commit()
    try:
        assert values(service, 'SELECT ?page { ?page ql:matches "zanzibar" }') == [(C + "x",)]
    finally:
        stores.text.remove([odd, C + "x"])
        stores.text.commit()


def test_a_graph_that_is_no_iri_is_refused(service: QueryService) -> None:
    with pytest.raises(QueryRefused, match="not an IRI"):
        service.ask(COUNT, default_graphs=["no iri > at all"])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s { ?s a <https://schema.org/Event> }",
        "PREFIX s: <https://schema.org/> SELECT ?s { ?s a s:Event }",
        "SELECT ?s { ?s a schemas:Event }",
        "SELECT ?s { ?s a schema:Event }",
    ],
)
def test_one_spelling_of_schema_org_is_asked_in_either(stores: Stores, query: str) -> None:
    with QueryService(QuerySource(str(stores.folder / "quads")), LimitSettings(), schema_org="http") as service:
        assert values(service, query) == [(A + "#x",)]
        text = 'SELECT ("<https://schema.org/x>" AS ?text) {}'
        assert values(service, text) == [("<https://schema.org/x>",)], "a text stays as it is"


def test_a_process_that_ran_out_of_memory_answers_no_other_query(stores: Stores) -> None:
    process = QueryProcess(QuerySource(str(stores.folder / "quads")), 300 << 20)
    assert isinstance(process._refusal(QueryRefusal(kind="memory", message="")), QueryLimit)
    assert not process.alive
