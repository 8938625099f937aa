"""`/entity`: all statements about an IRI, their sources and contradictions; as a page, JSON, RDF or a picture."""

from __future__ import annotations

import contextlib
from collections import Counter
from http import HTTPStatus
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from quadloom.asking.changes.timeline import Timeline, entity_timeline
from quadloom.asking.entity import Entity, Property, Statement, as_nquads
from quadloom.asking.report.portrait import Portrait, part_names, portrait
from quadloom.asking.sparql.prefixes import expand, shorten
from quadloom.asking.things.paths import BLANK, NAMES, RDF_TYPE, SAME, SCHEMA, canonical, comparable, words
from quadloom.errors import NothingFound
from quadloom.web.api.rdf_responses import RDF_TYPES, chosen_format, graph_response
from quadloom.web.server.errors import HttpError
from quadloom.web.server.negotiation import choose
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.view import charts
from quadloom.web.view.charts import Mark
from quadloom.web.view.pictures import Edge, NetworkEdge, Node, network, star
from quadloom.web.view.result_views import time_of
from quadloom.web.view.terms import entity_link, is_iri, labels, values_query, vocabulary_of

__all__ = ["RDF_TYPES", "entity_page", "picture"]
_MAX_NEIGHBOURS = 14
_MAX_OPENED = 8  # neighbours whose neighbours are shown too
_FORMATS = (
    ("turtle", "Turtle"), ("jsonld", "JSON-LD"), ("nt", "N-Triples"), ("rdfxml", "RDF/XML"), ("nq", "N-Quads"),
)  # fmt: skip
# A picture may contain its own styles, and nothing else.
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class VocabularySection(msgspec.Struct, frozen=True):
    """Properties of one vocabulary."""

    vocabulary: str
    properties: list[Property]


class EntityView(Entity, frozen=True, kw_only=True):
    """`history`: only if it was asked for, by `history=1`."""

    about: Portrait
    history: Timeline | None = None


def entity_page(request: WebRequest) -> ViewResponse | Response:
    try:
        entity = _entity(request)
    except NothingFound as error:
        if (redirect := _values_of_property(request)) is None:
            raise HttpError(404, error.message, hint="/search finds pages and things by their words") from None
        return redirect
    if not request.wants_json and _wants_rdf(request):
        return graph_response(as_nquads(entity), "application/n-quads", chosen_format(request))
    stores = request.warehouse.stores
    shown = [*(iri for _, iri in _objects(entity)), *(link.subject for link in entity.inverse)]
    about = portrait(stores.quads, entity)
    history = None
    if request.text("history") == "1":
        history = entity_timeline(stores.catalog, request.warehouse.ask.versions, entity)
    names = {**part_names(stores.quads, shown), **labels(stores.quads, shown)}
    extra: dict[str, object] = {
        "names": names,
        "sections": _sections(entity, names),
        "places": {source: number for number, source in enumerate(entity.sources, 1)},
        "formats": _FORMATS,
        "map": _map(about),
        "timeline": _timeline(about),
        "language": _main_language(entity),
        "mergeable": not request.text("merge") and _is_mergeable(entity),
        "drawn": Markup(_neighbourhood(request, entity, about.title)),
        "link": request.link,
    }
    fields = msgspec.structs.asdict(entity)
    return ViewResponse("entity.html", EntityView(**fields, about=about, history=history), extra)


def _sections(entity: Entity, names: dict[str, str]) -> list[VocabularySection]:
    """By vocabulary, the one with most properties first; the type stands in the heading."""
    sections: dict[str, list[Property]] = {}
    for property in sorted(entity.properties, key=lambda found: _place_in_section(found.iri)):
        if property.iri != RDF_TYPE:
            sections.setdefault(vocabulary_of(canonical(property.iri)), []).append(_without_repeats(property, names))
    ordered = sorted(sections.items(), key=lambda item: -len(item[1]))
    return [VocabularySection(space, properties) for space, properties in ordered]


