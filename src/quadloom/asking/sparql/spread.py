"""Which queries several servers can answer together, if each has the whole graphs of its pages and nothing else.

A query is sent to one server if it names graphs of that server only. It is sent to all, and their results are put one
after another, if its pattern is one `GRAPH ?page { … }`, with filters and values around it: a solution then comes from
one graph, so from one server. Everything else joins, counts or sorts over all servers and is refused, with the way that
leads to an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from quadloom.asking.sparql.checks import Token, scan
from quadloom.stores.protocols.queries import ServerChoice
from quadloom.stores.shards import is_page_graph, join_refused, server_number

_TOGETHER = frozenset(
    ("GROUP", "HAVING", "ORDER", "OFFSET", "DESCRIBE", "COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
)  # words outside of the pattern that need all solutions at once
_ELSEWHERE = frozenset(("EXISTS", "OPTIONAL", "UNION", "MINUS", "SELECT", "SERVICE"))
_PAIRS = {"{": "}", "(": ")", "[": "]"}


def spread(query: str, servers: int, graphs: Sequence[str] = ()) -> ServerChoice:
    """How to ask all `servers`. `graphs`: the dataset that was given with the query. Raises `QueryRefused`."""
    tokens = scan(query)
    named = [*graphs, *_from(tokens)]
    if named:
        return ServerChoice(server=_only(named, servers))
    outside, pattern = _split(tokens)
    if not pattern:
        return ServerChoice(server=0)  # ASK {}: true everywhere
    graph = _graph_of(pattern)
    if graph.kind == "iri" and is_page_graph(graph.text[1:-1]):
        return ServerChoice(server=server_number(graph.text[1:-1], servers))
    words = [token.text.upper() for token in outside if token.kind == "word"]
    for word in words:
        if word in _TOGETHER:
            raise join_refused(f"{word} needs the solutions of all servers together")
    limit = next((int(number) for word, number in pairwise(words) if word == "LIMIT"), 0)
    if "LIMIT" in words and not limit:
        return ServerChoice(server=0)  # LIMIT 0: any server has nothing
    return ServerChoice(limit=limit, distinct="DISTINCT" in words or "CONSTRUCT" in words)


def _from(tokens: Sequence[Token]) -> list[str]:
    """Graphs of FROM and FROM NAMED."""
    found = []
    for at, token in enumerate(tokens):
        if token.kind == "word" and token.text.upper() == "FROM":
            after = [one for one in tokens[at + 1 : at + 3] if one.text.upper() != "NAMED"]
            if not after or after[0].kind != "iri":
                raise join_refused("FROM needs the address of a page in angle brackets")
            found.append(after[0].text[1:-1])
    return found


def _only(graphs: Sequence[str], servers: int) -> int:
    numbers = {server_number(graph, servers) for graph in graphs}
    if len(numbers) > 1 or not all(map(is_page_graph, graphs)):
        raise join_refused("these graphs are on different servers")
    return numbers.pop()


def _split(tokens: Sequence[Token]) -> tuple[list[Token], list[Token]]:
    """The tokens outside of all groups, and those of the pattern: the last group of the query."""
    groups: list[list[Token]] = []
    outside: list[Token] = []
    at = 0
    while at < len(tokens):
        if tokens[at].text == "{" and tokens[at].kind == "mark":
            end = _closing(tokens, at)
            groups.append([*tokens[at + 1 : end]])
            at = end
        else:
            outside.append(tokens[at])
        at += 1
    template = any(token.text.upper() == "CONSTRUCT" for token in outside if token.kind == "word")
    if len(groups) != 1 + template:
        raise join_refused("the query has not one pattern")
    return outside, groups[-1]


def _graph_of(pattern: Sequence[Token]) -> Token:
    """The term of the one `GRAPH` block of a pattern that has nothing else but filters and values."""
    graph: Token | None = None
    at = 0
    while at < len(pattern):
        token = pattern[at]
        word = token.text.upper() if token.kind == "word" else ""
        if word == "GRAPH" and graph is None and at + 2 < len(pattern) and pattern[at + 2].text == "{":
            graph = pattern[at + 1]
            at = _closing(pattern, at + 2) + 1
        elif word == "VALUES":
            at = _skipped(pattern, at + 1, lambda one: one.text == "{")
        elif word in ("FILTER", "BIND"):
            end = _skipped(pattern, at + 1, lambda one: one.text == "(")
            inner = {one.text.upper() for one in pattern[at:end] if one.kind == "word"}
            if inner & _ELSEWHERE:
                raise join_refused("a filter looks into other graphs")
            at = end
        elif token.text == ".":
            at += 1
        else:
            raise join_refused(f"{token.text[:60]} is outside of GRAPH")
    if graph is None:
        raise join_refused("no part of the pattern names a graph")
    return graph


def _skipped(tokens: Sequence[Token], at: int, opens: Callable[[Token], bool]) -> int:
    """After the bracket that closes the first one that `opens`."""
    while at < len(tokens) and not opens(tokens[at]):
        at = _closing(tokens, at) if tokens[at].text == "(" else at
        at += 1
    return _closing(tokens, at) + 1 if at < len(tokens) else at


def _closing(tokens: Sequence[Token], at: int) -> int:
    """The place of the bracket that closes the one at `at`; the end if there is none, which the parser reports."""
    expected: list[str] = []
    for place in range(at, len(tokens)):
        token = tokens[place]
        if token.kind == "mark" and token.text in _PAIRS:
            expected.append(_PAIRS[token.text])
        elif token.kind == "mark" and expected and token.text == expected[-1]:
            expected.pop()
            if not expected:
                return place
    return len(tokens)
