"""Microformats, mf2 and classic: as the canonical JSON, and as RDF in well-known vocabularies.

The crawl reads only pages that have one of `ROOT_NAMES` as a class. `parse` follows
the specification; the RDF leaves out classes that only look like roots (`h-full` of a CSS framework).
"""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

from quadloom.documents.syntaxes.html import elements as html_elements
from quadloom.documents.syntaxes.html.elements import Elements
from quadloom.documents.syntaxes.html.tree import base_of, source_of
from quadloom.documents.syntaxes.microformats.classic import ROOTS
from quadloom.documents.syntaxes.microformats.page import MicroformatPage
from quadloom.documents.syntaxes.microformats.rdf import TYPES, UTILITIES, MicroformatWriter
from quadloom.documents.syntaxes.microformats.values import (
    EmbeddedMarkup,
    MicroformatItem,
    Picture,
    Value,
    html_of,
    raw_text_of,
    resolve,
    tokens_of,
)
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.sink import Sink
from quadloom.model.finding import Finding

ROOT_NAMES = tuple(sorted((*TYPES, *ROOTS)))

Json = str | list["Json"] | dict[str, "Json"]


def parse(body: bytes, *, url: str) -> dict[str, Json]:
    """`items`, `rels` and `rel-urls` by the microformats2 parsing specification. An empty reference stands for the base
    as it is written, with or without a slash after the host."""
    tree = LexborHTMLParser(source_of(body))
    base = base_of(tree, url)
    items: list[Json] = [_item_json(item, base) for item in MicroformatPage(tree, base).items()]
    rels, addresses = _relations(tree, base)
    return {"items": items, "rels": rels, "rel-urls": addresses}


def extract(body: bytes, *, url: str) -> bytes:
    """N-Triples of one page."""
    sink = Sink()
    tree = LexborHTMLParser(source_of(body))
    write(tree, sink, base=base_of(tree, url), roots=roots_in(html_elements.elements_of(tree)))
    return sink.nquads()


def read(context: Context) -> None:
    """All microformats of a page."""
    roots = roots_in(context.all_elements)
    if roots:
        context.findings += write(context.tree, context.sink, base=context.base, roots=roots)


def roots_in(elements: Elements) -> frozenset[str]:
    """The root classes that a page may use; none means that `write` has nothing to find.

    Only types with a meaning in RDF count: the form `h-*` alone is mostly the height class of a CSS framework.
    """
    return frozenset(elements.words("class", ROOT_NAMES))


def write(tree: LexborHTMLParser, sink: Sink, *, base: str, roots: frozenset[str]) -> list[Finding]:
    """Put the statements of a parsed page's microformats into the sink; what the limits dropped is a finding."""
    if not roots:
        return []
    selector = ",".join(f".{name}" for name in sorted(roots))
    page = MicroformatPage(tree, base, selector, UTILITIES)
    writer = MicroformatWriter(sink, base)
    for item in page.items():
        writer.item(item)
    if not page.dropped:
        return []
    message = f"{page.dropped} elements were nested or included beyond the limits and left out"
    return [Finding("microformats-limit", message, syntax="microformats")]


def _item_json(item: MicroformatItem, base: str) -> dict[str, Json]:
    found: dict[str, Json] = {
        "type": [*item.types],
        "properties": {
            name: [_value_json(value, base) for value in values] for name, values in item.properties.items()
        },
    }
    if item.id and not item.by_reference:
        found["id"] = item.id
    if item.children:
        found["children"] = [_item_json(child, base) for child in item.children]
    return found


def _value_json(value: Value, base: str) -> Json:
    if isinstance(value, str):
        return value
    if isinstance(value, EmbeddedMarkup):
        return {"value": value.value, "html": html_of(value.node, base)}
    if isinstance(value, Picture):
        found: dict[str, Json] = {"value": value.value}
        if value.alt is not None:
            found["alt"] = value.alt
        if value.srcset:
            found["srcset"] = {**value.srcset}
        return found
    found = _item_json(value.item, base)
    found["value"] = _value_json(value.value, base)
    if value.markup is not None:
        found["html"] = html_of(value.markup.node, base)
    return found


def _relations(tree: LexborHTMLParser, base: str) -> tuple[dict[str, Json], dict[str, Json]]:
    rels: dict[str, dict[str, None]] = {}
    kinds: dict[str, set[str]] = {}
    addresses: dict[str, dict[str, Json]] = {}
    for node in tree.css("a[rel][href],area[rel][href],link[rel][href]"):
        attributes = node.attributes
        tokens = tokens_of(attributes["rel"] or "")
        if not tokens:
            continue
        address = resolve(base, attributes["href"] or "")
        for token in tokens:
            rels.setdefault(token, {})[address] = None
        kinds.setdefault(address, set()).update(tokens)
        entry = addresses.setdefault(address, {})
        for name in ("hreflang", "media", "title", "type"):
            if name in attributes:
                entry.setdefault(name, attributes[name] or "")
        text = raw_text_of(node, alternatives=False)  # nothing is trimmed here, unlike in properties
        if text:
            entry.setdefault("text", text)
    for address, tokens_found in kinds.items():
        addresses[address]["rels"] = [*sorted(tokens_found)]
    return {name: [*found] for name, found in rels.items()}, {**addresses}