def _without_repeats(property: Property, names: dict[str, str]) -> Property:
    """Values that read the same are shown once, with all their sources: the same text with and without a language, the
    same part described by several pages."""
    found: dict[str, Statement] = {}
    for statement in property.statements:
        value = statement.value
        is_part = value.kind == "iri" and value.text.startswith(BLANK)
        text = canonical(value.text)
        is_term = text.startswith(SCHEMA)  # as an IRI or as a text, it is the same member of an enumeration
        key = text if is_term or (value.kind == "iri" and not is_part) else comparable(names.get(text) or text)
        before = found.get(key)
        sources = dict.fromkeys((*(before.sources if before else ()), *statement.sources))
        found[key] = Statement(before.value if before else value, tuple(sources))
    return msgspec.structs.replace(property, statements=tuple(found.values()))


def _place_in_section(iri: str) -> tuple[bool, bool, str]:
    """The name first, descriptions next, then by name."""
    return canonical(iri) not in NAMES, not iri.endswith("escription"), iri


def _main_language(entity: Entity) -> str:
    """The language of most texts, which needs no badge."""
    found = Counter(
        statement.value.language
        for property in entity.properties
        for statement in property.statements
        if statement.value.language
    )
    return found.most_common(1)[0][0] if found else ""


def _is_mergeable(entity: Entity) -> bool:
    same = {*SAME, "https://schema.org/sameAs"}
    return any(found.iri in same for found in entity.properties) or any(
        link.predicate in same for link in entity.inverse
    )


def _map(about: Portrait) -> Markup:
    if about.place is None:
        return Markup()
    return charts.world([Mark(about.title, about.place.longitude, about.place.latitude)], f"Where {about.title} is")


def _timeline(about: Portrait) -> Markup:
    marks = [
        Mark(f"{words(date.property)}: {date.value}", at)
        for date in about.dates
        if (at := time_of(date.value)) is not None
    ]
    return charts.timeline(marks, f"Dates of {about.title}") if len({mark.x for mark in marks}) > 2 else Markup()


def _neighbourhood(request: WebRequest, entity: Entity, title: str) -> str:
    """The entity and its neighbours. A click on one shows its neighbours too; on one that is open, its page."""
    quads = request.warehouse.stores.quads
    opened = [iri for iri in request.texts("open") if is_iri(iri)][:_MAX_OPENED]
    links = _links(entity)
    for iri in opened:
        with contextlib.suppress(NothingFound):
            links += _links(request.warehouse.ask.entity(iri, consolidate=False))
    links = list(dict.fromkeys(links))[: _MAX_NEIGHBOURS * (2 + len(opened))]
    iris = [iri for source, _, target in links for iri in (source, target)]
    names = {**part_names(quads, iris), **labels(quads, iris), entity.iri: title}
    first: dict[tuple[str, str, str], tuple[str, str, str]] = {}  # the same part on several pages is drawn once
    for link in links:
        ends = [names.get(iri, iri) if iri.startswith(BLANK) else iri for iri in (link[0], link[2])]
        first.setdefault((ends[0], link[1], ends[1]), link)
    links = list(first.values())

    def node(iri: str) -> Node:
        name = names.get(iri) or _name(iri)
        if iri == entity.iri or iri in opened:
            return Node(name, entity_link(iri), f"{name}: open its page")
        wider = urlencode([("iri", entity.iri), *(("open", found) for found in (*opened, iri))])
        return Node(name, f"/entity?{wider}#picture", f"{name}: show what it is linked with")

    edges = [NetworkEdge(node(source), node(target), words(predicate)) for source, predicate, target in links]
    return network(edges, title=f"Neighbourhood of {title}", nodes=[node(entity.iri)], middle=entity_link(entity.iri))


def _links(entity: Entity) -> list[tuple[str, str, str]]:
    """Subject, property and object of links to and from the thing."""
    outward = [(entity.iri, predicate, iri) for predicate, iri in _objects(entity) if predicate != RDF_TYPE]
    inward = [(link.subject, link.predicate, entity.iri) for link in entity.inverse]
    return [*outward[:_MAX_NEIGHBOURS], *inward[:_MAX_NEIGHBOURS]]


def picture(request: WebRequest) -> Response:
    """The entity and its nearest neighbours."""
    entity = _entity(request)
    outward = _objects(entity)[:_MAX_NEIGHBOURS]
    inward = [(link.predicate, link.subject) for link in entity.inverse][:_MAX_NEIGHBOURS]
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
    merge = {"1": True, "0": False}.get(request.text("merge"))  # without a word: as the settings say
    return request.warehouse.ask.entity(iri, consolidate=merge)


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
