"""Items of microformats to statements, by tables of types and properties. docs/reference/microformats.md explains them.

People, organisations and addresses become vCard, everything else schema.org if that has an accepted term. What has none
keeps its own name in the namespace `http://microformats.org/profile/`, so that nothing an author marked is lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from quadloom.documents.syntaxes.microformats.dates import typed
from quadloom.documents.syntaxes.microformats.values import MicroformatItem, NestedItem, Picture, Value, plain
from quadloom.documents.syntaxes.sink import Sink
from quadloom.documents.syntaxes.terms import TYPE, XSD, iri, literal

SCHEMA = "http://schema.org/"
VCARD = "http://www.w3.org/2006/vcard/ns#"
ACTIVITY = "https://www.w3.org/ns/activitystreams#"
PROFILE = "http://microformats.org/profile/"


class NodeBetween(NamedTuple):
    """A node that schema.org puts between an item and a value: the property to it, its type, the property on it."""

    property: str
    type: str
    value_property: str


def _schema(same: str = "", **renamed: str) -> dict[str, str]:
    """Properties that are called the same in schema.org, and `mf2_name="schemaName"` for the rest."""
    table = {name: SCHEMA + name for name in same.split()}
    table.update({name.replace("_", "-"): SCHEMA + target for name, target in renamed.items()})
    return table


def _vcard(same: str, **renamed: str) -> dict[str, str]:
    table = {name: VCARD + name for name in same.split()}
    table.update({name.replace("_", "-"): VCARD + target for name, target in renamed.items()})
    return table


_ADDRESS_NAMES = "street-address extended-address post-office-box locality region postal-code country-name label"
_THING = _schema("name url", photo="image", featured="image", uid="identifier", category="keywords")
_WORK = _THING | _schema(
    "author video audio comment",
    published="datePublished",
    updated="dateModified",
    summary="description",
    syndication="sameAs",
    location="contentLocation",
    geo="contentLocation",
)
_PERSON = _vcard(
    f"honorific-prefix given-name additional-name family-name honorific-suffix nickname category note bday role "
    f"sort-string tz rev latitude longitude organization-name organization-unit {_ADDRESS_NAMES}",
    name="fn",
    job_title="title",
    org="organization-name",
    email="hasEmail",
    url="hasURL",
    photo="hasPhoto",
    logo="hasLogo",
    uid="hasUID",
    sound="hasSound",
    key="hasKey",
    adr="hasAddress",
    geo="hasGeo",
    tel="hasTelephone",
    gender_identity="hasGender",
)

TYPES: Mapping[str, str] = {
    "h-adr": f"{VCARD}Address",
    "h-app": f"{SCHEMA}WebApplication",
    "h-card": f"{VCARD}Individual",
    "h-cite": f"{SCHEMA}CreativeWork",
    "h-entry": f"{SCHEMA}BlogPosting",
    "h-event": f"{SCHEMA}Event",
    "h-feed": f"{SCHEMA}Blog",
    "h-geo": f"{SCHEMA}GeoCoordinates",
    "h-item": f"{SCHEMA}Thing",
    "h-news": f"{SCHEMA}NewsArticle",
    "h-org": f"{VCARD}Organization",
    "h-product": f"{SCHEMA}Product",
    "h-recipe": f"{SCHEMA}Recipe",
    "h-resume": f"{PROFILE}h-resume",
    "h-review": f"{SCHEMA}Review",
    "h-review-aggregate": f"{SCHEMA}AggregateRating",
    "h-x-app": f"{SCHEMA}WebApplication",
}
PROPERTIES: Mapping[str, Mapping[str, str]] = {
    "h-adr": _vcard(f"latitude longitude {_ADDRESS_NAMES}", geo="hasGeo", name="label"),
    "h-app": _THING | _schema(logo="image", summary="description"),
    "h-card": _PERSON,
    "h-cite": _WORK | _schema(content="text", publication="isPartOf"),
    "h-entry": _WORK | _schema(content="articleBody") | {"in-reply-to": f"{ACTIVITY}inReplyTo"},
    "h-event": _THING
    | _schema(
        "location attendee organizer duration description",
        start="startDate",
        end="endDate",
        summary="abstract",
        geo="location",
    ),
    "h-feed": _WORK,
    "h-geo": _schema("name latitude longitude", altitude="elevation"),
    "h-item": _THING,
    "h-news": _WORK | _schema("dateline", source_org="sourceOrganization", principles="publishingPrinciples"),
    "h-org": _PERSON,
    "h-product": _THING | _schema("brand category description review", identifier="productID"),
    "h-recipe": _WORK
    | _schema(
        "nutrition",
        ingredient="recipeIngredient",
        instructions="recipeInstructions",
        duration="totalTime",
        category="recipeCategory",
        **{"yield": "recipeYield"},
    ),
    "h-resume": _THING | _schema(contact="about", summary="description"),
    "h-review": _WORK | _schema("description", item="itemReviewed", content="reviewBody"),
    "h-review-aggregate": _THING
    | _schema(
        item="itemReviewed",
        rating="ratingValue",
        average="ratingValue",
        best="bestRating",
        worst="worstRating",
        count="reviewCount",
        votes="ratingCount",
    ),
    "h-x-app": _THING | _schema(logo="image", summary="description"),
}
# Properties that schema.org puts on a node in between.
BETWEEN: Mapping[str, Mapping[str, NodeBetween]] = {
    "h-product": {"price": NodeBetween(f"{SCHEMA}offers", f"{SCHEMA}Offer", f"{SCHEMA}price")},
    "h-review": {
        name: NodeBetween(
            f"{SCHEMA}reviewRating",
            f"{SCHEMA}Rating",
            f"{SCHEMA}{name}{'Value' if name == 'rating' else 'Rating'}",
        )
        for name in ("rating", "best", "worst")
    },
}
# Properties that mean something else if the value is an item: (property, type of that item or "" for any).
NESTED: Mapping[tuple[str, str], str] = {
    ("review", "h-review-aggregate"): f"{SCHEMA}aggregateRating",
    # vCard's own term takes text only.
    ("org", ""): f"{PROFILE}h-card#org",
}
# Properties whose value is text even if it looks like an address or a date.
TEXTS = frozenset(
    {"content", "description", "ingredient", "instructions", "label", "name", "nickname", "note", "price", "rating"}
    | {"summary"}
)
DATES = frozenset({"accessed", "anniversary", "bday", "duration", "end", "published", "rev", "start", "updated"})

# Utility classes of CSS frameworks that have the form of an mf2 root; they set a height and describe nothing.
UTILITIES = frozenset(
    {"h-auto", "h-dvh", "h-dvw", "h-fit", "h-full", "h-inherit", "h-initial", "h-lh", "h-lvh", "h-max", "h-min", "h-px"}
    | {"h-screen", "h-stretch", "h-svh", "h-vh"}
)


_ADDRESS = re.compile(r"(?:https?://|mailto:|tel:|data:image/)\S+\Z", re.IGNORECASE)
_POSITION = re.compile(r"\s*(-?[0-9]{1,3}(?:\.[0-9]+)?)\s*[;,]\s*(-?[0-9]{1,3}(?:\.[0-9]+)?)\s*\Z")
_NUMBER_NOISE = re.compile(r"[^0-9+]")


class MicroformatWriter:
    """Writes items into a sink. Nesting is bounded by the parser, so the recursion here is too."""

    __slots__ = ("_base", "_sink")

    def __init__(self, sink: Sink, base: str) -> None:
        self._sink = sink
        self._base = base.partition("#")[0]

    def item(self, item: MicroformatItem) -> str | None:
        """The subject of an item, after its statements. None for one that says nothing: an unknown type, bare."""
        known = [kind for kind in item.types if kind in TYPES]
        if item.bare and not known:
            return None
        subject = (iri(f"{self._base}#{item.id}") if item.id else None) or self._sink.blank()
        for kind in item.types:
            self._sink.add(subject, TYPE, f"<{_type(kind, item)}>")
        between: dict[str, str] = {}
        for name, values in item.properties.items():
            bridge = next((BETWEEN[kind][name] for kind in known if name in BETWEEN.get(kind, ())), None)
            if bridge is not None:
                node = self._between(subject, bridge, between)
                self._values(node, name, f"<{bridge.value_property}>", values)
            else:
                self._values(subject, name, f"<{_property(name, item.types)}>", values)
        for child in item.children:
            self._child(subject, item, child)
        return subject

    def _between(self, subject: str, bridge: NodeBetween, between: dict[str, str]) -> str:
        node = between.get(bridge.property)
        if node is None:
            node = between[bridge.property] = self._sink.blank()
            self._sink.add(subject, f"<{bridge.property}>", node)
            self._sink.add(node, TYPE, f"<{bridge.type}>")
        return node

    def _child(self, subject: str, parent: MicroformatItem, child: MicroformatItem) -> None:
        node = self.item(child)
        if node is not None:
            posts = "h-feed" in parent.types and "h-entry" in child.types
            self._sink.add(subject, f"<{SCHEMA}blogPost>" if posts else f"<{PROFILE}mf2#child>", node)

    def _values(self, subject: str, name: str, predicate: str, values: list[Value]) -> None:
        for value in values:
            if isinstance(value, NestedItem):
                term = self._nested(value)
                other = NESTED.get((name, value.item.types[0])) or NESTED.get((name, ""))
            else:
                term, other = _term(name, value), None
            if term is None:
                continue
            self._sink.add(subject, f"<{other}>" if other else predicate, term)
            if isinstance(value, Picture) and value.alt:
                self._sink.add(term, f"<{SCHEMA}caption>", literal(value.alt))

    def _nested(self, value: NestedItem) -> str | None:
        subject = self.item(value.item)
        if subject is None:
            text = plain(value.value)
            return literal(text) if text else None
        position = _POSITION.match(plain(value.value))
        if position and "h-geo" in value.item.types and not value.item.properties:
            # Classic `<abbr class=geo title="lat;long">` has no parts of its own.
            self._sink.add(subject, f"<{SCHEMA}latitude>", literal(position[1]))
            self._sink.add(subject, f"<{SCHEMA}longitude>", literal(position[2]))
        return subject


def _term(name: str, value: Value) -> str | None:
    text = plain(value)
    if isinstance(value, Picture):
        return iri(text)
    if not text:
        return None
    if name in TEXTS:
        return literal(text)
    if name == "tel" and not _ADDRESS.match(text):
        number = _NUMBER_NOISE.sub("", text)
        return f"<tel:{number}>" if len(number) > 2 and number.rfind("+") < 1 else literal(text)
    if name == "email" and "@" in text and not text.lower().startswith("mailto:"):
        # The specification makes a URL of every u-*, so a bare address arrives as `http://the.page/name@host`.
        return iri(f"mailto:{text.rpartition('/')[2]}") or literal(text)
    if _ADDRESS.match(text):
        return iri(text) or literal(text)
    lexical, datatype = typed(text) if name in DATES else (text, "")
    return literal(lexical, datatype=XSD + datatype if datatype else "")


def _type(kind: str, item: MicroformatItem) -> str:
    organisation = item.properties.get("org")
    if kind == "h-card" and organisation and item.name is not None and plain(item.name) == plain(organisation[0]):
        # h-card, "organization contact info": a card whose name is its organisation describes that organisation.
        return f"{VCARD}Organization"
    return TYPES.get(kind, PROFILE + kind)


def _property(name: str, types: list[str]) -> str:
    for kind in types:
        target = PROPERTIES.get(kind, {}).get(name)
        if target is not None:
            return target
    return f"{PROFILE}{types[0]}#{name}"
