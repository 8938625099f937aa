"""What a version of a page says of its things, for people and by itself: nothing is looked up in the store, which has
the present only. A part without an IRI belongs to its thing: `offers › price` of a product, not of a node that has the
price of today.
"""

from __future__ import annotations

from collections.abc import Container

import pyoxigraph as ox

from quadloom.asking.changes.readable_changes import PropertyChange
from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.things.comparing import PRICES
from quadloom.asking.things.paths import BLANK, CURRENCIES, RDF_TYPE, best_name, canonical, comparable, type_name, words

_MAX_DEPTH = 4  # parts of parts
_MAX_VALUE = 300  # characters
_MAX_STATEMENTS = 50_000  # of a version

Node = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple
ThingKey = tuple[str, str]  # IRI and name; the name is empty if there is an IRI, so that it may change
Described = dict[tuple[ThingKey, str], dict[str, str]]  # thing and property → values, by what makes them differ


class DescribedVersion:
    """`only`: these things; None = all that the version describes."""

    def __init__(self, nquads: bytes, only: Container[str] | None = None) -> None:
        self._said: dict[str, list[tuple[str, Node]]] = {}
        self._parts: set[str] = set()
        for number, quad in enumerate(ox.parse(nquads, ox.RdfFormat.N_QUADS, lenient=True)):
            if number >= _MAX_STATEMENTS:
                break
            if not isinstance(quad.subject, ox.Triple):
                self._said.setdefault(quad.subject.value, []).append((canonical(quad.predicate.value), quad.object))
            if not isinstance(quad.object, ox.Literal | ox.Triple) and _is_part(quad.object.value):
                self._parts.add(quad.object.value)
        self.names: dict[ThingKey, str] = {}
        self.values: Described = {}
        for subject in self._said:
            if subject not in self._parts if only is None else subject in only:
                name = self._name(subject)
                key = ("", name) if _is_part(subject) else (subject, "")
                self.names[key] = name
                self._walk(key, subject, (), frozenset((subject,)))

    def _walk(self, thing: ThingKey, node: str, before: tuple[str, ...], above: frozenset[str]) -> None:
        said = self._said.get(node, ())
        currency = next(
            (value.value for name, value in said if name in CURRENCIES and isinstance(value, ox.Literal)), ""
        )
        for predicate, value in said:
            path = (*before, words(predicate))
            if isinstance(value, ox.NamedNode | ox.BlankNode) and value.value in self._said and _is_part(value.value):
                if value.value not in above and len(path) < _MAX_DEPTH:
                    self._walk(thing, value.value, path, above | {value.value})
            elif predicate != RDF_TYPE or not before:
                text = self._text(value)
                if currency and predicate.rpartition("/")[2] in PRICES:
                    text = f"{text} {currency}"
                self.values.setdefault((thing, " › ".join(path)), {}).setdefault(comparable(text), text)

    def _text(self, value: Node) -> str:
        if isinstance(value, ox.Literal | ox.Triple):
            return (value.value if isinstance(value, ox.Literal) else str(value))[:_MAX_VALUE]
        return best_name(self._literals(value.value)) or shorten(value.value)

    def _literals(self, node: str) -> dict[str, str]:
        return {name: value.value for name, value in self._said.get(node, ()) if isinstance(value, ox.Literal)}

    def _name(self, node: str) -> str:
        """The name that this version gives, else the type, else the end of the address."""
        kind = next((value for name, value in self._said[node] if name == RDF_TYPE), None)
        name = best_name(self._literals(node)) or (type_name(kind.value) if isinstance(kind, ox.NamedNode) else "")
        return name or ("A part" if _is_part(node) else shorten(node))


def changes_between(old: DescribedVersion, new: DescribedVersion) -> tuple[PropertyChange, ...]:
    """Thing, property, before → after. Values that differ only in spacing, case or spelling of a time are no change."""
    found = []
    for key in dict.fromkeys((*old.values, *new.values)):
        before, after = old.values.get(key, {}), new.values.get(key, {})
        gone = tuple(text for same, text in before.items() if same not in after)
        come = tuple(text for same, text in after.items() if same not in before)
        if gone or come:
            thing, property = key
            name = new.names.get(thing) or old.names.get(thing, "")
            found.append(PropertyChange(name, thing[0], property, gone, come))
    return tuple(found)


def _is_part(node: str) -> bool:
    return node.startswith(BLANK) or ":" not in node
