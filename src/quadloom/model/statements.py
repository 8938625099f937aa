"""Statements in columns: subject, predicate and object as N-Triples terms.

Extractors know the terms of what they state. They stay apart until the page's graph is written, so that links, types,
words and names of blank nodes are read from columns and no line is parsed again.
"""

from __future__ import annotations

from collections.abc import Collection

Triple = tuple[str, str, str]
NamedTriple = tuple[str, str, str, str]
"""A statement with a graph of its own, which comes last (TriG, N-Quads, JSON-LD)."""


def as_nquads(triples: Collection[Triple], named: Collection[NamedTriple] = (), graph: str = "") -> bytes:
    """Lines in this order; `triples` in `graph` (an IRI without brackets), or as N-Triples if none is given."""
    end = f" <{graph}> .\n" if graph else " .\n"
    text = end.join(map(" ".join, triples)) + end if triples else ""
    if named:
        text += " .\n".join(map(" ".join, named)) + " .\n"
    return text.encode("utf-8", "replace")
