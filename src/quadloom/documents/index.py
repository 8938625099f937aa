"""INDEX, the part without I/O: from what a page says to what the stores keep of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from quadloom.documents.syntaxes.rdf.blank_nodes import CanonicalLines, canonical
from quadloom.documents.syntaxes.rdf.links import link_triples
from quadloom.documents.syntaxes.terms import RDF, XSD
from quadloom.documents.words.analysis import analyse_fields
from quadloom.documents.words.simhash import simhash
from quadloom.model.document import Transformed
from quadloom.model.page import Page
from quadloom.model.quads import NamedTriple, Quads, Triple
from quadloom.model.text import TextDocument
from quadloom.model.url import host_of, site_of

try:
    from quadloom.documents.native import records as _native
except ImportError:  # it was not built: there is no compiler
    _native = None  # type: ignore[assignment]

# A literal within a triple term; elsewhere an object is one. A quote inside is always escaped.
_LITERAL = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"(?:@[A-Za-z0-9-]+|\^\^<[^>]*>)?')
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "b": "\b", "f": "\f", "'": "'"}
_WORDY = frozenset(("^^<>", f"^^<{XSD}string>", f"^^<{RDF}langString>"))  # datatypes of words

# A term of schema.org, as predicate, object or datatype.
_SCHEMA_TERMS = {
    scheme: re.compile(rf'((?:".*"\^\^)?<){scheme}(://schema\.org/\w+>)', re.ASCII | re.DOTALL)
    for scheme in ("http", "https")
}
_MOST_TERMS = 4096
_MEMORABLE = 80  # characters; the longest name of schema.org has 70 with its namespace


class PageStatements(NamedTuple):
    """What a page states, by its own graph and graphs that it names; the same statement may be in both."""

    triples: Sequence[Triple]
    named: Sequence[NamedTriple]


class IndexedGraph(NamedTuple):
    """The statements of a page as they are stored: as N-Quads, and in columns. `triples` still have blank nodes."""

    quads: Quads
    stored: CanonicalLines
    triples: Sequence[Triple]


def page_graph(transformed: Transformed, graph: str, links: str, schema_org: str = "as-written") -> IndexedGraph:
    """The page's graph: `page_statements` with blank nodes skolemised, lines sorted."""
    triples, named = page_statements(transformed, links, schema_org)
    if named:
        own = f"<{graph}>"  # the page's own graph under its name: the same statement there is no other one
        triples = [*dict.fromkeys((*triples, *[one[:3] for one in named if one[3] == own]))]
        triples += [one[:3] for one in named if one[3] != own]
    stored = canonical(triples, graph)
    return IndexedGraph(Quads.counted(graph, stored.nquads, len(stored.objects)), stored, triples)


def page_statements(transformed: Transformed, links: str, schema_org: str = "as-written") -> PageStatements:
    """What the page states and, by setting, its links.

    `schema_org`: the scheme of that vocabulary's terms, which pages write either way."""
    triples: Sequence[Triple] = transformed.triples
    named: Sequence[NamedTriple] = transformed.named
    if schema_org != "as-written":
        spelling = _spelling(schema_org)
        triples = spelling.triples(triples)
        named = [(*spelling.triple(one[:3]), one[3]) for one in named]
    if links != "none" and transformed.links:
        stated = link_triples(transformed.links, "all" if links == "all" else "typed")
        if stated:
            triples = [*triples, *stated]
    return PageStatements(triples, named)


class SchemaSpelling:
    """Gives predicates, objects and datatypes of schema.org one scheme. A literal that looks like a term stays as it
    is, and so does a subject: it is a thing, not a term in use."""

    __slots__ = ("_known", "_new", "_old", "_pattern", "_scheme")

    def __init__(self, scheme: str) -> None:
        self._known: dict[str, str] = {}  # names as they are spelled here: pages share them
        other = "http" if scheme == "https" else "https"
        self._scheme = scheme
        self._new = f"<{scheme}://schema.org/"
        self._old = f"<{other}://schema.org/"
        self._pattern = _SCHEMA_TERMS[other]

    def triples(self, triples: Sequence[Triple]) -> Sequence[Triple]:
        """Each once, as before."""
        concerned = _places_using(triples, self._old)
        if not concerned:
            return triples
        spelled = [*triples]
        for number in concerned:
            spelled[number] = self.triple(spelled[number])
        # Only what a page writes both ways can now be there twice.
        return [*dict.fromkeys(spelled)] if _places_using(triples, self._new) else spelled

    def triple(self, one: Triple) -> Triple:
        subject, predicate, obj = one
        return subject, self.term(predicate), self.term(obj)

    def term(self, term: str) -> str:
        known = self._known.get(term)
        if known is not None:
            return known
        found = self._pattern.fullmatch(term)
        spelled = f"{found.group(1)}{self._scheme}{found.group(2)}" if found is not None else term
        if len(term) <= _MEMORABLE and term[:1] == "<":
            if len(self._known) >= _MOST_TERMS:
                self._known.clear()
            self._known[term] = spelled
        return spelled


