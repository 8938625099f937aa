"""The sink takes every statement of a parsed document, whatever its terms hold, without a multiple of their memory."""

from __future__ import annotations

import tracemalloc

import pyoxigraph as ox
import pytest

from quadloom.documents.syntaxes.guards import check_triple_terms
from quadloom.documents.syntaxes.rdf.blank_nodes import skolemise
from quadloom.documents.syntaxes.sink import Sink

MEBIBYTE = "x" * (1 << 20)


@pytest.mark.parametrize("space", ["\xa0", "\u2028", "\u2029", "\u3000"])
def test_white_space_that_an_iri_may_hold_ends_no_term(space: str) -> None:
    node = ox.NamedNode(f"http://site.example/a{space}b")
    statements = [ox.Quad(node, node, node, node), ox.Quad(node, node, ox.Literal("x", datatype=node))]
    sink = Sink()
    sink.pour(ox.serialize(statements, format=ox.RdfFormat.N_QUADS) or b"")
    assert len(sink) == 2


def test_a_long_literal_costs_no_multiple_of_itself() -> None:
    line = f'_:a <http://v.example/p> "{MEBIBYTE}\\"{MEBIBYTE}" <http://g.example/> .\n'.encode()
    tracemalloc.start()
    sink = Sink()
    sink.pour(line)
    skolemise(line, "http://page.example/")
    check_triple_terms(f'{"<<>>" * 200} """{MEBIBYTE}" """ "{MEBIBYTE}"'.encode())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(sink) == 1
    assert peak < 40 << 20  # 140 bytes for each character when every one was an alternative of its own
