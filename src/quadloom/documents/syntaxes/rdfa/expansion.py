"""What statements entail: vocabulary expansion (RDFa Core 1.1, section 10) and property copying.

The rules are those of the specification: sub-properties and sub-classes with their transitivity, equivalent
properties and classes in both directions. The vocabulary itself stays out of the page's graph. Copying
replaces `rdfa:copy` of an `rdfa:Pattern` by what the pattern says (HTML+RDFa 1.1, section 3.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyoxigraph

from quadloom.documents.syntaxes.rdfa.frames import MAX_TRIPLES, RDFA, VOCABULARY_ERROR, Report, Triple
from quadloom.documents.syntaxes.terms import RDFS, TYPE
from quadloom.errors import QuadloomError

Loader = Callable[[str], bytes]
ReadRdfa = Callable[[bytes, str], bytes]

OWL = "http://www.w3.org/2002/07/owl#"
_UPWARD = {f"{RDFS}subPropertyOf": "property", f"{RDFS}subClassOf": "class"}
_EQUAL = {f"{OWL}equivalentProperty": "property", f"{OWL}equivalentClass": "class"}
# No vocabulary document is larger than this (schema.org, the largest in wide use, has 1 MB).
MAX_VOCABULARY = 8 * 1024 * 1024
MAX_VOCABULARIES = 8


class Entailment:
    """The relations of the vocabularies read so far."""

    def __init__(self) -> None:
        self._above: dict[str, dict[str, list[str]]] = {"property": {}, "class": {}}
        self._closures: dict[tuple[str, str], list[str]] = {}

    def learn(self, triples: Iterable[pyoxigraph.Quad]) -> None:
        for triple in triples:
            subject, value = triple.subject, triple.object
            if not isinstance(subject, pyoxigraph.NamedNode) or not isinstance(value, pyoxigraph.NamedNode):
                continue
            relation = triple.predicate.value
            kind = _UPWARD.get(relation) or _EQUAL.get(relation)
            if kind:
                self._above[kind].setdefault(f"<{subject.value}>", []).append(f"<{value.value}>")
                if relation in _EQUAL:
                    self._above[kind].setdefault(f"<{value.value}>", []).append(f"<{subject.value}>")

    def expand(self, triples: list[Triple]) -> list[Triple]:
        """The statements and those that they entail."""
        expanded = list(triples)
        for subject, predicate, value in triples:
            expanded.extend((subject, above, value) for above in self._closure("property", predicate))
            if predicate == TYPE:
                expanded.extend((subject, TYPE, above) for above in self._closure("class", value))
            if len(expanded) > MAX_TRIPLES:
                break
        return expanded[:MAX_TRIPLES]

    def _closure(self, kind: str, term: str) -> list[str]:
        known = self._closures.get((kind, term))
        if known is not None:
            return known
        relations = self._above[kind]
        seen = {term}
        waiting = list(relations.get(term, ()))
        while waiting:
            above = waiting.pop()
            if above not in seen:
                seen.add(above)
                waiting.extend(relations.get(above, ()))
        closure = sorted(seen - {term})
        self._closures[kind, term] = closure
        return closure


def expand_vocabularies(
    triples: list[Triple], vocabularies: Iterable[str], loader: Loader, read_rdfa: ReadRdfa, report: Report
) -> list[Triple]:
    """Reads each vocabulary once; one that cannot be read is reported and the page's own statements stay."""
    entailment = Entailment()
    documents = dict.fromkeys(iri.partition("#")[0] for iri in vocabularies)
    for document in list(documents)[:MAX_VOCABULARIES]:
        try:
            entailment.learn(_read(loader(document)[:MAX_VOCABULARY], document, read_rdfa))
        except (OSError, ValueError, LookupError, SyntaxError, QuadloomError) as problem:
            report(VOCABULARY_ERROR, f"The vocabulary {document} cannot be read: {problem}")
    return entailment.expand(triples)


def _read(body: bytes, document: str, read_rdfa: ReadRdfa) -> Iterable[pyoxigraph.Quad]:
    """Vocabularies come as RDF/XML, HTML with RDFa, or Turtle; the first bytes decide."""
    head = body[:2048].lower()
    if b"<rdf:rdf" in head:
        return pyoxigraph.parse(body, pyoxigraph.RdfFormat.RDF_XML, base_iri=document)
    if b"<html" in head or b"<!doctype html" in head or b"<svg" in head:
        return pyoxigraph.parse(read_rdfa(body, document), pyoxigraph.RdfFormat.N_QUADS)
    return pyoxigraph.parse(body, pyoxigraph.RdfFormat.TURTLE, base_iri=document)


COPY = f"<{RDFA}copy>"
PATTERN = f"<{RDFA}Pattern>"


def fold_patterns(triples: list[Triple]) -> list[Triple]:
    """The statements with every copied pattern in place of its reference. Patterns without a reference stay."""
    if not any(predicate == COPY for _, predicate, _ in triples):
        return triples
    patterns: dict[str, list[tuple[str, str]]] = {
        subject: [] for subject, predicate, value in triples if predicate == TYPE and value == PATTERN
    }
    for subject, predicate, value in triples:
        if subject in patterns and not (predicate == TYPE and value == PATTERN):
            patterns[subject].append((predicate, value))
    referred = {value for _, predicate, value in triples if predicate == COPY and value in patterns}
    folded: list[Triple] = []
    room = MAX_TRIPLES
    for triple in triples:
        subject, predicate, value = triple
        if subject in referred:
            continue
        if predicate == COPY and value in referred:
            copied = _copied(value, patterns, room)
            room -= len(copied)
            folded.extend((subject, *pair) for pair in copied)
        else:
            folded.append(triple)
    return folded


def _copied(pattern: str, patterns: dict[str, list[tuple[str, str]]], room: int) -> list[tuple[str, str]]:
    """What a pattern says, with the patterns that it copies in turn, each once."""
    found: list[tuple[str, str]] = []
    seen = {pattern}
    waiting = [pattern]
    while waiting and len(found) < room:
        for predicate, value in patterns[waiting.pop()]:
            if predicate != COPY or value not in patterns:
                found.append((predicate, value))
            elif value not in seen:
                seen.add(value)
                waiting.append(value)
    return found[:room]
