"""What a found page is about, in a few words: its first thing with a type, and some facts of it."""

from __future__ import annotations

import msgspec

from quadloom.asking.entity import Value
from quadloom.asking.prefixes import PREFIXES
from quadloom.stores.protocols import QuadStore
from quadloom.web.labels import NAMING
from quadloom.web.terms import Statement, is_iri, statements

_TYPE = f"<{PREFIXES['rdf']}type>"
_TYPED = 40  # typed things of a page that are looked at
_SAID = 40  # statements of one thing
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
    """The thing that has the most to say among the page's typed things; None where it has none."""
    if not is_iri(page):
        return None
    graph = f"<{page}>"
    things: dict[str, list[str]] = {}
    for found in statements(quads.match(None, _TYPE, None, graph, _TYPED)):
        if found.subject.kind == "iri" and found.object.kind == "iri":
            things.setdefault(found.subject.text, []).append(found.object.text)
    best: tuple[str, list[Statement]] = ("", [])
    for iri in list(things)[:8]:
        said = list(statements(quads.match(f"<{iri}>", None, None, graph, _SAID)))
        if len(said) > len(best[1]):
            best = (iri, said)
    iri, said = best
    return _card(iri, tuple(things[iri]), said) if iri else None


def _card(iri: str, types: tuple[str, ...], said: list[Statement]) -> Card:
    names = {found.predicate: found.object.text for found in said if found.object.kind == "literal"}
    label = next((names[predicate] for predicate in NAMING if predicate in names), "")
    facts = {
        found.predicate: Fact(found.predicate, found.object)
        for found in said
        if found.object.kind == "literal" and found.object.text != label and len(found.object.text) <= _LONGEST
    }
    return Card(iri, label, types, tuple(facts.values())[:_FACTS])
