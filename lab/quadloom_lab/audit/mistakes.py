"""Descriptions with one planted mistake of each kind, on any type that can have it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from quadloom.documents.checks.vocabulary import PropertyTerm, Vocabulary
from quadloom_lab.audit.descriptions import description, expected
from quadloom_lab.markup import Described


class Planted(NamedTuple):
    """A mistake. `token` stands on the line where it is; `about`: the property that it concerns, if not the token."""

    kind: str
    code: str
    token: str
    thing: Described
    about: str = ""


def planted(schema: Vocabulary, kind: str, seed: int) -> Planted | None:
    """A mistake of this kind; None if chance found no place for it. The thing stands alone, within another, or after
    a correct one of the same type."""
    rng = Random(f"{kind} {seed}")
    for _ in range(60):
        made = MISTAKES[kind](schema, rng)
        if made is not None:
            return made._replace(kind=kind, thing=_placed(schema, made.thing, rng))
    return None


def _placed(schema: Vocabulary, thing: Described, rng: Random) -> Described:
    match rng.randrange(3):
        case 0:
            return thing
        case 1:
            return {"@type": "WebPage", "name": "The page", "mainEntity": thing}
    kind = thing["@type"]
    if not isinstance(kind, str) or kind not in schema.types or schema.superseded.get(kind):
        kind = "CreativeWork"
    other = description(schema, kind, rng, depth=0)
    return {"@type": "WebPage", "name": "The page", "mainEntity": [other, thing]}


def _types_with(schema: Vocabulary, known: PropertyTerm) -> list[str]:
    return [
        name
        for name in schema.types
        if name not in schema.superseded
        and "DataType" not in schema.ancestors(name)
        and not known.domains.isdisjoint(schema.ancestors(name))
        and "Thing" in schema.ancestors(name)
    ]


def _any_type(schema: Vocabulary, rng: Random) -> str:
    names = [name for name in schema.types if name not in schema.superseded and "Thing" in schema.ancestors(name)]
    return rng.choice(sorted(names))


def misspelt(word: str, rng: Random) -> str:
    """One letter too few, too many, or two that changed places."""
    at = rng.randrange(1, max(2, len(word) - 1))
    return (
        word[:at] + word[at + 1 :],
        word[:at] + "q" + word[at:],
        word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
    )[rng.randrange(3)]


def _unknown_type(schema: Vocabulary, rng: Random) -> Planted | None:
    kind = _any_type(schema, rng)
    wrong = rng.choice([misspelt(kind, rng), kind[0].lower() + kind[1:], f"{kind}s"])
    if wrong in schema.types or wrong in schema.members or wrong in schema.properties:
        return None
    thing = description(schema, kind, rng, depth=0)
    if any(wrong in str(value) for name, value in thing.items() if name != "@type"):
        return None
    return Planted("", "schema-unknown-type", wrong, {**thing, "@type": wrong})


def _unknown_property(schema: Vocabulary, rng: Random) -> Planted | None:
    thing = description(schema, _any_type(schema, rng), rng, depth=0)
    old = rng.choice([name for name in thing if name != "@type"])
    wrong = rng.choice([misspelt(old, rng), old[0].upper() + old[1:], f"{old}Value"])
    if wrong in schema.properties or wrong in str(thing) or wrong in schema.types:
        return None
    return Planted(
        "", "schema-unknown-property", wrong, {(wrong if name == old else name): one for name, one in thing.items()}
    )


def _wrong_domain(schema: Vocabulary, rng: Random) -> Planted | None:
    kind = _any_type(schema, rng)
    thing = description(schema, kind, rng, depth=0)
    name = rng.choice(sorted(schema.properties))
    known = schema.properties[name]
    value = expected(schema, known, rng, 1)
    if (
        known.superseded
        or value is None
        or schema.fits((kind,), known.domains | {"Role"})
        or f'"{name}"' in str(thing).replace("'", '"')
        or isinstance(value, dict)
    ):
        return None
    return Planted("", "schema-wrong-domain", f"{name}", {**thing, name: value})


def _with_value(
    code: str, values: tuple[str, ...], fits: Callable[[PropertyTerm], bool]
) -> Callable[[Vocabulary, Random], Planted | None]:
    """A mistake that is a value of one of the properties that fit."""

    def plant(schema: Vocabulary, rng: Random) -> Planted | None:
        names = [one for one in schema.properties.values() if fits(one) and not one.superseded]
        known = rng.choice(sorted(names, key=lambda one: one.name))
        types = _types_with(schema, known)
        if not types:
            return None
        value = rng.choice(values)
        thing = description(schema, rng.choice(sorted(types)), rng, depth=0)
        thing.pop(known.name, None)
        return Planted("", code, value, {**thing, known.name: value}, known.name)

    return plant


def _named(*names: str) -> Callable[[PropertyTerm], bool]:
    return lambda known: known.name in names


def _dated(known: PropertyTerm) -> bool:
    return bool(known.data & {"Date", "DateTime"}) and not known.data & {"Text", "Time", "Number", "URL"}


def _timed(known: PropertyTerm) -> bool:
    return known.data == {"Time"}


def _lasting(known: PropertyTerm) -> bool:
    return "Duration" in known.things and not known.data


def _linking(known: PropertyTerm) -> bool:
    return known.data == {"URL"} and not known.enumerations


def _counting(known: PropertyTerm) -> bool:
    return known.data == {"Number"} and not known.things and known.rule is None


def _wrong_member(schema: Vocabulary, rng: Random) -> Planted | None:
    closed = [
        one
        for one in schema.properties.values()
        if one.members and not one.data and not one.things and not one.superseded and _types_with(schema, one)
    ]
    known = rng.choice(sorted(closed, key=lambda one: one.name))
    wrong = misspelt(rng.choice(sorted(known.members)), rng)
    if wrong in schema.members or wrong in schema.types:
        return None
    thing = description(schema, rng.choice(sorted(_types_with(schema, known))), rng, depth=0)
    value = rng.choice([wrong, f"https://schema.org/{wrong}", f"http://schema.org/{wrong}"])
    return Planted("", "schema-unknown-member", wrong, {**thing, known.name: value}, known.name)


def _other_enumeration(schema: Vocabulary, rng: Random) -> Planted | None:
    closed = [
        one
        for one in schema.properties.values()
        if one.members and not one.data and not one.things and not one.superseded and _types_with(schema, one)
    ]
    known = rng.choice(sorted(closed, key=lambda one: one.name))
    wrong = rng.choice(sorted(schema.members))
    if wrong in known.members or wrong in schema.types:
        return None
    thing = description(schema, rng.choice(sorted(_types_with(schema, known))), rng, depth=0)
    return Planted("", "schema-wrong-value", wrong, {**thing, known.name: f"https://schema.org/{wrong}"}, known.name)


def _wrong_thing(schema: Vocabulary, rng: Random) -> Planted | None:
    names = [
        one for one in schema.properties.values() if one.things and not one.superseded and _types_with(schema, one)
    ]
    known = rng.choice(sorted(names, key=lambda one: one.name))
    kind = _any_type(schema, rng)
    if schema.accepts(known, (kind,)) or schema.fits((kind,), frozenset(("Role", "Enumeration", "Quantity"))):
        return None
    thing = description(schema, rng.choice(sorted(_types_with(schema, known))), rng, depth=0)
    inner: Described = {"@type": kind, "name": "Inner thing"}
    return Planted("", "schema-wrong-value", known.name, {**thing, known.name: inner})


def _superseded(schema: Vocabulary, rng: Random) -> Planted | None:
    known = rng.choice([one for one in schema.properties.values() if one.superseded])
    types = _types_with(schema, known)
    if not types:
        return None
    thing = description(schema, rng.choice(sorted(types)), rng, depth=0)
    value = expected(schema, known, rng, 0)
    if value is None or isinstance(value, dict):
        return None
    return Planted("", "schema-superseded", known.name, {**thing, known.name: value})


def _undeclared(schema: Vocabulary, rng: Random) -> Planted | None:
    wrong = rng.choice(["gs1x:weight", "ours:size", "xyz:kind", "shop:shelf"])
    return Planted(
        "", "prefix-undeclared", wrong, {**description(schema, _any_type(schema, rng), rng, 0), wrong: "one"}
    )


def _rating(schema: Vocabulary, rng: Random) -> Planted | None:
    value = rng.choice(["9.5", "-1", "87"])
    kind = rng.choice(["Rating", "AggregateRating", "EmployerAggregateRating"])
    thing: Described = {"@type": kind, "ratingValue": value, "ratingCount": "12", "itemReviewed": "x"}
    if rng.randrange(2):
        thing |= {"bestRating": "5", "worstRating": "1"}
    if kind == "Rating":
        del thing["ratingCount"], thing["itemReviewed"]
    return Planted("", "rating-out-of-bounds", value, thing, "ratingValue")


_ORDERED = (
    ("Event", "startDate", "endDate"),
    ("Offer", "validFrom", "validThrough"),
    ("Person", "birthDate", "deathDate"),
    ("Organization", "foundingDate", "dissolutionDate"),
    ("JobPosting", "datePosted", "validThrough"),
    ("Action", "startTime", "endTime"),
)


def _order(schema: Vocabulary, rng: Random) -> Planted | None:
    above, begin, end = rng.choice(_ORDERED)
    kinds = [name for name in schema.types if above in schema.ancestors(name) and name not in schema.superseded]
    thing = description(schema, rng.choice(sorted(kinds)), rng, depth=0)
    first, last = rng.choice(
        [
            ("2026-05-12", "2025-05-11"),
            ("2026-05-12T20:00", "2026-05-11T22:00"),
            ("2026-05-12T20:00:00+02:00", "2026-05-12T19:00:00+02:00"),
        ]
    )
    return Planted("", "date-order", last, {**thing, begin: first, end: last}, end)


_COMPLETE: tuple[Described, ...] = (
    {
        "@type": "Event",
        "name": "Fair",
        "startDate": "2026-05-12",
        "location": {"@type": "Place", "name": "Park", "address": "Main street 1"},
    },
    {"@type": "Recipe", "name": "Bread", "image": "https://example.org/bread.jpg"},
    {"@type": "VideoObject", "name": "Film", "thumbnailUrl": "https://example.org/t.jpg", "uploadDate": "2026-05-12"},
    {
        "@type": "JobPosting",
        "title": "Baker",
        "description": "Bread at night.",
        "datePosted": "2026-05-12",
        "hiringOrganization": {"@type": "Organization", "name": "Bakery"},
        "jobLocation": {"@type": "Place", "address": "Main street 1"},
    },
    {"@type": "Course", "name": "Baking", "description": "From flour to bread."},
    {"@type": "Dataset", "name": "Ovens", "description": "All ovens of the town, with their age and size, by year."},
    {"@type": "LocalBusiness", "name": "Bakery", "address": "Main street 1"},
)


def _missing(schema: Vocabulary, rng: Random) -> Planted | None:
    thing = dict(rng.choice(_COMPLETE))
    name = rng.choice([name for name in thing if name != "@type"])
    del thing[name]
    return Planted("", "schema-missing-required", str(thing["@type"]), thing, name)


MISTAKES: dict[str, Callable[[Vocabulary, Random], Planted | None]] = {
    "unknown type": _unknown_type,
    "unknown property": _unknown_property,
    "wrong domain": _wrong_domain,
    "date": _with_value("bad-date", ("12 May 2026", "2026-13-01", "05/12/2026", "next Monday", "2026-02-30"), _dated),
    "time": _with_value("bad-date", ("half past seven", "25:00", "7pm"), _timed),
    "duration": _with_value("bad-duration", ("90 minutes", "1:30", "P1H", "PT", "2h"), _lasting),
    "member": _wrong_member,
    "member of another enumeration": _other_enumeration,
    "thing": _wrong_thing,
    "currency": _with_value(
        "bad-currency", ("Euro", "€", "EURO", "usd"), _named("priceCurrency", "currency", "salaryCurrency")
    ),
    "country": _with_value("bad-country", ("UK", "XQ", "EN"), _named("addressCountry")),
    "language": _with_value("bad-language", ("english", "xx", "en_US"), _named("inLanguage")),
    "price": _with_value(
        "bad-price", ("19,90", "€ 19.90", "19.90 EUR", "from 19", "1.299,00"), _named("price", "lowPrice", "highPrice")
    ),
    "gtin": _with_value("bad-gtin", ("4006381333932", "12345", "40063813339X1"), _named("gtin", "gtin13", "gtin14")),
    "isbn": _with_value("bad-isbn", ("978-0-306-40615-8", "0306406153", "ISBN unknown"), _named("isbn")),
    "email": _with_value("bad-email", ("info at example.org", "nobody@", "example.org"), _named("email")),
    "latitude": _with_value("bad-coordinate", ("152.3", "52° 22′ N", "-91"), _named("latitude")),
    "longitude": _with_value("bad-coordinate", ("181", "4,89", "east"), _named("longitude")),
    "url": _with_value("bad-url", ("see below", "htp://example.org/a", "none of them"), _linking),
    "number": _with_value("schema-wrong-value", ("a dozen", "12 or so", "many"), _counting),
    "rating as text": _with_value("bad-number", ("four", "4/5", "4,5"), _named("ratingValue")),
    "expired": _with_value("offer-expired", ("2019-12-31", "2024-06-30"), _named("priceValidUntil")),
    "rating": _rating,
    "order of dates": _order,
    "superseded": _superseded,
    "prefix": _undeclared,
    "missing": _missing,
}
