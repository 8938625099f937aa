"""The things a page describes, by syntax.

They are read from the statements of a transformed page: a second look that `inspect` takes and no crawl pays for.
"""

from __future__ import annotations

import re

import msgspec

from quadloom.asking.sparql.prefixes import PREFIXES as COMMON
from quadloom.documents.syntaxes.terms import TYPE
from quadloom.model.document import Transformed

PREFIXES = {
    **{prefix: space for prefix, space in COMMON.items() if prefix not in ("dct", "schemas")},
    "enc": "http://purl.oclc.org/net/rss_2.0/enc#",
    "os": "http://a9.com/-/spec/opensearch/1.1/",
    "xml": "urn:quadloom:xml#",
    "xmla": "urn:quadloom:xml:attribute#",
}
"""Prefixes of the output: one for each common vocabulary, and those of feeds and plain XML."""

_PAGE_WORDS = frozenset(("html", "meta", "text"))  # every page has these; they describe the page, not things
_STATEMENT = re.compile(r"(\S+) <([^>]*)> (\S+)")


class InspectedItem(msgspec.Struct, frozen=True):
    """One thing. `id` is short: `<page>`, `#fragment`, a blank node, an IRI; `type` and `properties` have prefixes."""

    syntax: str
    type: str
    id: str
    properties: tuple[str, ...]


def items_of(transformed: Transformed) -> tuple[InspectedItem, ...]:
    """Things that have a type, and things that nothing else refers to, in the order of the page."""
    lines = transformed.nquads.decode("utf-8", "replace").split("\n")
    items: list[InspectedItem] = []
    start = 0
    for syntax, count in transformed.syntaxes:
        if syntax not in _PAGE_WORDS:
            items += _items(syntax, lines[start : start + count], transformed.url)
        start += count
    return tuple(items)


def _items(syntax: str, lines: list[str], page: str) -> list[InspectedItem]:
    things: dict[str, tuple[list[str], dict[str, None]]] = {}
    referred: set[str] = set()
    for line in lines:
        match = _STATEMENT.match(line)
        if match is None:
            continue
        subject, predicate, value = match.groups()
        types, properties = things.setdefault(subject, ([], {}))
        if f"<{predicate}>" == TYPE:
            types.append(short(value))
        else:
            properties[short(f"<{predicate}>")] = None
            if value[:1] in "<_" and value != subject:
                referred.add(value)
    return [
        InspectedItem(syntax, ", ".join(types), _name(subject, page), tuple(properties))
        for subject, (types, properties) in things.items()
        if types or subject not in referred
    ]


def short(term: str) -> str:
    """`schema:name` for an IRI in angle brackets; the IRI itself if its prefix is unknown."""
    value = term[1:-1]
    cut = max(value.rfind("#"), value.rfind("/"), value.rfind(":")) + 1
    space, local = value[:cut], value[cut:]
    if space.startswith("https://schema.org/"):
        space = "http://schema.org/"
    prefix = _SPACES.get(space)
    return f"{prefix}:{local}" if prefix and local else value


def _name(subject: str, page: str) -> str:
    if subject.startswith("_:"):
        return subject
    value = subject[1:-1]
    if value == page:
        return "<page>"
    return value[len(page) :] if value.startswith(f"{page}#") else value


_SPACES = {space: prefix for prefix, space in PREFIXES.items()}
