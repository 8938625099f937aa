"""What a person wants to know first about a thing: a description, a place, dates; and names for parts without one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec
import pyoxigraph as ox

from quadloom.asking.entity import Entity
from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.asking.things.paths import BLANK, RDF_TYPE, SCHEMA, best_name, canonical, type_name, words
from quadloom.asking.things.profile import label_of, statements_of
from quadloom.stores.protocols.quads import QuadStore

_DESCRIPTIONS = (
    SCHEMA + "description", PREFIXES["dcterms"] + "description", PREFIXES["dc"] + "description",
    PREFIXES["og"] + "description", PREFIXES["rdfs"] + "comment", SCHEMA + "abstract", PREFIXES["skos"] + "definition",
)  # fmt: skip
_LATITUDES = (SCHEMA + "latitude", PREFIXES["geo"] + "lat", PREFIXES["vcard"] + "latitude")
_LONGITUDES = (SCHEMA + "longitude", PREFIXES["geo"] + "long", PREFIXES["vcard"] + "longitude")
_LEADS_TO_PLACE = frozenset((SCHEMA + "geo", SCHEMA + "location", PREFIXES["geo"] + "location", SCHEMA + "address"))
_DATE = re.compile(r"[12]\d{3}-\d\d(-\d\d)?([T ]\d\d:.*)?")
_MAX_NAME = 60  # characters of a name made of values
_MAX_STATEMENTS = 40  # of a part
_MAX_PARTS = 60


class Coordinates(msgspec.Struct, frozen=True):
    latitude: float
    longitude: float


class DatedProperty(msgspec.Struct, frozen=True):
    property: str
    value: str


class Portrait(msgspec.Struct, frozen=True, kw_only=True):
    """`title` is never empty, and never the IRI of a blank node."""

    title: str
    description: str = ""
    place: Coordinates | None = None
    dates: tuple[DatedProperty, ...] = ()


def portrait(quads: QuadStore, entity: Entity) -> Portrait:
    values = {canonical(found.iri): [statement.value for statement in found.statements] for found in entity.properties}
    description = next(
        (value.text for name in _DESCRIPTIONS for value in values.get(name, []) if value.kind == "literal"), ""
    )
    dates = [
        DatedProperty(name, found[0].text)
        for name, found in values.items()
        if found[0].kind == "literal" and _DATE.fullmatch(found[0].text.strip())
    ]
    return Portrait(
        title=entity.label or _title(quads, entity),
        description=description,
        place=_place(quads, entity.names, 2),
        dates=tuple(sorted(dates, key=lambda date: date.value)),
    )


def part_names(quads: QuadStore, iris: Iterable[str]) -> dict[str, str]:
    """Names for blank nodes: their label, or their values, or their type."""
    found = {}
    for iri in list(dict.fromkeys(iri for iri in iris if iri.startswith(BLANK)))[:_MAX_PARTS]:
        found[iri] = _part_name(quads, iri)
    return found


def _part_name(quads: QuadStore, iri: str) -> str:
    literals: dict[str, str] = {}
    kind = ""
    for predicate, value in statements_of(quads, iri, _MAX_STATEMENTS):
        if isinstance(value, ox.Literal):
            literals.setdefault(predicate, value.value)
        elif predicate == RDF_TYPE and isinstance(value, ox.NamedNode):
            kind = kind or type_name(value.value)
    text = best_name(literals) or ", ".join(value for value in literals.values() if not value.startswith("http"))
    if len(text) > _MAX_NAME:
        text = text[: _MAX_NAME - 1] + "…"
    return text or kind or "part without a name"


def _title(quads: QuadStore, entity: Entity) -> str:
    """Of a thing without a label: what it is, and of what."""
    kind = type_name(entity.types[0]) if entity.types else "Something"
    if not entity.iri.startswith(BLANK):
        return words(entity.iri).capitalize() if entity.iri.startswith(SCHEMA) else _tail(entity.iri)
    for link in entity.inverse:
        if owner := label_of(quads, link.subject):
            return f"{words(link.predicate).capitalize()} of {owner}"
    return f"{kind} on {_tail(entity.sources[0])}" if entity.sources else kind


def _tail(iri: str) -> str:
    return iri.rstrip("/#").replace("#", "/").rpartition("/")[2] or iri


def _place(quads: QuadStore, names: Sequence[str], steps: int) -> Coordinates | None:
    """The thing's own coordinates, or those of its place, two steps away at most."""
    onward = []
    for name in names:
        numbers: dict[str, float] = {}
        for predicate, value in statements_of(quads, name, 200):
            if isinstance(value, ox.Literal) and (number := _number(value.value)) is not None:
                numbers.setdefault(predicate, number)
            elif predicate in _LEADS_TO_PLACE and isinstance(value, ox.NamedNode):
                onward.append(value.value)
        latitude = next((numbers[found] for found in _LATITUDES if found in numbers), None)
        longitude = next((numbers[found] for found in _LONGITUDES if found in numbers), None)
        if latitude is not None and longitude is not None and abs(latitude) <= 90 and abs(longitude) <= 180:
            return Coordinates(latitude, longitude)
    return _place(quads, onward[:4], steps - 1) if onward and steps else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
