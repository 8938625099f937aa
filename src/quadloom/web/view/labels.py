"""Names for IRIs: people read “Ada Yamada”, not the last part of an address."""

from __future__ import annotations

from collections.abc import Iterable

from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.stores.protocols.quads import QuadStore
from quadloom.web.view.terms import is_iri, statements

NAMING = tuple(
    PREFIXES[prefix] + word
    for prefix, word in (
        ("rdfs", "label"), ("schema", "name"), ("schemas", "name"), ("foaf", "name"), ("skos", "prefLabel"),
        ("dcterms", "title"), ("dc", "title"), ("vcard", "fn"), ("schema", "headline"),
        ("rss", "title"),
    )
)  # fmt: skip
_MOST = 200
_STATEMENTS = 40  # of each thing; who has more to say than that has said its name before


def labels(quads: QuadStore, iris: Iterable[str]) -> dict[str, str]:
    """IRI → its name, for those that have one; the first few hundred."""
    found = {}
    for iri in list(dict.fromkeys(iris))[:_MOST]:
        name = _label(quads, iri) if is_iri(iri) else ""
        if name:
            found[iri] = name
    return found


def _label(quads: QuadStore, iri: str) -> str:
    names = {
        statement.predicate: statement.object.text
        for statement in statements(quads.match(f"<{iri}>", None, None, None, _STATEMENTS))
        if statement.object.kind == "literal" and statement.predicate in NAMING
    }
    return next((names[predicate] for predicate in NAMING if predicate in names), "")
