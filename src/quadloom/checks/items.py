"""The things that a page describes, as a graph of items: what the checks walk over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

from quadloom.model.finding import Severity
from quadloom.syntaxes.places import local_name
from quadloom.syntaxes.terms import RDF, TYPE

Target = Literal["type", "property", "value", "item"]
_LIST = frozenset((f"<{RDF}first>", f"<{RDF}rest>"))
_MAX_PATH = 12
local = local_name
_ARROW = " › "


class Stated(NamedTuple):
    """One statement about an item: terms in N-Triples, and the syntax that made it."""

    predicate: str
    value: str
    syntax: str


class Item:
    """One subject with all that the page says about it, whatever the syntax."""

    __slots__ = ("_names", "shape", "stated", "subject", "syntax", "types")

    def __init__(self, subject: str, syntax: str) -> None:
        self.subject = subject
        self.syntax = syntax  # that mentions it first
        self.types: list[str] = []
        self.stated: list[tuple[str, str, str]] = []  # as `Stated`; plain, since most are looked at once
        self.shape: tuple[str, ...] | None = (
            None  # local names of its types in the main vocabulary, None = not all known
        )
        self._names: frozenset[str] | None = None

    def values(self, name: str) -> list[str]:
        """Values of schema.org's property of this name."""
        if name not in self.names:
            return []
        terms = (f"{_HTTP}{name}>", f"{_HTTPS}{name}>")
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

    @property
    def type(self) -> str:
        return local(self.types[0]) if self.types else ""


_HTTP, _HTTPS = "<http://schema.org/", "<https://schema.org/"


class Problem(NamedTuple):
    """A defect before its place is known. `predicate` and `value` name the statement, empty = the item itself."""

    code: str
    severity: Severity
    message: str
    item: Item
    target: Target
    predicate: str = ""
    value: str = ""
    found: str = ""
    expected: str = ""
    advice: str = ""
    syntax: str = ""


class AddProblem(Protocol):
    """`ProblemList.add`."""

    def __call__(
        self,
        item: Item,
        code: str,
        severity: Severity,
        message: str,
        target: Target,
        predicate: str = "",
        value: str = "",
        found: str = "",
        expected: str = "",
        advice: str = "",
        syntax: str = "",
    ) -> None: ...


class ProblemList:
    """Where checks put what they find."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems

    def add(
        self,
        item: Item,
        code: str,
        severity: Severity,
        message: str,
        target: Target,
        predicate: str = "",
        value: str = "",
        found: str = "",
        expected: str = "",
        advice: str = "",
        syntax: str = "",
    ) -> None:
        stated_in = syntax or item.syntax
        self._problems.append(
            Problem(code, severity, message, item, target, predicate, value, found, expected, advice, stated_in)
        )


class Items:
    """All items of a page, by subject, in the order of the page."""

    def __init__(self, slices: Iterable[tuple[str, Sequence[str]]]) -> None:
        items: dict[str, Item] = {}
        self.by_subject = items
        self._holders: dict[str, tuple[Item, str]] | None = None
        for syntax, statements in slices:
            subject, item = "", None
            for statement in statements:
                of, predicate, value = statement.split(" ", 2)
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
        holders = self._held_by()
        while (holder := holders.get(item.subject)) is not None and len(names) < _MAX_PATH:
            above, through = holder
            if above.subject in seen:
                break
            seen.add(above.subject)
            if through not in _LIST:
                names.append(local(through))
            item = above
        names.append(item.type or "item")
        return _ARROW.join(reversed(names))

    def holder(self, item: Item) -> Item | None:
        """The first item that has this one as a value; through a list, the item that has the list."""
        above = item
        for _ in range(_MAX_PATH):
            found = self._held_by().get(above.subject)
            if found is None:
                return None if above is item else above
            above, through = found
            if through not in _LIST:
                return above
        return None

    def _held_by(self) -> dict[str, tuple[Item, str]]:
        if self._holders is None:
            self._holders = {}
            for item in self.by_subject.values():
                for predicate, value, _ in item.stated:
                    # What has no type is mostly the page itself, which is no item of its own.
                    if (
                        value[0] != '"'
                        and value != item.subject
                        and value in self.by_subject
                        and _holds(item, predicate)
                    ):
                        self._holders.setdefault(value, (item, predicate))
        return self._holders


def _holds(item: Item, predicate: str) -> bool:
    return bool(item.types) or predicate in _LIST


def text_of(literal: str) -> str:
    """The text of a literal in N-Triples."""
    text = literal[1 : literal.rindex('"')]
    if "\\" not in text:
        return text
    return (
        text.replace("\\\\", "\x00").replace('\\"', '"').replace("\\n", "\n").replace("\\r", "\r").replace("\x00", "\\")
    )
