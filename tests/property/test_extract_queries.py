"""Each standard strategy: its native evaluator and its SPARQL query choose the same links, on any page."""

from __future__ import annotations

from importlib import resources
from typing import get_args

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadloom.asking.sparql.checks import template
from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.documents.extract import STRATEGIES
from quadloom.documents.extract_queries import link_graph
from quadloom.model.link import Link, LinkKind
from quadloom.model.url import host_of, site_of

QUERIES = resources.files("quadloom.documents") / "queries"
PAGE = "http://www.site.example/page"
targets = st.sampled_from(
    [
        PAGE,
        "http://www.site.example/a",
        "http://other.site.example/b",
        "http://far.example/",
        "https://far.example:8443/x?q=1",
        "http://10.0.0.1/",
    ]
)
links = st.lists(
    st.builds(
        Link,
        targets,
        st.sampled_from([PAGE, PAGE + "#part"]),
        st.sampled_from(get_args(LinkKind)),
        st.sampled_from(["", "words", 'a "quote"\\']),
        st.just(""),
        st.booleans(),
    ),
    max_size=12,
)


@pytest.mark.parametrize("name", STRATEGIES)
@settings(max_examples=60, deadline=None)
@given(found=links)
def test_native_and_query_agree(name: str, found: list[Link]) -> None:
    site = site_of(host_of(PAGE))
    native = {link.target for link in found if not link.nofollow and STRATEGIES[name].wanted(link, site)}
    store = ox.Store()
    store.load(link_graph(found, PAGE), ox.RdfFormat.N_QUADS)
    rows = store.query(
        f"<{PAGE}>".join(template((QUERIES / f"{name}.rq").read_text(encoding="utf-8"), "page")), prefixes=PREFIXES
    )
    assert isinstance(rows, ox.QuerySolutions)
    assert {row["target"].value for row in rows} == native


def test_every_strategy_has_its_query() -> None:
    for name in STRATEGIES:
        assert "?target" in (QUERIES / f"{name}.rq").read_text(encoding="utf-8")
