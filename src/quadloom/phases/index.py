"""INDEX, the part without I/O: from what a page says to what the stores keep of it."""

from __future__ import annotations

import re
from typing import NamedTuple

from quadloom.analysis.words import analyse_fields
from quadloom.model.document import Transformed
from quadloom.model.page import Page
from quadloom.model.quads import Quads
from quadloom.model.url import host_of, site_of
from quadloom.stores.protocols.text import TextDocument
from quadloom.syntaxes.rdf.blank_nodes import skolemise
from quadloom.syntaxes.rdf.links import link_quads

# One scan per page finds every literal; terms are N-Quads, so a quote inside is always escaped.
# Possessive runs instead of one alternative per character: 31 against 15 µs a page.
_LITERAL = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?')
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "b": "\b", "f": "\f", "'": "'"}
_WORDY = {"", "http://www.w3.org/2001/XMLSchema#string", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"}


# schema.org's terms in one scheme, as predicate or object and as datatype. A literal that looks like a statement stays
# as it is: `_respelled` looks at the place in the line, and a datatype ends the object.
_SCHEMA_TERMS = {scheme: re.compile(rb"<%b(?=://schema\.org/\w+> )" % scheme) for scheme in (b"http", b"https")}
_SCHEMA_TYPES = {
    scheme: re.compile(rb'"\^\^<%b(?=://schema\.org/\w+> <[^<>"\s]*> \.$)' % scheme, re.MULTILINE)
    for scheme in (b"http", b"https")
}


def page_quads(transformed: Transformed, graph: str, links: str, schema_org: str = "as-written") -> Quads:
    """The page's graph: `page_statements` with blank nodes skolemised, lines sorted."""
    nquads = page_statements(transformed, graph, links, schema_org)
    return Quads.of(graph, skolemise(nquads, graph)) if nquads else Quads.of(graph, b"")


def page_statements(transformed: Transformed, graph: str, links: str, schema_org: str = "as-written") -> bytes:
    """What the page states and, by setting, its links, as N-Quads; the same line may occur twice.

    `schema_org`: the scheme of that vocabulary's terms, which pages write either way."""
    nquads = transformed.nquads
    if schema_org != "as-written":
        nquads = _respelled(nquads, b"http" if schema_org == "https" else b"https", schema_org.encode())
    if links != "none" and transformed.links:
        statements = link_quads(transformed.links, "all" if links == "all" else "typed")
        if statements:
            end = f" <{graph}> .\n"
            nquads += (end.join(statements) + end).encode("utf-8", "replace")
    return nquads


def _respelled(nquads: bytes, old: bytes, new: bytes) -> bytes:
    """Terms of schema.org with the scheme `old` get the scheme `new`."""
    if b"<" + old + b"://schema.org/" not in nquads:
        return nquads
    written = b"<" + new

    def respell(match: re.Match[bytes]) -> bytes:
        at = match.start()
        line = nquads.rfind(b"\n", 0, at) + 1
        is_term = nquads[at - 1 : at] == b" " and nquads.count(b" ", line, at) <= 2
        return written if is_term else match.group()

    nquads_with_terms = _SCHEMA_TERMS[old].sub(respell, nquads)
    if b'"^^<' + old + b"://schema.org/" not in nquads:
        return nquads_with_terms
    return _SCHEMA_TYPES[old].sub(b'"^^' + written, nquads_with_terms)


class IndexedText(NamedTuple):
    """What the text index gets of a page. `left_out`: characters of its literals beyond `limits.literal_chars`."""

    document: TextDocument
    left_out: int


def text_document(transformed: Transformed, page: Page, quads: Quads, most: int) -> IndexedText:
    """Words and facets of a page. `most`: characters of its literals."""
    text = quads.nquads.decode("utf-8")
    host = host_of(page.final_url)
    literals, left_out = words_of(text, most)
    texts = {
        "title": transformed.title,
        "headings": transformed.headings,
        "description": transformed.description,
        "links": transformed.link_texts,
        "images": transformed.image_texts,
        "body": transformed.text,
        "literals": literals,
    }
    analysed = analyse_fields({name: text for name, text in texts.items() if text}, transformed.language)
    document = TextDocument(
        id=quads.graph,
        **texts,
        analysed=analysed,
        types=spelled_as_in(transformed.types, text),
        vocabularies=vocabularies_of(text),
        site=site_of(host),
        host=host,
        language=analysed.language,
        kind=transformed.kind,
        fetched_at=page.fetched_at,
    )
    return IndexedText(document, left_out)


def spelled_as_in(types: tuple[str, ...], nquads: str) -> tuple[str, ...]:
    """The types with schema.org's in the scheme that the stored statements have."""
    found: dict[str, None] = {}
    for name in types:
        if "://schema.org/" in name and f"<{name}>" not in nquads:
            name = "https" + name[4:] if name.startswith("http:") else "http" + name[5:]
        found[name] = None
    return tuple(found)


def words_of(nquads: str, most: int) -> tuple[str, int]:
    """Texts of all word-like literals, in order, each once, up to `most` characters; and how many characters of further
    literals were left out."""
    seen: dict[str, None] = {}
    size = left_out = 0
    for match in _LITERAL.finditer(nquads):
        text = match.group(1)
        if (match.group(3) or "") not in _WORDY or text in seen or not text:
            continue
        size += len(text)
        if size > most:
            left_out += len(text)
        else:
            seen[text] = None
    joined = "\n".join(seen)
    return (_ESCAPE.sub(_unescape, joined) if "\\" in joined else joined), left_out


def vocabularies_of(nquads: str) -> tuple[str, ...]:
    """Namespaces of the predicates in use: up to the last # or /."""
    predicates = {line.split(" ", 2)[1] for line in nquads.split("\n") if line}
    return tuple(sorted({namespace(predicate[1:-1]) for predicate in predicates}))


def namespace(iri: str) -> str:
    """`http://schema.org/name` → `http://schema.org/`."""
    cut = max(iri.rfind("#"), iri.rfind("/"))
    return iri[: cut + 1] if cut > 7 else iri


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "uU":
        return chr(min(int(code[1:], 16), 0x10FFFF))
    return _SIMPLE.get(code, code)