def _places_using(triples: Sequence[Triple], beginning: str) -> list[int]:
    """Statements whose predicate or object begins so, or whose object has such a datatype."""
    datatype = f'"^^{beginning}'
    if _native is not None:
        return _native.places_using(tuple(triples), beginning, datatype)
    return [
        number
        for number, (_, predicate, obj) in enumerate(triples)
        if predicate.startswith(beginning) or obj.startswith(beginning) or (obj[-1:] == ">" and datatype in obj)
    ]


@lru_cache(maxsize=2)
def _spelling(scheme: str) -> SchemaSpelling:
    return SchemaSpelling(scheme)


class IndexedText(NamedTuple):
    """What the text index gets of a page. `left_out`: characters of its literals beyond `limits.literal_chars`."""

    document: TextDocument
    left_out: int


def text_document(
    transformed: Transformed, page: Page, graph: IndexedGraph, most: int, schema_org: str = "as-written"
) -> IndexedText:
    """Words and facets of a page. `most`: characters of its literals."""
    host = host_of(page.final_url)
    literals, left_out = words_in(graph.stored.objects, most)
    document = TextDocument(
        id=graph.quads.graph,
        title=transformed.title,
        headings=transformed.headings,
        description=transformed.description,
        links=transformed.link_texts,
        images=transformed.image_texts,
        body=transformed.text,
        main_spans=transformed.main_spans,
        literals=literals,
        types=_types(transformed, schema_org),
        vocabularies=vocabularies_of(graph.triples),
        site=site_of(host),
        host=host,
        kind=transformed.kind,
        fetched_at=page.fetched_at,
        canonical=transformed.canonical if transformed.canonical != graph.quads.graph else "",
    )
    texts = document.texts
    analysed = analyse_fields(texts, transformed.language)
    document = replace(document, analysed=analysed, language=analysed.language, simhash=simhash(texts.get("body", "")))
    return IndexedText(document, left_out)


def _types(transformed: Transformed, schema_org: str) -> tuple[str, ...]:
    """Types as the stored statements spell them."""
    if schema_org == "as-written":
        return transformed.types
    spelling = _spelling(schema_org)
    return tuple(dict.fromkeys([spelling.term(f"<{name}>")[1:-1] for name in transformed.types]))


def words_in(objects: list[str], most: int) -> tuple[str, int]:
    """`words_of` the literals among the objects."""
    found = _native.literal_words(objects, most, _WORDY) if _native is not None else None
    if found is None:
        return words_of(literals_in(objects), most)
    joined, left_out = found
    return (_ESCAPE.sub(_unescape, joined) if "\\" in joined else joined), left_out


def literals_in(objects: Iterable[str]) -> list[str]:
    """Those of the objects that are literals, and literals within triple terms."""
    found: list[str] = []
    for obj in objects:
        if obj[:1] == '"':
            found.append(obj)
        elif obj[:2] == "<<":
            found += _LITERAL.findall(obj)
    return found


def words_of(literals: Iterable[str], most: int) -> tuple[str, int]:
    """Texts of all word-like literals, in order, each once, up to `most` characters; and how many characters of further
    literals were left out."""
    seen: dict[str, None] = {}
    size = left_out = 0
    for one in literals:
        if one[-1] == '"':
            text = one[1:-1]
        else:
            end = one.rindex('"')
            if one[end + 1] == "^" and one[end + 1 :] not in _WORDY:
                continue
            text = one[1:end]
        if not text or text in seen:
            continue
        size += len(text)
        if size > most:
            left_out += len(text)
        else:
            seen[text] = None
    joined = "\n".join(seen)
    return (_ESCAPE.sub(_unescape, joined) if "\\" in joined else joined), left_out


def vocabularies_of(triples: Sequence[Triple]) -> tuple[str, ...]:
    """Namespaces of the predicates in use: up to the last # or /."""
    if _native is not None:
        predicates = _native.predicates(tuple(triples))
    else:
        predicates = {predicate for _, predicate, _ in triples}
    return tuple(sorted({namespace(predicate[1:-1]) for predicate in predicates}))


@lru_cache(maxsize=4096)
def namespace(iri: str) -> str:
    """`http://schema.org/name` → `http://schema.org/`."""
    cut = max(iri.rfind("#"), iri.rfind("/"))
    return iri[: cut + 1] if cut > 7 else iri


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "uU":
        return chr(min(int(code[1:], 16), 0x10FFFF))
    return _SIMPLE.get(code, code)
