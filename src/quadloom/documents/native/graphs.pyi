"""`quadloom.documents.syntaxes.rdf.blank_nodes.canonical` in C."""

from collections.abc import Callable

from quadloom.model.quads import Triple

def canonical(
    triples: tuple[Triple, ...],
    graph: str,
    prefix: str,
    digest: Callable[[bytes], bytes],
    roles: dict[str, int],
    role: Callable[[str], int],
    /,
) -> tuple[bytes, list[str]] | None:
    """The lines and their objects, or None if that takes more than the first three rules: triple terms, lists of
    blank nodes, nodes that even their neighbours do not tell apart. `roles` has roles of predicates,
    `role` finds another one."""
