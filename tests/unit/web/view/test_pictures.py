"""Pictures are well-formed, bounded, and their edges end where boxes are."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from quadloom.web.view.charts import Mark, bars
from quadloom.web.view.pictures import Branch, Edge, NetworkEdge, Node, network, star, tree

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_begin_where_the_longest_label_ends() -> None:
    def begin(label: str) -> float:
        found = re.search(r'<rect class="fill" x="(\d+)"', bars([Mark(label, 1.0)], "t"))
        assert found is not None
        return float(found[1])

    assert 30 < begin("Ghent") < begin("Valencia") < begin("東京都千代田区丸の内") <= begin("x" * 60)


@given(st.lists(st.text(max_size=60), max_size=8), st.text(max_size=60))
def test_any_label_gives_a_well_formed_picture(labels: list[str], middle: str) -> None:
    edges = [
        Edge(label, Node(label, f"/entity?iri={number}", label), bool(number % 2))
        for number, label in enumerate(labels)
    ]
    root = ElementTree.fromstring(star(Node(middle, "/"), edges, title="t").encode("utf-8", "replace"))
    assert len(root.findall(f".//{SVG}rect")) == len(labels) + 1
    assert len(root.findall(f"{SVG}path")) == len(labels)


def test_a_tree_joins_children_to_their_parents() -> None:
    branches = [
        Branch(Node("home", "/a"), 0, -1),
        Branch(Node("b", "/b"), 1, 0),
        Branch(Node("c", "/c"), 1, 0),
        Branch(Node("orphan", "/d"), 2, -1),
    ]
    root = ElementTree.fromstring(tree(branches, title="t"))
    assert len(root.findall(f"{SVG}path")) == 2
    assert [link.get("href") for link in root.findall(f"{SVG}a")] == ["/a", "/b", "/c", "/d"]
    assert ElementTree.fromstring(tree([], title="none")).findall(f"{SVG}a") == []


def test_no_label_of_a_network_is_behind_a_box() -> None:
    """The types of the demo and how they are linked."""
    links = (
        ("Person · 97", "Place · 79", "birth place"), ("Person · 97", "Organization · 107", "works for"),
        ("Breadcrumb list · 14", "List item · 42", "item list element"), ("Event · 25", "Place · 79", "location"),
        ("Event · 25", "Offer · 41", "offers"), ("Event · 25", "Organization · 107", "organizer"),
        ("Place · 79", "Postal address · 27", "address"), ("Event · 25", "Person · 97", "performer"),
        ("Book · 16", "Aggregate rating · 46", "aggregate rating"), ("Book · 16", "Organization · 107", "publisher"),
        ("Book · 16", "Person · 97", "author"), ("Product · 12", "Aggregate rating · 46", "aggregate rating"),
        ("Product · 12", "Brand · 14", "brand"), ("Product · 12", "Offer · 41", "offers"),
        ("Recipe · 12", "Aggregate rating · 46", "aggregate rating"), ("Recipe · 12", "Person · 97", "author"),
        ("Web site · 6", "Search action · 3", "potential action"), ("Channel · 6", "Item · 59", "has part"),
    )  # fmt: skip
    edges = [NetworkEdge(Node(one, f"/{one}"), Node(other, f"/{other}"), label) for one, other, label in links]
    root = ElementTree.fromstring(network(edges, title="t"))
    boxes = [[float(box.get(name, "")) for name in ("x", "y", "width", "height")] for box in root.iter("rect")]
    labels = [text for text in root.iter("text") if text.get("class") == "edge-label"]
    assert (len(boxes), len(labels)) == (17, len(links))
    for text in labels:
        x, y, half = float(text.get("x", "")), float(text.get("y", "")), 2.5 * len(text.text or "")
        behind = [
            box for box in boxes if box[0] < x + half and x - half < box[0] + box[2] and box[1] < y < box[1] + box[3]
        ]
        assert not behind, text.text
