"""The contract of `QuadStore`."""

from __future__ import annotations

import json
from itertools import pairwise, product

import pytest
from contract_backends import Place, ShardedPlace

from quadloom.errors import QueryRefused, QuerySyntaxError
from quadloom.model.quads import Quads, line_fingerprints
from quadloom.stores.protocols.quads import Difference

G, H = "http://a.example/page", "http://b.example/ümlaut?q=1"


def line(graph: str, subject: str, value: str, predicate: str = "http://schema.org/name") -> str:
    return f"<{subject}> <{predicate}> {value} <{graph}> ."


def quads(graph: str, *lines: str) -> Quads:
    return Quads.of(graph, "".join(f"{text}\n" for text in sorted(set(lines))).encode())


A, B, C = (
    line(G, "http://a.example/#x", f'"{text}"')
    for text in ("one", 'zwei ö \\n \\"quoted\\" \\\\', "line\u2028break \x85 😀")
)


def test_replace_writes_the_difference_and_returns_it(place: Place) -> None:
    store = place.quads
    assert store.replace(quads(G, A, B)) == Difference(tuple(sorted((A, B))), ())
    assert store.replace(quads(G, B, C)) == Difference((C,), (A,))
    assert not store.replace(quads(G, B, C))
    assert store.replace(quads(G, A, B, C)) == Difference((A,), ())
    assert store.replace(quads(G, A)) == Difference((), tuple(sorted((B, C))))
    assert store.graph(G) == f"{A}\n".encode()
    assert len(store) == 1


def test_an_empty_replacement_removes_the_graph(place: Place) -> None:
    place.quads.replace(quads(G, A))
    assert place.quads.replace(quads(G)) == Difference((), (A,))
    assert list(place.quads.graphs()) == []
    assert place.quads.graph(G) == b""
    assert not place.quads.replace(quads(G))


def test_graphs_do_not_touch_each_other(place: Place) -> None:
    other = line(H, "http://a.example/#x", '"one"')
    place.quads.replace(quads(G, A, B))
    place.quads.replace(quads(H, other))
    assert sorted(place.quads.graphs()) == [G, H]
    assert place.quads.remove(G) == Difference((), tuple(sorted((A, B))))
    assert not place.quads.remove(G)
    assert place.quads.graph(H) == f"{other}\n".encode()


@pytest.mark.parametrize("pages", [3, 120])
def test_insert_new_fills_many_graphs(place: Place, pages: int) -> None:
    batch = []
    for number in range(pages):
        graph = f"http://h{number % 7}.example/{number}"
        batch.append(quads(graph, *(line(graph, f"{graph}#{k}", f'"value {k}"') for k in range(30))))
    place.quads.insert_new(batch)
    place.quads.insert_new([])
    place.quads.flush()
    store = place.reopen()
    assert len(store) == pages * 30
    assert all(store.graph(part.graph) == part.nquads for part in batch)
    assert b"".join(sorted(b"".join(store.dump()).splitlines(keepends=True))) == b"".join(
        sorted(b"".join(part.nquads for part in batch).splitlines(keepends=True))
    )


def test_all_sixteen_patterns(place: Place) -> None:
    subjects, predicates = ("http://x.example/1", "http://x.example/2"), ("http://p.example/a", "http://p.example/b")
    objects, graphs = ('"text"@en', "<http://o.example/>"), (G, H)
    everything = [line(g, s, o, p) for g, s, o, p in product(graphs, subjects, objects, predicates)]
    for graph in graphs:
        place.quads.replace(quads(graph, *(text for text in everything if text.endswith(f"<{graph}> ."))))
    for bound in product((False, True), repeat=4):
        pattern = ("<http://x.example/1>", "<http://p.example/b>", '"text"@en', f"<{H}>")
        wanted = [term if use else None for term, use in zip(pattern, bound, strict=True)]
        found = sorted(place.quads.match(*wanted))
        expected = [text for text in everything if all(term is None or term in text for term in wanted)]
        assert found == sorted(expected), wanted
    assert len(list(place.quads.match(None, None, None, None, limit=5))) == 5
    with pytest.raises(QuerySyntaxError):
        list(place.quads.match("not a term", None, None, None))


