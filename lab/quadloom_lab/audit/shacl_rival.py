"""pySHACL beside our checks, with shapes that say what schema.org says of its properties.

They say on which types a property stands, and what its values are. They are made of our table of schema.org, since
schema.org's own file of shapes is not bundled.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from quadloom.documents.checks.vocabulary import PropertyTerm, Vocabulary
from quadloom.documents.transform import transform
from quadloom.model.quads import Triple

_SCHEMA = "http://schema.org/"
_HEAD = f"@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix s: <{_SCHEMA}> .\n"


class ShapedPages(NamedTuple):
    """Whether a result concerns each page, and CPU-ms a page."""

    pages: list[bool]
    cpu: float


def flagged(schema: Vocabulary, pages: Sequence[str]) -> ShapedPages:
    """Any result counts as found, generously, and on a correct page as a false alarm. All pages are one graph, whose
    subjects name their page: to read the shapes for each page alone would take a thousand times as long."""
    from pyshacl import validate
    from rdflib import BNode, Graph, Namespace, URIRef

    sh = Namespace("http://www.w3.org/ns/shacl#")
    data = Graph()
    for number, text in enumerate(pages):
        one = _graph_of(
            transform(text.encode(), url=f"https://shop.example/{number}", content_type="text/html").triples
        )
        names: dict[object, URIRef] = {}
        for term in {term for triple in one for term in triple if isinstance(term, BNode)}:
            names[term] = URIRef(f"urn:page:{number}:{term}")
        for triple in one:
            data.add(tuple(names.get(term, term) for term in triple))
    used = {
        str(predicate)[len(_SCHEMA) :] for predicate in set(data.predicates()) if str(predicate).startswith(_SCHEMA)
    }
    shapes = Graph().parse(data=_shapes(schema, used), format="turtle")
    types = Graph().parse(data=_hierarchy(schema), format="turtle")
    started = time.process_time()
    _, report, _ = validate(data, shacl_graph=shapes, ont_graph=types)
    spent = (time.process_time() - started) / max(1, len(pages)) * 1e3
    found = [False] * len(pages)
    for focus in report.objects(None, sh.focusNode):
        parts = str(focus).split(":")
        if parts[:2] == ["urn", "page"]:
            found[int(parts[2])] = True
    return ShapedPages(found, spent)


def _graph_of(triples: Sequence[Triple]) -> Any:
    """One page; empty if rdflib refuses a term of it."""
    from rdflib import Graph

    text = "\n".join(f"{' '.join(triple)} ." for triple in triples).replace("https://schema.org/", _SCHEMA)
    try:
        return Graph().parse(data=text, format="nt")
    except Exception:  # noqa: BLE001 - whatever the parser says of a page
        return Graph()


def _shapes(schema: Vocabulary, used: set[str]) -> str:
    known = [schema.properties[name] for name in sorted(used) if name in schema.properties]
    return _HEAD + "\n".join(_shape(one) for one in known)


def _shape(one: PropertyTerm) -> str:
    on = " ".join(f"[ sh:class s:{name} ]" for name in sorted(one.domains))
    things = " ".join(f"[ sh:class s:{name} ]" for name in sorted(one.things))
    literals = "[ sh:nodeKind sh:Literal ]" if one.data or not one.things else ""
    links = '[ sh:nodeKind sh:IRI ; sh:pattern "^(?!urn:page:)" ]'
    return (
        f"[] a sh:NodeShape ; sh:targetSubjectsOf s:{one.name} ; "
        + (f"sh:or ( {on} ) ; " if on else "")
        + f"sh:property [ sh:path s:{one.name} ; sh:or ( {things} {literals} {links} ) ] ."
    )


def _hierarchy(schema: Vocabulary) -> str:
    lines = [f"s:{name} rdfs:subClassOf s:{above} ." for name, parents in schema.types.items() for above in parents]
    return _HEAD + "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n" + "\n".join(lines)
