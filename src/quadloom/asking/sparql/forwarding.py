"""A user's query asked of a SPARQL server instead of files of our own.

The query has been checked, and text patterns have become VALUES. Here the engine parses it once on an empty store: that
finds mistakes with their place, tells which form the answer has, and makes sure that it is a query and no update, since
it is the server that would carry one out. Then it goes out as it is, with PREFIX lines for the well-known prefixes
that it uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import pyoxigraph as ox

from quadloom.asking.sparql.checks import scan
from quadloom.errors import StoreError
from quadloom.stores.quads.sparql_client import ROWS, TRIPLES, SparqlClient, SparqlResponse

Result = ox.QuerySolutions | ox.QueryBoolean | Iterator[ox.Triple]


def forwarded(
    client: SparqlClient,
    query: str,
    prefixes: Mapping[str, str],
    *,
    union: bool,
    default_graphs: Sequence[str] = (),
    named_graphs: Sequence[str] = (),
) -> Result:
    """The server's answer while it arrives. Raises `SyntaxError` for what is no query, else as `SparqlClient.query`."""
    is_graph = isinstance(ox.Store().query(query, prefixes=dict(prefixes)), ox.QueryTriples)
    media_type = TRIPLES if is_graph else ROWS
    answer = client.query(
        with_prefixes(query, prefixes), media_type, union=union, default_graphs=default_graphs,
        named_graphs=named_graphs,
    ).expect(media_type)  # fmt: skip
    if is_graph:
        return _triples(answer)
    found = ox.parse_query_results(answer, ox.QueryResultsFormat.JSON)  # type: ignore[arg-type]  # it only calls read
    assert isinstance(found, ox.QuerySolutions | ox.QueryBoolean), "SPARQL JSON is one of the two"
    return found


def with_prefixes(query: str, prefixes: Mapping[str, str]) -> str:
    """The query with a declaration of each well-known prefix that it uses and does not declare itself."""
    tokens = scan(query)
    names = {token.text.partition(":")[0] for token in tokens if token.kind == "name"}
    declared = {
        name.text.partition(":")[0]
        for word, name in pairwise(tokens)
        if word.kind == "word" and word.text.upper() == "PREFIX"
    }
    lines = [f"PREFIX {name}: <{prefixes[name]}>\n" for name in sorted(names - declared) if name in prefixes]
    return "".join(lines) + query


def _triples(answer: SparqlResponse) -> Iterator[ox.Triple]:
    with answer:
        try:
            for quad in ox.parse(answer, ox.RdfFormat.N_TRIPLES, lenient=True):  # type: ignore[arg-type]  # it only calls read
                yield quad.triple
        except SyntaxError as error:
            raise StoreError(f"the server's answer is not N-Triples: {error.msg}", hint="try again") from error
