"""Link strategies as SPARQL: the standard ones in `queries/`, and the user's own `.rq` files.

A query sees one page's complete graph: its statements, and every link that may be followed as

    <source> <urn:quadloom:link:KIND> <target>      KIND as in `quadloom.model.link.LinkKind`
    <target> rdfs:label "words of the link"
    <target> ql:site "registered domain"            also of the page itself

in the graph named ?page. Before the query runs, ?page is replaced by the page's URL: with the graph as a constant it
costs a third of a millisecond, with a variable one up to 40. The standard strategies are evaluated natively
(`quadloom.documents.extract`), and a property test holds both to the same answers.

A user's file selects ?target (or its first variable), and may select ?anchor; it cannot select ?page. A comment
`# over: index` asks the whole index instead of the page's own graph; there only those links are found which
`index.links` stores.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from quadloom.documents.syntaxes.rdf.links import LABEL
from quadloom.documents.syntaxes.terms import iri, literal
from quadloom.errors import SettingsError
from quadloom.model.link import Link
from quadloom.model.url import host_of, site_of

LINK = "urn:quadloom:link:"
_OVER = re.compile(r"^\s*#\s*over:\s*(\w+)", re.MULTILINE)
_MAX_BYTES = 64 * 1024


class UserQuery(msgspec.Struct, frozen=True):
    """A strategy from a file; `over` says what it is asked of."""

    name: str
    text: str
    over: Literal["page", "index"] = "page"


def user_queries(names: Sequence[str]) -> tuple[UserQuery, ...]:
    """Those of `crawl.strategies` that are files. Raises `SettingsError` for one that cannot be used."""
    return tuple(_read(Path(name)) for name in names if name.endswith(".rq"))


def link_graph(links: Sequence[Link], graph: str) -> bytes:
    """All links that may be followed, as N-Quads in `graph`. `nofollow` links are not for following."""
    end = f" <{graph}> .\n"
    statements: dict[str, None] = {}
    for target in {graph, *(link.target for link in links if not link.nofollow)}:
        term = iri(target)
        if term is not None:
            statements[f"{term} <urn:quadloom:site> {literal(site_of(host_of(target)))}"] = None
    for link in links:
        source, found = iri(link.source), iri(link.target)
        if link.nofollow or source is None or found is None:
            continue
        statements[f"{source} <{LINK}{link.kind}> {found}"] = None
        if link.anchor:
            statements[f"{found} {LABEL} {literal(link.anchor)}"] = None
    return (end.join(statements) + end).encode("utf-8", "replace") if statements else b""


def _read(path: Path) -> UserQuery:
    try:
        data = path.read_bytes()
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"cannot read the link strategy {path}: {error}", hint="crawl.strategies names files relative to here"
        ) from None
    if len(data) > _MAX_BYTES:
        raise SettingsError(f"the link strategy {path} is longer than {_MAX_BYTES} bytes")
    match = _OVER.search(text)
    if match is None or match.group(1) == "page":
        return UserQuery(path.name, text)
    if match.group(1) == "index":
        return UserQuery(path.name, text, "index")
    raise SettingsError(
        f"{path}: `# over: {match.group(1)}` is unknown", hint="write `# over: page` or `# over: index`"
    )
