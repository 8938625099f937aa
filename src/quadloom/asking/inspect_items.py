"""The things a page describes: each subject of its data with type, name and properties, by the syntax that says so."""

from __future__ import annotations

import re

import msgspec

from quadloom.model.document import Transformed
from quadloom.syntaxes.terms import RDF, TYPE

PREFIXES = {
    "schema": "http://schema.org/",
    "og": "http://ogp.me/ns#",
    "article": "http://ogp.me/ns/article#",
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "ical": "http://www.w3.org/2002/12/cal/icaltzd#",
    "rss": "http://purl.org/rss/1.0/",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "enc": "http://purl.oclc.org/net/rss_2.0/enc#",
    "sioc": "http://rdfs.org/sioc/ns#",
    "cc": "http://creativecommons.org/ns#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "void": "http://rdfs.org/ns/void#",
    "prov": "http://www.w3.org/ns/prov#",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "xhv": "http://www.w3.org/1999/xhtml/vocab#",
    "os": "http://a9.com/-/spec/opensearch/1.1/",
    "xml": "urn:quadloom:xml#",
    "xmla": "urn:quadloom:xml:attribute#",
}
"""Prefixes of the output: those that most readers know."""

_PAGE_WORDS = frozenset(("html", "meta", "text"))  # every page has these; they describe the page, not things
_STATEMENT = re.compile(r"(\S+) <([^>]*)> (\S+)")


class Item(msgspec.Struct, frozen=True):
    """One thing. `id` is short: `<page>`, `#fragment`, a blank node, an IRI; `type` and `properties` have prefixes."""

    syntax: str
    type: str
    id: str
    properties: tuple[str, ...]


def items_of(transformed: Transformed) -> tuple[Item, ...]:
    """Things with a type, and those that nothing else refers to, in the order of the page."""
    lines = transformed.nquads.decode("utf-8", "replace").split("\n")
    items: list[Item] = []
    start = 0
    for syntax, count in transformed.syntaxes:
        if syntax not in _PAGE_WORDS:
            items += _items(syntax, lines[start : start + count], transformed.url)
        start += count
    return tuple(items)


def _items(syntax: str, lines: list[str], page: str) -> list[Item]:
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
        Item(syntax, ", ".join(types), _name(subject, page), tuple(properties))
        for subject, (types, properties) in things.items()
        if types or subject not in referred
    ]


def short(term: str) -> str:
    """`schema:name` for an IRI in angle brackets; without a known prefix the IRI itself."""
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
