"""A difference of statements for people: thing, property, before → after.

Parts without a name of their own (an offer, an address) are shown as values of the thing that they belong to: `offers:
34.00, EUR → 36.00, EUR`, not as two nodes that came and went.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import pyoxigraph as ox

from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.things.paths import BLANK, NAMES, RDF_TYPE, canonical, comparable, type_name, words
from quadloom.asking.things.profile import label_of
from quadloom.stores.protocols.quads import QuadStore

_MAX_PARTS = 4  # values shown of a part
_MAX_DEPTH = 2  # parts of parts
_MAX_VALUE = 300  # characters of a value

Node = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple


class PropertyChange(msgspec.Struct, frozen=True):
    """`before` is empty if the values are new, `after` if they are gone. `thing` is empty for what is no statement: a
    row of a query's answer."""

    thing: str
    iri: str  # of the thing; empty for a part without a name
    property: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        before, after = ", ".join(self.before), ", ".join(self.after)
        if self.property == "text" and not self.thing:
            return f"text: {before or 'nothing'} → {after or 'nothing'}"
        if not self.thing:
            return f"+ {after}" if after else f"- {before}"
        if not self.before:
            return f"{self.thing} · {self.property}: now {after}"
        return f"{self.thing} · {self.property}: {before} → {after or 'nothing'}"


def readable(
    added: Iterable[str], removed: Iterable[str], name_of: Callable[[str], str] = lambda _iri: ""
) -> tuple[PropertyChange, ...]:
    """`added`, `removed`: N-Quads lines. `name_of`: what else is known of an IRI, for things whose name did not change.
    Values that differ only in spacing, case or the spelling of a time are no change."""
    old, new = _Side(removed, name_of), _Side(added, name_of)
    names = {**old.names, **new.names}
    found: list[PropertyChange] = []
    for subject in dict.fromkeys((*old.things, *new.things)):
        if old.is_part(subject) or new.is_part(subject):
            continue  # shown as a value of the thing it belongs to
        before, after = old.things.get(subject, {}), new.things.get(subject, {})
        thing = names.get(subject) or name_of(subject) or _fallback(subject, before, after)
        for predicate in dict.fromkeys((*before, *after)):
            values = old.values(before.get(predicate, ()), names), new.values(after.get(predicate, ()), names)
            gone, come = _differing(*values)
            if gone or come:
                iri = "" if _is_blank(subject) else subject
                found.append(PropertyChange(thing, iri, words(predicate), gone, come))
    found += [PropertyChange("", "", "", (line,), ()) for line in old.other]
    found += [PropertyChange("", "", "", (), (line,)) for line in new.other]
    return tuple(found)


class _Side:
    """The statements that one version has and the other has not."""

    def __init__(self, lines: Iterable[str], name_of: Callable[[str], str]) -> None:
        self.things: dict[str, dict[str, list[Node]]] = {}
        self.names: dict[str, str] = {}
        self._name_of = name_of
        self._objects: set[str] = set()
        self.other: list[str] = []
        for quad in self._statements(list(lines)):
            if isinstance(quad.subject, ox.Triple):
                continue
            subject, predicate = quad.subject.value, canonical(quad.predicate.value)
            self.things.setdefault(subject, {}).setdefault(predicate, []).append(quad.object)
            if isinstance(quad.object, ox.Literal):
                if predicate in NAMES:
                    self.names.setdefault(subject, quad.object.value)
            elif isinstance(quad.object, ox.NamedNode | ox.BlankNode):
                self._objects.add(quad.object.value)

    def _statements(self, lines: list[str]) -> Iterator[ox.Quad]:
        """What cannot be read as a statement, such as a row of a query's answer, is in `other`."""
        for line in lines:
            try:
                yield from _quads([line])
            except (SyntaxError, ValueError):
                self.other.append(line)

    def is_part(self, node: str) -> bool:
        return _is_blank(node) and node in self._objects

    def values(self, nodes: Sequence[Node], names: dict[str, str]) -> list[str]:
        return [self._text(node, names, _MAX_DEPTH) for node in nodes]

    def _text(self, node: Node, names: dict[str, str], depth: int) -> str:
        if isinstance(node, ox.Literal):
            return node.value[:_MAX_VALUE]
        if isinstance(node, ox.Triple):
            return str(node)[:_MAX_VALUE]
        said = self.things.get(node.value, {}) if _is_blank(node.value) else {}
        # A part that came is in the store by now, as that of its thing; what it says is better, and goes with "before".
        name = names.get(node.value) or ("" if said else self._name_of(node.value))
        if name or not _is_blank(node.value):
            return name or shorten(node.value)
        parts = [
            self._text(value, names, depth - 1)
            for predicate, values in said.items()
            if predicate != RDF_TYPE and depth
            for value in values
        ][:_MAX_PARTS]
        return ", ".join(parts) or _fallback(node.value, said)


def _differing(before: list[str], after: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Values that only one side has, each once."""
    old, new = {comparable(text): text for text in before}, {comparable(text): text for text in after}
    gone = tuple(text for key, text in old.items() if key not in new)
    return gone, tuple(text for key, text in new.items() if key not in old)


def _fallback(node: str, *said: dict[str, list[Node]]) -> str:
    """The type of a thing without a name, or the end of its address."""
    for statements in said:
        for value in statements.get(RDF_TYPE, ()):
            if isinstance(value, ox.NamedNode):
                return type_name(value.value)
    return "A part" if _is_blank(node) else shorten(node)


def _is_blank(node: str) -> bool:
    return node.startswith(BLANK) or ":" not in node


class StoredNames:
    """Names of things in the store, each looked up once: its own name, or for a part that of its thing."""

    _MAX_LOOKUPS = 500

    def __init__(self, quads: QuadStore) -> None:
        self._quads = quads
        self._found: dict[str, str] = {}

    def __call__(self, iri: str) -> str:
        if iri not in self._found and len(self._found) < self._MAX_LOOKUPS:
            self._found[iri] = label_of(self._quads, iri) or (self._of_whole(iri) if _is_blank(iri) else "")
        return self._found.get(iri, "")

    def _of_whole(self, iri: str) -> str:
        for quad in _quads(self._quads.match(None, None, f"<{iri}>", None, 1)):
            whole = label_of(self._quads, quad.subject.value) if isinstance(quad.subject, ox.NamedNode) else ""
            return f"{whole or 'A thing'} › {words(quad.predicate.value)}"
        return ""


def _quads(lines: Iterable[str]) -> Iterable[ox.Quad]:
    return ox.parse("\n".join(lines).encode("utf-8", "replace"), ox.RdfFormat.N_QUADS, lenient=True)


def text_changes(before: str, after: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sentences or lines that are gone, and those that came, each in its order. Takes time with the length only."""
    old, new = _sentences(before), _sentences(after)
    had, has = set(old), set(new)
    return tuple(line for line in old if line not in has), tuple(line for line in new if line not in had)


def _sentences(text: str) -> list[str]:
    """Split after `.`, `!`, `?` with a space, and at line ends."""
    for mark in (". ", "! ", "? "):
        text = text.replace(mark, f"{mark.rstrip()}\n")
    return list(dict.fromkeys(line for line in (" ".join(line.split()) for line in text.split("\n")) if line))
