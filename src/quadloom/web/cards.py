"""What a found page is about, in a few words: its first thing with a type, and some facts of it."""

from __future__ import annotations

import msgspec

from quadloom.asking.entity import Value
from quadloom.asking.prefixes import PREFIXES
from quadloom.stores.protocols import QuadStore
from quadloom.web.labels import NAMING
from quadloom.web.terms import Statement, is_iri, statements

_TYPE = f"<{PREFIXES['rdf']}type>"
_TYPED = 20  # typed things of a page that are looked at
_SAID = 20  # statements of one thing
_FACTS = 3
_LONGEST = 80


class Fact(msgspec.Struct, frozen=True):
    property: str
    value: Value


class Card(msgspec.Struct, frozen=True):
    iri: str
    label: str
    types: tuple[str, ...]
    facts: tuple[Fact, ...]


def card(quads: QuadStore, page: str) -> Card | None:
    """Of the page's typed things the one that is named after it, else the first; None where it has none.

    Two lookups a hit: what such a thing says is read only for the one that is shown.
    """
    if not is_iri(page):
        return None
    graph = f"<{page}>"
    things: dict[str, list[str]] = {}
    for found in statements(quads.match(None, _TYPE, None, graph, _TYPED)):
        if found.subject.kind == "iri" and found.object.kind == "iri":
            things.setdefault(found.subject.text, []).append(found.object.text)
    if not things:
        return None
    iri = min(things, key=lambda name: not name.startswith(page))
    return _card(iri, tuple(things[iri]), list(statements(quads.match(f"<{iri}>", None, None, graph, _SAID))))


def _card(iri: str, types: tuple[str, ...], said: list[Statement]) -> Card:
    names = {found.predicate: found.object.text for found in said if found.object.kind == "literal"}
    label = next((names[predicate] for predicate in NAMING if predicate in names), "")
    facts = {
        found.predicate: Fact(found.predicate, found.object)
        for found in said
        if found.object.kind == "literal" and found.object.text != label and len(found.object.text) <= _LONGEST
    }
    return Card(iri, label, types, tuple(facts.values())[:_FACTS])
