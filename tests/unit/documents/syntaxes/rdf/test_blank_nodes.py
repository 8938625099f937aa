"""Blank nodes become IRIs that depend on what is said, not on labels or order."""

from __future__ import annotations

import time

import pytest

from quadloom.documents.syntaxes.rdf.blank_nodes import canonical, skolemise
from quadloom.errors import SyntaxInvalid

PAGE = "https://example.org/page"


def test_lines_are_sorted_distinct_and_in_the_page_graph() -> None:
    nquads = b'<a:s> <a:p> "z" .\n<a:s> <a:p> "a" <a:other> .\n<a:s> <a:p> "z" <https://example.org/page> .\n'
    expected = b'<a:s> <a:p> "a" <https://example.org/page> .\n<a:s> <a:p> "z" <https://example.org/page> .\n'
    assert skolemise(nquads, PAGE) == expected


def test_a_lone_surrogate_of_a_plug_in_costs_no_page() -> None:
    found = canonical([("<a:s>", "<a:p>", '"\ud800"'), ("_:b", "<a:name>", '"\ud800"')], PAGE)
    assert found.nquads.count(b'"?"') == 2
    assert b"_:" not in found.nquads


def test_empty_in_empty_out() -> None:
    assert skolemise(b"", PAGE) == b""
    assert skolemise(b"\n", PAGE) == b""


@pytest.mark.parametrize(
    "obj",
    [
        b"<https://example.org/page>",
        b'"a _:b <https://example.org/page> ."',
        b'"\\"_:x\\\\"@en',
        b'"1"^^<a:type>',
        b'"text"@ar--rtl',
        b'<<( <a:s> <a:p> "x _:y" )>>',
    ],
)
@pytest.mark.parametrize("graph", [b"", b" <a:g>", b" _:g", b" <https://example.org/page>"])
def test_objects_survive_whatever_the_graph(obj: bytes, graph: bytes) -> None:
    line = b"<a:s> <a:p> " + obj + graph + b" ."
    assert skolemise(line, PAGE) == b"<a:s> <a:p> " + obj + b" <https://example.org/page> .\n"


def test_no_blank_label_is_left_and_identity_is_kept() -> None:
    out = skolemise(b"<a:s> <a:p> _:x .\n_:x <a:q> _:y .\n_:y <a:q> _:x .\n_:x <a:q> _:x .\n", PAGE)
    assert b"_:" not in out
    assert out.count(b"\n") == 4
    assert len({term for line in out.split() for term in [line] if b"urn:quadloom:blank:" in term}) == 2


def test_labels_belong_to_the_page() -> None:
    one, two = (skolemise(b'_:x <a:q> "1" .\n', f"https://example.org/{n}").split()[0] for n in (1, 2))
    assert one != two


def test_a_new_item_leaves_the_others_alone() -> None:
    def items(count: int) -> bytes:
        lines = [
            f'_:l <a:item> _:i{n} .\n_:i{n} <a:name> "item {n}" .\n_:i{n} <a:offer> _:o{n} .\n' for n in range(count)
        ]
        prices = [f'_:o{n} <a:price> "{n % 7}" .\n' for n in range(count)]
        return "".join(lines + prices).encode()

    before, after = (set(skolemise(items(n), PAGE).splitlines()) for n in (40, 41))
    assert not before - after
    assert len(after - before) == 4


def test_interchangeable_nodes_are_numbered_not_merged() -> None:
    out = skolemise(b"_:a <a:p> <a:o> .\n_:b <a:p> <a:o> .\n_:c <a:p> <a:o> .\n", PAGE)
    assert out.count(b"\n") == 3


def test_interchangeable_nodes_keep_their_names_when_one_is_added() -> None:
    def named(count: int) -> set[bytes]:
        return set(skolemise(b"".join(b"<a:s> <a:p> _:t%d .\n" % n for n in range(count)), PAGE).splitlines())

    assert named(3) < named(4)


def test_blank_nodes_inside_triple_terms() -> None:
    one = skolemise(b'<a:s> <a:says> <<( _:x <a:p> "1 _:x" )>> .\n_:x <a:q> "2" .\n', PAGE)
    two = skolemise(b'_:k <a:q> "2" .\n<a:s> <a:says> <<( _:k <a:p> "1 _:x" )>> .\n', PAGE)
    assert one == two
    assert one.count(b"urn:quadloom:blank:") == 2
    assert b'"1 _:x"' in one


def test_something_else_than_nquads_is_refused() -> None:
    with pytest.raises(SyntaxInvalid):
        skolemise(b"_:b nonsense\n", PAGE)


@pytest.mark.parametrize(
    "edges",
    [
        [(i, j) for i in range(120) for j in range(120) if i != j],
        [(i, i ^ (1 << bit)) for i in range(512) for bit in range(9)],
        [(i, (i + 1) % 3000) for i in range(3000)],
        [(i, i + 1) for i in range(6000)],
        [(0, i) for i in range(1, 6000)],
        [(i, (i * i * 7 + 3 * k + 1) % 700) for i in range(700) for k in range(5)],
    ],
    ids=["complete", "hypercube", "cycle", "path", "star", "tangle"],
)
def test_symmetric_and_poisoned_graphs_cost_little(edges: list[tuple[int, int]]) -> None:
    nquads = "".join(f"_:n{a} <a:p> _:n{b} .\n" for a, b in edges).encode()
    start = time.process_time()
    out = skolemise(nquads, PAGE)
    assert time.process_time() - start < 5  # bounded; about half a second on an idle machine
    assert out.count(b"\n") == len(set(edges))


def shop(prices: list[str], *, name: str = "Lamp") -> set[bytes]:
    lines = [f"<{PAGE}> <a:list> _:l ."]
    for number, price in enumerate(prices):
        p, o, c = f"_:p{number}", f"_:o{number}", f"_:c{number}"
        lines += [
            f"_:l <a:item> {p} .",
            f"{p} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://schema.org/Product> .",
            f'{p} <http://schema.org/name> "{name} {number}" .',
            f"{p} <http://schema.org/offers> {o} .",
            f"{o} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://schema.org/Offer> .",
            f'{o} <http://schema.org/price> "{price}" .',
            f"{o} <http://schema.org/priceSpecification> {c} .",
            f'{c} <http://schema.org/priceCurrency> "EUR" .',
        ]
    return set(skolemise("\n".join(lines).encode(), PAGE).splitlines())


@pytest.mark.parametrize("count", [1, 2, 30])
def test_one_changed_price_is_one_statement_removed_and_one_added(count: int) -> None:
    before = shop(["10"] * count)
    after = shop(["10"] * (count - 1) + ["12"])
    assert len(before - after) == len(after - before) == 1


def test_a_further_product_renames_no_other() -> None:
    assert not shop(["10"]) - shop(["10", "10"])


def test_list_cells_are_told_apart_by_what_they_hold() -> None:
    first, rest = (f"<http://www.w3.org/1999/02/22-rdf-syntax-ns#{name}>" for name in ("first", "rest"))

    def cells(values: list[str]) -> set[bytes]:
        lines = [f"<a:s> <a:p> _:c{len(values)} ."]
        for place, value in enumerate(reversed(values), start=1):
            following = f"_:c{place - 1}" if place > 1 else "<a:nil>"
            lines += [f'_:c{place} {first} "{value}" .', f"_:c{place} {rest} {following} ."]
        return set(skolemise("\n".join(lines).encode(), PAGE).splitlines())

    many = [f"value {number}" for number in range(50)]
    assert len(cells(["new", *many]) - cells(many)) <= 6  # the new cell, and the one that was the head
