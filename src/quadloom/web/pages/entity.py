"""`/entity`: all that is said of an IRI, by whom, and where they differ; as a page, JSON, RDF or a picture."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlencode

import msgspec
from starlette.responses import RedirectResponse, Response

from quadloom.asking.entity import Entity, Property, as_nquads
from quadloom.asking.sparql.prefixes import expand, shorten
from quadloom.errors import NothingFound
from quadloom.web.api.rdf_responses import RDF_TYPES, chosen_format, graph_response
from quadloom.web.server.errors import RequestRefused
from quadloom.web.server.negotiation import choose
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.view.labels import labels
from quadloom.web.view.pictures import Edge, Node, star
from quadloom.web.view.terms import entity_link, is_iri, values_query, vocabulary_of

__all__ = ["RDF_TYPES", "entity_page", "picture"]
_NEIGHBOURS = 14


class VocabularySection(msgspec.Struct, frozen=True):
    """Properties of one vocabulary."""

    vocabulary: str
    properties: list[Property]


def entity_page(ask: WebRequest) -> ViewResponse | Response:
    try:
        entity = _entity(ask)
    except NothingFound:
        if (values := _values(ask)) is None:
            raise
        return values
    if not ask.wants_json and _wants_rdf(ask):
        return graph_response(as_nquads(entity), "application/n-quads", chosen_format(ask))
    sections: dict[str, list[Property]] = {}
    for found in entity.properties:
        sections.setdefault(vocabulary_of(found.iri), []).append(found)
    shown = [
        *(statement.value.text for found in entity.properties for statement in found.statements
          if statement.value.kind == "iri"),
        *(found.subject for found in entity.inverse),
    ]  # fmt: skip
    extra: dict[str, object] = {
        "names": labels(ask.warehouse.quads, shown),
        "sections": [VocabularySection(space, found) for space, found in sections.items()],
        "places": {source: number for number, source in enumerate(entity.sources, 1)},
        "formats": (("turtle", "Turtle"), ("jsonld", "JSON-LD"), ("nt", "N-Triples"), ("rdfxml", "RDF/XML"),
                    ("nq", "N-Quads")),
    }  # fmt: skip
    return ViewResponse("entity.html", entity, extra)


def picture(ask: WebRequest) -> Response:
    """The entity and its nearest neighbours."""
    entity = _entity(ask)
    joined = [
        (found.iri, statement.value.text)
        for found in entity.properties
        for statement in found.statements
        if statement.value.kind == "iri"
    ][:_NEIGHBOURS]
    pointing = [(found.predicate, found.subject) for found in entity.inverse][:_NEIGHBOURS]
    names = labels(ask.warehouse.quads, [iri for _, iri in (*joined, *pointing)])

    def edge(predicate: str, iri: str, inward: bool) -> Edge:
        return Edge(shorten(predicate), Node(names.get(iri) or _name(iri), entity_link(iri), iri), inward)

    title = f"What {entity.label or entity.iri} is joined to"
    middle = Node(entity.label or _name(entity.iri), entity_link(entity.iri), entity.iri)
    edges = [*(edge(*pair, True) for pair in pointing), *(edge(*pair, False) for pair in joined)]
    drawn = star(middle, edges, title=title)
    return Response(drawn, media_type="image/svg+xml", headers={"Content-Security-Policy": PICTURE_POLICY})


# A picture may style itself, and nothing else.
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def _entity(ask: WebRequest) -> Entity:
    iri = expand(ask.required("iri", "http://schema.org/Person"))
    if not is_iri(iri):
        raise RequestRefused(400, f"not an IRI: {iri[:200]}", hint="an absolute IRI, or a name such as schema:Event")
    return ask.warehouse.entity(iri)


def _values(ask: WebRequest) -> Response | None:
    """Most properties that pages link to are described nowhere here, but used: people are shown their values."""
    iri = expand(ask.text("iri").strip())
    used = next(iter(ask.warehouse.quads.match(None, f"<{iri}>", None, None, limit=1)), None)
    if ask.wants_json or _wants_rdf(ask) or used is None:
        return None
    return RedirectResponse("/sparql?" + urlencode({"query": values_query(iri)}), HTTPStatus.SEE_OTHER)


def _wants_rdf(ask: WebRequest) -> bool:
    if ask.text("format"):
        return True
    return choose(ask.accept or "text/html", ("text/html", *RDF_TYPES)) not in (None, "text/html")


def _name(iri: str) -> str:
    """The part of an IRI that people read."""
    if iri.startswith("urn:quadloom:blank:"):
        return "a nameless thing"
    short = shorten(iri)
    if short != iri:
        return short
    tail = iri.rstrip("/#").replace("#", "/").rpartition("/")[2]
    return tail or iri
