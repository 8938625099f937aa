"""`/reconcile`: names of a table matched with things, as OpenRefine and other clients of the W3C Reconciliation API 0.2
ask for it: candidates, suggestions while somebody types, previews, and values to fill new columns with."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
from msgspec import field
from starlette.responses import Response

from quadloom import __version__
from quadloom.asking.entity import Entity, Statement, Value, describe_entity
from quadloom.asking.report.portrait import part_names, portrait
from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.things.found import find_things
from quadloom.asking.things.matching import KnownValue, NameCandidate, is_minor, match_name, values_at
from quadloom.asking.things.paths import (
    BLANK,
    PART_TYPES,
    RDF_TYPE,
    canonical,
    parse_path,
    path_label,
    type_name,
    words,
    write_path,
)
from quadloom.asking.things.profile import label_of
from quadloom.asking.urls import page_of
from quadloom.errors import NothingFound
from quadloom.model.timestamps import iso_time
from quadloom.stores.protocols.text import SearchRequest
from quadloom.stores.statistics import Statistics
from quadloom.warehouse import Warehouse
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.view.terms import is_iri

BATCH = 50  # queries, and things to extend
_BATCH_SECONDS = 20.0
_MOST_LISTED = 20
_MOST_PROPERTIES = 30
_MAX_TEXT = 2000
# A preview stands in a frame of the client's page. Nothing in it runs or loads.
_FRAMED = "default-src 'none'; style-src 'self'; sandbox; frame-ancestors http: https:"
_MOMENT = re.compile(r"-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")
_XSD = "http://www.w3.org/2001/XMLSchema#"
# Columns about the sources of a thing, beside those of its properties.
_SOURCES = {"ql:source": "pages that describe it", "ql:visited": "time of the visit", "ql:record": "archived record"}

Term = dict[str, str]
Read = TypeVar("Read")
Scalar = str | float | bool


class Known(msgspec.Struct):
    """`v`: a value, a thing `{"id": …}`, or several of them."""

    pid: str
    v: Scalar | dict[str, str] | list[Scalar | dict[str, str]]


class NameQuery(msgspec.Struct):
    query: str = ""
    type: str | list[str] = ""
    limit: float = 5
    properties: list[Known] = []
    type_strict: str = ""


class WantedProperty(msgspec.Struct):
    id: str


class Extension(msgspec.Struct):
    ids: list[str]
    properties: list[WantedProperty]


class FoundEntity(msgspec.Struct, kw_only=True):
    """A candidate, with the names that the specification gives its fields."""

    id: str
    name: str
    types: list[Term] = field(name="type")
    description: str
    score: float
    match: bool
    features: list[dict[str, object]]


def endpoint(request: WebRequest) -> Response:
    """The manifest, a batch of queries or a request for values: as the parameters say."""
    if queries := request.text("queries"):
        batch = _decoded(queries, dict[str, NameQuery], "queries")
        if len(batch) > BATCH:
            raise HttpError(413, f"a batch of {len(batch)} queries is too long", hint=f"send at most {BATCH}")
        until = time.monotonic() + _BATCH_SECONDS
        results: dict[str, dict[str, list[FoundEntity]]] = {}
        for key, query in batch.items():
            if time.monotonic() > until:
                hint = f"send fewer than {len(results)} names at a time, or choose a type"
                raise HttpError(503, "the batch takes too long", hint=hint, headers={"Retry-After": "5"})
            results[key] = {"result": _candidates(request, query)}
        return _json(results)
    if wanted := request.text("extend"):
        return _json(_extended(request.warehouse, _decoded(wanted, Extension, "extend")))
    return _json(_manifest(request))


def _manifest(request: WebRequest) -> dict[str, object]:
    base = request.site.settings.web.public_url.rstrip("/") or str(request.http.url.replace(path="", query=""))

    def service(path: str) -> Term:
        return {"service_url": base, "service_path": path}

    return {
        "versions": ["0.2"],
        "name": f"Quadloom: {request.site.path.name}",
        "identifierSpace": f"{base}/entity",
        "schemaSpace": "http://www.w3.org/2000/01/rdf-schema#Resource",
        "documentation": f"{base}/about",
        "serviceVersion": __version__,
        "defaultTypes": [
            _term(iri) for iri in _used(request.warehouse).classes[:8] if canonical(iri) not in PART_TYPES
        ],
        "view": {"url": f"{base}/entity?iri={{{{id}}}}"},
        "preview": {"url": f"{base}/reconcile/preview?id={{{{id}}}}", "width": 430, "height": 300},
        "suggest": {kind: service(f"/reconcile/suggest/{kind}") for kind in ("entity", "type", "property")},
        "extend": {"propose_properties": service("/reconcile/properties"), "property_settings": []},
        "batchSize": BATCH,
    }


def _candidates(request: WebRequest, query: NameQuery) -> list[FoundEntity]:
    warehouse = request.warehouse
    wanted = [query.type] if isinstance(query.type, str) else query.type
    tree = warehouse.ask.tables(request.site.things).tree
    types = [iri for name in wanted if name for iri in (tree.with_subtypes(name) or (name,))]
    found = match_name(
        warehouse.stores.text,
        warehouse.stores.quads,
        query.query[:_MAX_TEXT],
        types=types,
        known=[KnownValue(parse_path(one.pid), _texts(one)) for one in query.properties],
        limit=int(max(1, min(query.limit, _MOST_LISTED))),
    )
    return [_found(warehouse, one) for one in found]


def _texts(known: Known) -> tuple[str, ...]:
    values = known.v if isinstance(known.v, list) else [known.v]
    return tuple(str(one.get("id", "")) if isinstance(one, dict) else str(one) for one in values)


def _found(warehouse: Warehouse, one: NameCandidate) -> FoundEntity:
    return FoundEntity(
        id=one.entity.iri,
        name=one.name,
        types=_types(one.entity),
        description=_description(warehouse, one.entity),
        score=one.score,
        match=one.match,
        features=[{"id": name, "value": value} for name, value in one.reasons.items()],
    )


def _types(entity: Entity) -> list[Term]:
    return [_term(iri) for iri in dict.fromkeys(map(canonical, entity.types))]


def _term(iri: str) -> Term:
    return {"id": canonical(iri), "name": type_name(iri)}


def _description(warehouse: Warehouse, entity: Entity) -> str:
    """What tells namesakes apart: their own description, and where it stands."""
    text = portrait(warehouse.stores.quads, entity).description
    source = entity.sources[0] if entity.sources else ""
    return " · ".join(filter(None, (text[:200], source)))


def suggest(request: WebRequest) -> Response:
    """Entities, types or properties whose names begin with, or contain, what was typed."""
    found: Sequence[object]
    kind, typed = request.path("kind"), request.required("prefix", "ada")[:_MAX_TEXT]
    skip = request.number("cursor", 0, low=0, high=1000)
    used = _used(request.warehouse)
    if kind == "entity":
        found = _suggested(request, typed)
    elif kind == "type":
        found = [_term(iri) for iri in _containing(used.classes, typed)]
    elif kind == "property":
        found = [
            {"id": write_path((canonical(iri),)), "name": words(iri), "description": iri}
            for iri in _containing(used.properties, typed)
        ]
    else:
        raise HttpError(404, f"nothing is suggested for {kind[:50]!r}", hint="entity, type or property")
    return _json({"result": found[skip : skip + _MOST_LISTED]})


def _suggested(request: WebRequest, typed: str) -> list[dict[str, object]]:
    if is_iri(typed):
        candidates = _candidates(request, NameQuery(typed))
        return [{"id": one.id, "name": one.name, "description": one.description} for one in candidates]
    stores = request.warehouse.stores
    start = " ".join(re.findall(r"\w+", typed))
    things = find_things(stores.text, stores.quads, SearchRequest(text=f"{start}*", limit=100)) if start else []
    named = sorted((one for one in things if one.label), key=lambda one: is_minor(one.iri, one.types))
    return [
        {"id": one.iri, "name": one.label, "description": one.pages[0], "notable": [_term(iri) for iri in one.types]}
        for one in named
    ]


class _Used(msgspec.Struct, frozen=True):
    """IRIs in use, the most used first."""

    classes: list[str]
    properties: list[str]


def _used(warehouse: Warehouse) -> _Used:
    counts = Statistics.saved(warehouse.stores.catalog)
    return _Used(*(_canonical_names(+found) for found in (counts.classes, counts.properties)))


def _canonical_names(counts: Counter[str]) -> list[str]:
    return list(dict.fromkeys(canonical(iri) for iri, _ in counts.most_common()))


def _containing(iris: list[str], typed: str) -> list[str]:
    start = typed.casefold()
    found = [iri for iri in iris if start in words(iri) or start in iri.casefold() or start in shorten(iri).casefold()]
    return sorted(found, key=lambda iri: not words(iri).startswith(start))


def preview(request: WebRequest) -> ViewResponse:
    iri = request.required("id", "http://schema.org/Person")
    stores = request.warehouse.stores
    try:
        entity = describe_entity(stores.quads, iri if is_iri(iri) else "", consolidate=True)
    except NothingFound as error:
        raise HttpError(404, error.message, hint=error.hint) from None
    about = portrait(stores.quads, entity)
    parts = part_names(stores.quads, [iri for property in entity.properties for iri in _iris(property.statements)])
    facts = [
        (words(property.iri), parts.get(value.text) or _label(request.warehouse, value) or value.text)
        for property in entity.properties
        for value in (property.statements[0].value,)
        if property.iri != RDF_TYPE and value.text not in (about.title, about.description)
    ]
    data: dict[str, object] = {"entity": entity, "about": about, "facts": facts[:6]}
    return ViewResponse("preview.html", data, headers={"Content-Security-Policy": _FRAMED})


def _label(warehouse: Warehouse, value: Value) -> str:
    return label_of(warehouse.stores.quads, value.text) if value.kind == "iri" else ""


def _iris(statements: Iterable[Statement]) -> list[str]:
    return [one.value.text for one in statements if one.value.text.startswith(BLANK)]


def properties(request: WebRequest) -> Response:
    """Columns that things of a type can be extended by: those of its table, and their sources."""
    type, most = request.text("type"), request.number("limit", _MOST_PROPERTIES, low=1, high=_MOST_PROPERTIES)
    tables = request.warehouse.ask.tables(request.site.things)
    if type:
        try:
            paths = [column.path for column in tables.profile(tables.resolve(type)).columns]
        except NothingFound:
            paths = []
    else:
        paths = [(iri,) for iri in _used(request.warehouse).properties if iri != RDF_TYPE]
    offered = [{"id": name, "name": label} for name, label in _SOURCES.items()]
    found = [{"id": write_path(path), "name": _column_name(path)} for path in paths]
    return _json({"type": type, "limit": most, "properties": [*found[: max(1, most - len(offered))], *offered][:most]})


def _column_name(path: tuple[str, ...]) -> str:
    within = " / ".join(words(step) for step in path[:-1])
    return f"{path_label(path)} ({within})" if within else path_label(path)


def _extended(warehouse: Warehouse, wanted: Extension) -> dict[str, object]:
    if len(wanted.ids) > BATCH or len(wanted.properties) > _MOST_PROPERTIES:
        hint = f"ask for at most {BATCH} things and {_MOST_PROPERTIES} properties at a time"
        raise HttpError(413, "too much is asked for at once", hint=hint)
    paths = {one.id: () if one.id in _SOURCES else parse_path(one.id) for one in wanted.properties}
    rows: dict[str, dict[str, list[dict[str, object]]]] = {}
    for iri in wanted.ids:
        try:
            entity = describe_entity(warehouse.stores.quads, iri if is_iri(iri) else "", consolidate=True)
        except NothingFound:
            rows[iri] = {name: [] for name in paths}
            continue
        rows[iri] = {
            name: _cells(warehouse, entity, path) if path else _sources(warehouse, entity, name)
            for name, path in paths.items()
        }
    meta = [{"id": name, "name": _column_name(path) if path else _SOURCES[name]} for name, path in paths.items()]
    return {"meta": meta, "rows": rows}


def _cells(warehouse: Warehouse, entity: Entity, path: tuple[str, ...]) -> list[dict[str, object]]:
    quads = warehouse.stores.quads
    cells: list[dict[str, object]] = []
    for kind, text in values_at(quads, entity.names, path):
        if kind != "iri":
            cells.append(_cell(kind, text))
        elif text.startswith(BLANK):
            cells.append({"str": part_names(quads, [text])[text]})
        elif name := label_of(quads, text):
            cells.append({"id": text, "name": name})
        else:
            cells.append({"str": text})
    return [cell for place, cell in enumerate(cells) if cell not in cells[:place]]


def _cell(datatype: str, text: str) -> dict[str, object]:
    if _MOMENT.fullmatch(text):
        return {"date": text}
    kind = datatype.removeprefix(_XSD)
    try:
        if kind in ("integer", "int", "long") and len(text) < 16:
            return {"int": int(text)}
        if kind in ("decimal", "double", "float") and text.strip("+-.eE0123456789") == "":
            return {"float": float(text)}
    except ValueError:
        pass
    return {"str": text}


def _sources(warehouse: Warehouse, entity: Entity, name: str) -> list[dict[str, object]]:
    """In the same order in each of the three columns, so that their cells stand beside each other."""
    cells: list[dict[str, object]] = []
    for source in entity.sources[:BATCH]:
        row = page_of(warehouse.stores.catalog, source)
        if name == "ql:source":
            cells.append({"str": source})
        elif name == "ql:visited":
            cells.append({"date": iso_time(row.fetched_at)} if row else {})
        else:
            ref = row.archive if row else None
            cells.append({"str": f"{ref.file}@{ref.offset}+{ref.length}"} if ref else {})
    return cells


def _decoded(text: str, type: type[Read], name: str) -> Read:
    try:
        return msgspec.json.decode(text, type=type)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeError) as error:
        hint = 'example: {"q0": {"query": "Ada Lovelace", "type": "http://schema.org/Person"}}'
        raise HttpError(400, f"the parameter {name} cannot be read: {error}", hint=hint) from None


def _json(data: object) -> Response:
    return Response(msgspec.json.encode(data), media_type="application/json")
