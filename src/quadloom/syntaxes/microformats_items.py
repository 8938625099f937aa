"""What a page says in microformats: items with properties, before they become JSON or RDF."""

from __future__ import annotations

from dataclasses import dataclass, field

from selectolax.lexbor import LexborNode


@dataclass(slots=True)
class Picture:
    """The value of an `img` that carries more than its address."""

    value: str
    alt: str | None = None
    srcset: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Markup:
    """The value of an `e-*` property. The HTML is made on demand from the node: RDF only wants the text."""

    value: str
    node: LexborNode


Plain = str | Picture | Markup


@dataclass(slots=True)
class Item:
    """One microformat. `name` and `url` are its first `p-name` and `u-url`, explicit or implied: what it is worth as a
    value. `bare` tells that nothing inside it is marked."""

    types: list[str]
    id: str = ""
    properties: dict[str, list[Value]] = field(default_factory=dict)
    children: list[Item] = field(default_factory=list)
    name: Value | None = None
    url: Value | None = None
    bare: bool = False


@dataclass(slots=True)
class Nested:
    """An item as the value of a property, with what it is worth to a reader who wants plain text."""

    item: Item
    value: str | Picture
    markup: Markup | None = None


Value = Plain | Nested


def plain(value: Value) -> str:
    """The text or address of any value."""
    while not isinstance(value, str):
        value = value.value
    return value
