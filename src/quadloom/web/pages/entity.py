"""`/entity`: all statements about an IRI, their sources and contradictions; as a page, JSON, RDF or a picture."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlencode

import msgspec
from starlette.responses import RedirectResponse, Response

from quadloom.asking.entity import Entity, Property, as_nquads
from quadloom.asking.sparql.prefixes import expand, shorten
from quadloom.errors import NothingFound
from quadloom.web.api.rdf_responses import RDF_TYPES, chosen_format, graph_response
from quadloom.web.server.errors import HttpError
from quadloom.web.server.negotiation import choose
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.view.pictures import Edge, Node, star
from quadloom.web.view.terms import entity_link, is_iri, labels, values_query, vocabulary_of

__all__ = ["RDF_TYPES", "entity_page", "picture"]
_NEIGHBOURS = 14
_FORMATS = (
    ("turtle", "Turtle"), ("jsonld", "JSON-LD"), ("nt", "N-Triples"), ("rdfxml", "RDF/XML"), ("nq", "N-Quads"),
)  # fmt: skip
# A picture may contain its own styles, and nothing else.
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class VocabularySection(msgspec.Struct, frozen=True):
    """Properties of one vocabulary."""

    vocabulary: str
    properties: list[Property]


def entity_page(request: WebRequest) -> ViewResponse | Response:
    try:
        entity = _entity(request)
    except NothingFound:
        if (redirect := _values_of_property(request)) is None:
            raise
        return redirect
    if not request.wants_json and _wants_rdf(request):
        return graph_response(as_nquads(entity), "application/n-quads", chosen_format(request))
    sections: dict[str, list[Property]] = {}
    for property in entity.properties:
        sections.setdefault(vocabulary_of(property.iri), []).append(property)
    shown = [*(iri for _, iri in _objects(entity)), *(link.subject for link in entity.inverse)]
    extra: dict[str, object] = {
        "names": labels(request.warehouse.stores.quads, shown),
        "sections": [VocabularySection(space, properties) for space, properties in sections.items()],
        "places": {source: number for number, source in enumerate(entity.sources, 1)},
        "formats": _FORMATS,
    }
    return ViewResponse("entity.html", entity, extra)


def picture(request: WebRequest) -> Response:
    """The entity and its nearest neighbours."""
    entity = _entity(request)
    outward = _objects(entity)[:_NEIGHBOURS]
    inward = [(link.predicate, link.subject) for link in entity.inverse][:_NEIGHBOURS]
    names = labels(request.warehouse.stores.quads, [iri for _, iri in (*outward, *inward)])

    def edge(predicate: str, iri: str, inward: bool) -> Edge:
        return Edge(shorten(predicate), Node(names.get(iri) or _name(iri), entity_link(iri), iri), inward)

    title = f"Neighbours of {entity.label or entity.iri}"
    middle = Node(entity.label or _name(entity.iri), entity_link(entity.iri), entity.iri)
    edges = [*(edge(*pair, True) for pair in inward), *(edge(*pair, False) for pair in outward)]
    drawn = star(middle, edges, title=title)
    return Response(drawn, media_type="image/svg+xml", headers={"Content-Security-Policy": PICTURE_POLICY})


def _objects(entity: Entity) -> list[tuple[str, str]]:
    """Property and object of each statement whose object is an IRI."""
    return [
        (property.iri, statement.value.text)
        for property in entity.properties
        for statement in property.statements
        if statement.value.kind == "iri"
    ]


def _entity(request: WebRequest) -> Entity:
    iri = expand(request.required("iri", "http://schema.org/Person"))
    if not is_iri(iri):
        raise HttpError(
            400, f"not an IRI: {iri[:200]}", hint="give an absolute IRI, or a short name such as schema:Event"
        )
    return request.warehouse.ask.entity(iri)


def _values_of_property(request: WebRequest) -> Response | None:
    """Most properties that pages link to are not described in the warehouse, but used: people get their values."""
    iri = expand(request.text("iri").strip())
    used = next(iter(request.warehouse.stores.quads.match(None, f"<{iri}>", None, None, limit=1)), None)
    if request.wants_json or _wants_rdf(request) or used is None:
        return None
    return RedirectResponse("/sparql?" + urlencode({"query": values_query(iri)}), HTTPStatus.SEE_OTHER)


def _wants_rdf(request: WebRequest) -> bool:
    if request.text("format"):
        return True
    return choose(request.accept or "text/html", ("text/html", *RDF_TYPES)) not in (None, "text/html")


def _name(iri: str) -> str:
    """A short name for an IRI without a label."""
    if iri.startswith("urn:quadloom:blank:"):
        return "unnamed thing"
    short = shorten(iri)
    if short != iri:
        return short
    tail = iri.rstrip("/#").replace("#", "/").rpartition("/")[2]
    return tail or iri
