"""The things that a page describes, as a graph of items: what the checks walk over."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

import msgspec

from quadloom.documents.checks.vocabulary import ItemKind, Vocabulary
from quadloom.documents.syntaxes.source_positions import local_name
from quadloom.documents.syntaxes.terms import RDF, TYPE, XSD
from quadloom.model.finding import Severity
from quadloom.model.quads import Triple

Target = Literal["type", "property", "value", "item"]
_LIST = frozenset((f"<{RDF}first>", f"<{RDF}rest>"))
_MAX_PATH = 12
_MAIN_ENTITY = frozenset(("mainEntity", "about"))
local = local_name
_ARROW = " › "


class Stated(NamedTuple):
    """One statement about an item: terms in N-Triples, and the syntax that made it."""

    predicate: str
    value: str
    syntax: str


class Item(msgspec.Struct, eq=False):
    """One subject with all that the page says about it, whatever the syntax."""

    subject: str
    syntax: str  # that mentions it first
    types: list[str] = []
    stated: list[tuple[str, str, str]] = []  # as `Stated`; plain, since most are looked at once
    kind: ItemKind = ItemKind()  # set before the checks
    _names: frozenset[str] | None = None

    def values(self, name: str) -> list[str]:
        """Values of schema.org's property of this name."""
        terms = _terms(name)
        return [value for predicate, value, _ in self.stated if predicate in terms]

    def texts(self, name: str) -> list[str]:
        """Those that are literals, as plain text."""
        return [text_of(value) for value in self.values(name) if value.startswith('"')]

    @property
    def names(self) -> frozenset[str]:
        """Local names of the properties it has."""
        names = self._names
        if names is None:
            names = self._names = frozenset([local(one[0]) for one in self.stated])
        return names


_HTTP, _HTTPS = "<http://schema.org/", "<https://schema.org/"


@lru_cache(maxsize=512)
def _terms(name: str) -> tuple[str, str]:
    return f"{_HTTP}{name}>", f"{_HTTPS}{name}>"


class Problem(NamedTuple):
    """A defect before its place is known. `stated` is the statement it is about, as far as it is about one; its syntax
    is the one that states it."""

    item: Item
    stated: Stated
    target: Target
    code: str
    severity: Severity
    message: str
    found: str = ""
    expected: str = ""
    advice: str = ""


class Items:
    """All items of a page, by subject, in the order of the page."""

    def __init__(self, slices: Sequence[tuple[str, Sequence[Triple]]]) -> None:
        items: dict[str, Item] = {}
        self.by_subject = items
        self._slices = slices
        for syntax, statements in slices:
            subject, item = "", None
            for of, predicate, value in statements:
                if of != subject or item is None:
                    subject = of
                    item = items.get(of)
                    if item is None:
                        item = items[of] = Item(of, syntax)
                if predicate == TYPE:
                    item.types.append(value)
                else:
                    item.stated.append((predicate, value, syntax))

    def path(self, item: Item, predicate: str = "") -> str:
        """`Product › offers › price`: the way from an item that nothing refers to."""
        names = [local(predicate)] if predicate else []
        seen = {item.subject}
        holders = self.holders
        while (holder := holders.get(item.subject)) is not None and len(names) < _MAX_PATH:
            above, through = holder
            if above.subject in seen:
                break
            seen.add(above.subject)
            if through not in _LIST:
                names.append(local(through))
            item = above
        names.append(item.kind.type or "item")
        return _ARROW.join(reversed(names))

    def holder(self, item: Item) -> Item | None:
        """The first item that has this one as a value; through a list, the item that has the list."""
        above = item
        for _ in range(_MAX_PATH):
            found = self.holders.get(above.subject)
            if found is None:
                return None if above is item else above
            above, through = found
            if through not in _LIST:
                return above
        return None

    def stands_alone(self, item: Item) -> bool:
        """Whether an item is part of no other. What a page has as its main entity stands alone."""
        held = self.holders.get(item.subject)
        return held is None or (local(held[1]) in _MAIN_ENTITY and held[0].kind.type.endswith("Page"))

    def is_within(self, item: Item, kinds: Container[str]) -> bool:
        """Whether an item is part of one whose types in schema.org are among these, however deep."""
        above: Item | None = item
        for _ in range(_MAX_PATH):
            above = self.holder(above) if above is not None else None
            if above is None:
                return False
            if any(name in kinds for name in above.kind.shape or ()):
                return True
        return False

    @cached_property
    def holders(self) -> dict[str, tuple[Item, str]]:
        """By subject: the first item that has this one as a value, and its property."""
        items = self.by_subject
        found: dict[str, tuple[Item, str]] = {}
        for _, statements in self._slices:
            for subject, predicate, value in statements:
                if value[0] == '"' or value not in items or value in found or value == subject:
                    continue
                # What has no type is mostly the page itself, which is no item of its own.
                if predicate != TYPE and (items[subject].types or predicate in _LIST):
                    found[value] = (items[subject], predicate)
        return found


def full_shape(item: Item, schema: Vocabulary) -> tuple[str, ...] | None:
    """The shape with the types that `additionalType` names; None if one of these is not of schema.org. Asked only
    before something is reported, since few items have it."""
    shape = item.kind.shape
    if shape and "additionalType" in item.names:
        for value in item.values("additionalType"):
            name = local(value) if value[0] == "<" else text_of(value).rpartition("/")[2] if value[0] == '"' else ""
            if name not in schema.types:
                return None
            shape = (*shape, name)
    return shape


_DOUBLE = f'"^^<{XSD}double>'


def text_of(literal: str) -> str:
    """The text of a literal in N-Triples. A double is written as people do: JSON's 4.5 is `4.5E0` in RDF."""
    if literal[-1] == '"' and "\\" not in literal:
        return literal[1:-1]
    text = literal[1 : literal.rindex('"')]
    if literal[-1] == ">" and literal.endswith(_DOUBLE):
        return _decimal(text)
    if "\\" not in text:
        return text
    return (
        text.replace("\\\\", "\x00").replace('\\"', '"').replace("\\n", "\n").replace("\\r", "\r").replace("\x00", "\\")
    )


def _decimal(text: str) -> str:
    try:
        return repr(float(text)).removesuffix(".0")
    except ValueError:
        return text