def test_query_sees_the_union_of_all_graphs(place: Place) -> None:
    place.quads.replace(quads(G, A))
    place.quads.replace(quads(H, line(H, "http://a.example/#x", '"more"', "http://schema.org/text")))
    if isinstance(place, ShardedPlace):  # no server has all graphs
        with pytest.raises(QueryRefused, match="several servers") as refused:
            place.quads.query("ASK {}")
        assert "quadloom lake query" in refused.value.hint
        return
    answer = json.loads(
        place.quads.query("SELECT ?n ?t { ?x <http://schema.org/name> ?n ; <http://schema.org/text> ?t }")
    )
    assert [(row["n"]["value"], row["t"]["value"]) for row in answer["results"]["bindings"]] == [("one", "more")]
    assert json.loads(place.quads.query(f"ASK {{ GRAPH <{G}> {{ ?s ?p ?o }} }}"))["boolean"] is True
    assert place.quads.query("CONSTRUCT { ?s <x:p> ?o } { ?s <http://schema.org/text> ?o }").count(b"\n") == 1
    with pytest.raises(QuerySyntaxError):
        place.quads.query("SELECT nonsense")


def test_counts_within_graphs_can_be_added_over_the_parts(place: Place) -> None:
    place.quads.replace(quads(G, A, B))
    place.quads.replace(quads(H, line(H, "http://a.example/#x", '"one"')))
    answers = place.quads.parts("SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }")
    assert sum(int(json.loads(answer)["results"]["bindings"][0]["n"]["value"]) for answer in answers) == 3


def test_replacements_survive_reopening(place: Place) -> None:
    place.quads.replace(quads(G, A, B))
    place.quads.flush()
    place.quads.optimize()
    assert place.reopen().graph(G) == quads(G, A, B).nquads


def test_descriptions_are_replaced_by_subject(place: Place) -> None:
    graph = "urn:x:pages"
    one, two = f'<urn:x:1> <urn:x:t> "one" <{graph}> .\n', f'<urn:x:2> <urn:x:t> "two" <{graph}> .\n'
    place.quads.insert_new([], (one + two).encode())
    assert place.quads.graph(graph) == (one + two).encode()
    new = f'<urn:x:1> <urn:x:t> "eins" <{graph}> .\n'
    place.quads.describe(graph, [("urn:x:1", new.encode()), ("urn:x:3", b"")])
    assert place.quads.graph(graph) == (new + two).encode()
    place.quads.describe(graph, [("urn:x:1", new.encode())])
    assert place.quads.graph(graph) == (new + two).encode()
    place.quads.describe(graph, [("urn:x:1", b""), ("urn:x:2", b"")])
    assert place.quads.graph(graph) == b""


def test_what_is_known_of_a_graph_spares_reading_and_changes_nothing(place: Place) -> None:
    graph = "http://x.example/known"

    def version(*values: str) -> Quads:
        lines = sorted(f'<{graph}#{n}> <urn:x:p> "{value}" <{graph}> .\n' for n, value in enumerate(values))
        return Quads.of(graph, "".join(lines).encode())

    versions = [
        version(*"abcdefgh"),
        version(*"abcdefgX"),  # a value made room for another
        version(*"abcdefg"),  # one went without a successor: the guess fails, the graph is read
        version(*"abcdefgY"),
        version(*"stuvwxyz"),  # everything
    ]
    place.quads.replace(versions[0])
    for old, new in pairwise(versions):
        difference = place.quads.replace(new, line_fingerprints(old.nquads))
        assert place.quads.graph(graph) == new.nquads
        before, after = set(old.nquads.decode().splitlines()), set(new.nquads.decode().splitlines())
        assert (set(difference.added), set(difference.removed)) == (after - before, before - after)
    place.quads.remove(graph)
