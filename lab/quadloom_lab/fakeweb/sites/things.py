"""A described thing, independent of syntax: a tree of schema.org facts.

Each serialiser (JSON-LD, Microdata, RDFa, Turtle, …) walks the same tree, so all syntaxes state the same facts and a
test can compare them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

SCHEMA = "http://schema.org/"  # the JSON-LD context of schema.org maps its terms to http, so all other syntaxes do too


class Iri(NamedTuple):
    """The name of another thing."""

    value: str


class DateValue(NamedTuple):
    """A date (`2026-05-01`) or a date and time, as text of its XML Schema type."""

    value: str

    @property
    def datatype(self) -> str:
        return "dateTime" if "T" in self.value else "date"


class Fact(NamedTuple):
    name: str
    value: Value


class Thing(NamedTuple):
    """`iri` is empty for things without a name of their own (they become blank nodes)."""

    type: str
    iri: str
    facts: tuple[Fact, ...]

    def text(self, name: str) -> str:
        """First value of a fact as words, or the empty string."""
        for fact in self.facts:
            if fact.name == name:
                return words_of(fact.value)
        return ""


Value: TypeAlias = "str | int | float | DateValue | Iri | Thing"


def words_of(value: Value) -> str:
    if isinstance(value, Thing):
        return value.text("name")
    if isinstance(value, (Iri, DateValue)):
        return value.value
    return str(value)


def count(thing: Thing) -> int:
    """Typed nodes in the tree."""
    return 1 + sum(count(fact.value) for fact in thing.facts if isinstance(fact.value, Thing))


def statements(thing: Thing) -> int:
    """RDF triples that the tree stands for."""
    return 1 + len(thing.facts) + sum(statements(fact.value) for fact in thing.facts if isinstance(fact.value, Thing))


def nodes(thing: Thing) -> Iterator[Thing]:
    yield thing
    for fact in thing.facts:
        if isinstance(fact.value, Thing):
            yield from nodes(fact.value)
