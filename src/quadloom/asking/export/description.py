"""A description of the warehouse for machines: VoID (statements, classes, properties, vocabularies) and DCAT."""

from __future__ import annotations

from quadloom.asking.sparql.prefixes import PREFIXES, shorten
from quadloom.asking.statistics import Summary
from quadloom.documents.syntaxes.terms import iri, literal
from quadloom.model.timestamps import iso_time

_USED = ("rdf", "void", "dcat", "dcterms", "xsd", "schema", "foaf", "owl", "rdfs")
_FORMATS = "http://www.w3.org/ns/formats/"


def dataset_description(summary: Summary, *, dataset: str, title: str, endpoint: str = "", now: float) -> bytes:
    """Turtle about the IRI `dataset`. `endpoint`: URL of its SPARQL service, empty = none."""
    lines = [f"@prefix {name}: <{PREFIXES[name]}> ." for name in _USED]
    facts = [
        "a void:Dataset, dcat:Dataset",
        f"dcterms:title {literal(title)}",
        f'dcterms:modified "{iso_time(now)}"^^xsd:dateTime',
        f"void:triples {summary.quads}",
        f"void:documents {summary.pages}",
        f"void:classes {len(summary.classes)}",
        f"void:properties {len(summary.properties)}",
        f"void:feature <{_FORMATS}N-Quads>, <{_FORMATS}Turtle>",
    ]
    if endpoint:
        facts.append(f"void:sparqlEndpoint <{endpoint}>")
        facts.append(f"dcat:distribution [ a dcat:Distribution ; dcat:accessURL <{endpoint}> ]")
    facts += [f"void:vocabulary {term}" for name, _ in summary.vocabularies if (term := iri(name))]
    for name, count in summary.classes:
        if _term(name):
            facts.append(f"void:classPartition [ void:class {_term(name)} ; void:entities {count} ]")
    for name, count in summary.properties:
        if _term(name):
            facts.append(f"void:propertyPartition [ void:property {_term(name)} ; void:triples {count} ]")
    lines.append(f"\n<{dataset}> " + " ;\n  ".join(facts) + " .")
    return ("\n".join(lines) + "\n").encode()


def _term(name: str) -> str:
    short = shorten(name)
    return short if short.partition(":")[0] in _USED and short != name else iri(name) or ""
