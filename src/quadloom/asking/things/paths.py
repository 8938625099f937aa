"""Columns of a table of things: paths of properties, such as `schema:offers/schema:price`.

A path is written as in SPARQL: short names joined by slashes, IRIs of unknown vocabularies in angle brackets. http and
https of schema.org are one vocabulary here; the http form stands for both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from quadloom.asking.sparql.prefixes import PREFIXES, both_schemes, expand, shorten
from quadloom.errors import UsageError

PropertyPath = tuple[str, ...]  # IRIs of properties
MOST_STEPS = 4
BLANK = PREFIXES["ql"] + "blank:"
RDF_TYPE = PREFIXES["rdf"] + "type"
SCHEMA = PREFIXES["schema"]
NAMES = tuple(
    PREFIXES[prefix] + word
    for prefix, word in (
        ("schema", "name"), ("rdfs", "label"), ("foaf", "name"), ("skos", "prefLabel"), ("schema", "headline"),
        ("dcterms", "title"), ("dc", "title"), ("vcard", "fn"), ("rss", "title"), ("og", "title"),
        ("schema", "legalName"), ("schema", "alternateName"),
    )
)  # fmt: skip
CURRENCIES = (SCHEMA + "priceCurrency", SCHEMA + "currency")  # of a price, beside it
SAME = (PREFIXES["owl"] + "sameAs", SCHEMA + "sameAs")
# Types of parts of other things. They are listed after the types that people look for.
PART_TYPES = frozenset(
    SCHEMA + name
    for name in (
        "BreadcrumbList", "ListItem", "ItemList", "Offer", "AggregateOffer", "AggregateRating", "Rating",
        "PostalAddress", "GeoCoordinates", "GeoShape", "ImageObject", "SearchAction", "EntryPoint", "ReadAction",
        "ViewAction", "WebPage",
        "WebSite", "ContactPoint", "QuantitativeValue", "PropertyValue", "OpeningHoursSpecification", "Duration",
        "MonetaryAmount", "UnitPriceSpecification", "PriceSpecification", "NutritionInformation", "HowToStep", "Brand",
        "InteractionCounter", "SpeakableSpecification", "WPHeader", "WPFooter", "WPSideBar", "SiteNavigationElement",
        "CollectionPage", "ItemPage", "ProfilePage", "PotentialAction", "PropertyValueSpecification", "DefinedRegion",
        "OfferShippingDetails", "MerchantReturnPolicy", "VirtualLocation",
    )
) | frozenset(PREFIXES["rdf"] + name for name in ("Seq", "Bag", "Alt", "List", "Property", "Statement")) | frozenset(
    (PREFIXES["rss"] + "channel", PREFIXES["rss"] + "item", PREFIXES["rss"] + "image", PREFIXES["rdfs"] + "Class",
     PREFIXES["foaf"] + "Document", PREFIXES["vcard"] + "Address", PREFIXES["owl"] + "Ontology")
)  # fmt: skip

_STEP = re.compile(r"<[^<>\s]+>|[^/<>\s]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_IRI = re.compile(r'[^<>"{}|\\^`\x00-\x20]+')


def canonical(iri: str) -> str:
    """The http form of a term of schema.org; any other IRI as it is."""
    return "http" + iri[5:] if iri.startswith("https://schema.org/") else iri


def parse_path(text: str) -> PropertyPath:
    """`schema:offers/schema:price`; a bare `price` is schema.org's. Raises `UsageError`."""
    written = _STEP.findall(text)
    steps = tuple(canonical(_property(step)) for step in written)
    if (
        "/".join(written) != text.strip()
        or not 1 <= len(steps) <= MOST_STEPS
        or not all(_IRI.fullmatch(step) and ":" in step for step in steps)
    ):
        raise UsageError(f"not a property: {text[:100]!r}", hint="write schema:name, or schema:offers/schema:price")
    return steps


def _property(step: str) -> str:
    return expand(step) if ":" in step or step.startswith("<") else SCHEMA + step


def write_path(path: PropertyPath) -> str:
    return "/".join(term(step) for step in path)


def term(iri: str) -> str:
    """An IRI as SPARQL can read it: `schema:name`, or in angle brackets."""
    short = shorten(iri)
    return short if short != iri and not short.endswith(":") else f"<{iri}>"


def alternatives(iri: str, known: frozenset[str]) -> str:
    """A step of a property path that takes both spellings of schema.org, if `known` says that both are used."""
    found = spellings((iri,), known)
    return term(iri) if len(found) == 1 else f"({'|'.join(map(term, found))})"


def spellings(iris: Sequence[str], known: frozenset[str]) -> list[str]:
    """The IRIs, and the other spellings of them that are used."""
    return [found for iri in iris for found in both_schemes(iri) if found == iri or found in known]


def sparql_path(path: PropertyPath, known: frozenset[str] = frozenset()) -> str:
    return "/".join(alternatives(step, known) for step in path)


def best_name(values: Mapping[str, str]) -> str:
    """The value of the property that names a thing best, of property → value; empty if none of them does."""
    return next((values[name] for name in NAMES if name in values), "")


@lru_cache(maxsize=4096)  # a page of results shows a hundred, mostly the same ones
def words(iri: str) -> str:
    """`http://schema.org/startDate` → `start date`; for people, so neither prefix nor humps."""
    tail = iri.rstrip("/#").replace("#", "/").rpartition("/")[2].rpartition(":")[2] or iri
    plain = _HUMP.sub(" ", tail).replace("_", " ").replace("-", " ").strip()
    return plain if plain.isupper() else plain.lower() or iri


@lru_cache(maxsize=4096)
def type_name(iri: str) -> str:
    """`http://schema.org/SportsEvent` → `Sports event`."""
    found = words(iri)
    return found[:1].upper() + found[1:]


def path_label(path: PropertyPath) -> str:
    """The last step, unless that is only the name of the step before it."""
    step = path[-2] if len(path) > 1 and path[-1] in NAMES else path[-1]
    return words(step)


_UTC = re.compile(r"(\d{4}-\d\d-\d\dt\d\d:\d\d)(?::00)?(?:\.0+)?(?:z|\+00:?00)")


def comparable(text: str) -> str:
    """Spacing, case and the spelling of a time make no difference between two values."""
    plain = " ".join(text.split()).casefold()
    match = _UTC.fullmatch(plain)
    return match.group(1) + "z" if match else plain
