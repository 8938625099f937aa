"""A thing as an RDF document: Turtle, RDF/XML, N-Triples, TriG, N-Quads or JSON-LD.

Written by hand from one list of triples, so that the formats agree and need no library.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape

from quadloom_lab.fakeweb.content.markup import jsonld_tree
from quadloom_lab.fakeweb.sites.things import SCHEMA, DateValue, Iri, Thing

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
OWL = "http://www.w3.org/2002/07/owl#"
XSD = "http://www.w3.org/2001/XMLSchema#"

RdfFormat = Literal["ttl", "rdf", "nt", "trig", "nq", "jsonld"]

MEDIA_TYPES: dict[RdfFormat, str] = {
    "ttl": "text/turtle; charset=utf-8", "rdf": "application/rdf+xml", "nt": "application/n-triples",
    "trig": "application/trig", "nq": "application/n-quads", "jsonld": "application/ld+json",
}  # fmt: skip


class Triple(NamedTuple):
    """Subject and object as N-Triples terms, the predicate as an IRI."""

    subject: str
    predicate: str
    object: str


def triples(things: list[Thing]) -> list[Triple]:
    names = count()
    found: list[Triple] = []
    for thing in things:
        _walk(thing, names, found)
    return found


def _walk(thing: Thing, names: Iterator[int], found: list[Triple]) -> str:
    subject = f"<{thing.iri}>" if thing.iri else f"_:n{next(names)}"
    found.append(Triple(subject, RDF_TYPE, f"<{SCHEMA}{thing.type}>"))
    for fact in thing.facts:
        predicate = OWL + "sameAs" if fact.name == "sameAs" else SCHEMA + fact.name
        value = fact.value
        if isinstance(value, Thing):
            found.append(Triple(subject, predicate, _walk(value, names, found)))
        elif isinstance(value, Iri):
            found.append(Triple(subject, predicate, f"<{value.value}>"))
        elif isinstance(value, DateValue):
            found.append(Triple(subject, predicate, f'"{value.value}"^^<{XSD}{value.datatype}>'))
        elif isinstance(value, int):
            found.append(Triple(subject, predicate, f'"{value}"^^<{XSD}integer>'))
        elif isinstance(value, float):
            found.append(Triple(subject, predicate, f'"{value}"^^<{XSD}decimal>'))
        else:
            found.append(Triple(subject, predicate, json.dumps(value, ensure_ascii=False)))
    return subject


def document(form: RdfFormat, things: list[Thing], graph: str) -> str:
    """The things as one document; `graph` names the graph in the formats that have graphs."""
    found = triples(things)
    match form:
        case "nt":
            return "".join(f"{s} <{p}> {o} .\n" for s, p, o in found)
        case "nq":
            return "".join(f"{s} <{p}> {o} <{graph}> .\n" for s, p, o in found)
        case "ttl":
            return _prefixes() + _turtle(found)
        case "trig":
            return f"{_prefixes()}<{graph}> {{\n{_turtle(found)}}}\n"
        case "rdf":
            return _rdfxml(found)
        case "jsonld":
            context = {"@vocab": SCHEMA, "sameAs": {"@id": OWL + "sameAs", "@type": "@id"}}
            return json.dumps({"@context": context, "@graph": [jsonld_tree(t) for t in things]}, ensure_ascii=False)


def _prefixes() -> str:
    return f"@prefix schema: <{SCHEMA}> .\n@prefix owl: <{OWL}> .\n@prefix xsd: <{XSD}> .\n\n"


def _turtle(found: list[Triple]) -> str:
    lines: list[str] = []
    previous = ""
    for subject, predicate, value in found:
        verb = "a" if predicate == RDF_TYPE else predicate.replace(SCHEMA, "schema:").replace(OWL, "owl:")
        if subject == previous:
            lines[-1] = lines[-1][:-1] + ";"
            lines.append(f"    {verb} {value} .")
        else:
            lines.append(f"{subject} {verb} {value} .")
        previous = subject
    return "\n".join(lines) + "\n"


def _rdfxml(found: list[Triple]) -> str:
    lines = [
        f'<?xml version="1.0" encoding="UTF-8"?>\n<rdf:RDF xmlns:rdf="{RDF}" xmlns:schema="{SCHEMA}" xmlns:owl="{OWL}">'
    ]
    for subject, predicate, value in found:
        about = f'rdf:nodeID="{subject[2:]}"' if subject.startswith("_:") else f'rdf:about="{escape(subject[1:-1])}"'
        if predicate == RDF_TYPE:
            name = "rdf:type"
        else:
            name = predicate.replace(SCHEMA, "schema:").replace(OWL, "owl:")
        lines.append(f" <rdf:Description {about}>{_element(name, value)}</rdf:Description>")
    return "\n".join(lines) + "\n</rdf:RDF>\n"


def _element(name: str, value: str) -> str:
    if value.startswith("<"):
        return f'<{name} rdf:resource="{escape(value[1:-1])}"/>'
    if value.startswith("_:"):
        return f'<{name} rdf:nodeID="{value[2:]}"/>'
    text, mark, datatype = value.rpartition("^^")
    if mark:
        return f'<{name} rdf:datatype="{datatype[1:-1]}">{escape(json.loads(text))}</{name}>'
    return f"<{name}>{escape(json.loads(value))}</{name}>"
