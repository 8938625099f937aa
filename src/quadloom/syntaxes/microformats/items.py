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
class EmbeddedMarkup:
    """The value of an `e-*` property. The HTML is made on demand from the node: RDF only wants the text."""

    value: str
    node: LexborNode


Plain = str | Picture | EmbeddedMarkup


@dataclass(slots=True)
class MicroformatItem:
    """One microformat. `name` and `url` are its first `p-name` and `u-url`, explicit or implied: what it is worth as a
    value. `bare` tells that nothing inside it is marked."""

    types: list[str]
    id: str = ""
    properties: dict[str, list[Value]] = field(default_factory=dict)
    children: list[MicroformatItem] = field(default_factory=list)
    name: Value | None = None
    url: Value | None = None
    bare: bool = False


@dataclass(slots=True)
class NestedItem:
    """An item as the value of a property, with what it is worth to a reader who wants plain text."""

    item: MicroformatItem
    value: str | Picture
    markup: EmbeddedMarkup | None = None


Value = Plain | NestedItem


def plain(value: Value) -> str:
    """The text or address of any value."""
    while not isinstance(value, str):
        value = value.value
    return value
