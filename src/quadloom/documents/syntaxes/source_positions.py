"""Where in the source a statement was made. Each syntax answers with its own `StatementPlaces`."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

from quadloom.documents.syntaxes.sink import Sink

PlaceKind = Literal["type", "property", "value", "item"]


class SourcePlace(NamedTuple):
    """Byte offsets in the page as UTF-8. `end` = `start` if only the beginning is known."""

    start: int
    end: int


class StatementPlaces(Protocol):
    """Finds statements by their terms in N-Triples. `kind` says which part is wanted: the item, its type, the name of
    the property, or its value. None = not found."""

    def find(self, subject: str, predicate: str, value: str, kind: PlaceKind) -> SourcePlace | None: ...


class TracingSink(Sink):
    """A sink that remembers which element was at work when a statement was made (`at`, its number)."""

    __slots__ = ("at", "made_by")

    def __init__(self, blanks: int) -> None:
        super().__init__()
        self.blanks = blanks
        self.at = -1
        self.made_by: dict[tuple[str, str, str], int] = {}

    def add(self, subject: str, predicate: str, obj: str) -> None:
        self.made_by.setdefault((subject, predicate, obj), self.at)


@lru_cache(maxsize=4096)
def local_name(term: str) -> str:
    """The name of a term in N-Triples without its namespace; of an undeclared prefix the whole, `dct:subject`."""
    value = term.strip("<>")
    return value[max(value.rfind("#"), value.rfind("/")) + 1 :] or value


def type_place(source: bytes, start: int, end: int, term: str, attribute: bytes) -> SourcePlace:
    """The place of a type in an attribute of a tag; else the tag."""
    name = local_name(term)
    found = within(source, start, end, name, (attribute,)) if name else None
    return found or SourcePlace(start, end)


def within(source: bytes, start: int, end: int, name: str, attributes: tuple[bytes, ...]) -> SourcePlace | None:
    """The place of a word in the value of one of the attributes of a tag."""
    wanted = name.encode("utf-8", "replace")
    lower = source[start:end].lower()
    for attribute in attributes:
        at = lower.find(attribute)
        while at >= 0:
            found = source.find(wanted, start + at + len(attribute), end)
            if found >= 0:
                return SourcePlace(found, found + len(wanted))
            at = lower.find(attribute, at + 1)
    return None
