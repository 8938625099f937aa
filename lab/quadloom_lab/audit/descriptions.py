"""A correct description of a thing of any type, with values that its properties expect.

What is written is decided by the tables of schema.org alone, so that a check is proved for all types and not for the
examples that somebody thought of.
"""

from __future__ import annotations

from random import Random

from quadloom.documents.checks.vocabulary import PropertyTerm, Vocabulary
from quadloom_lab.markup import Described

_TEXTS = {
    "price": "19.90",
    "lowPrice": "12.00",
    "highPrice": "30.00",
    "minPrice": "5",
    "maxPrice": "8.50",
    "priceCurrency": "EUR",
    "salaryCurrency": "USD",
    "currency": "GBP",
    "inLanguage": "de-AT",
    "addressCountry": "NL",
    "gtin": "4006381333931",
    "gtin8": "96385074",
    "gtin12": "036000291452",
    "gtin13": "4006381333931",
    "gtin14": "10012345678902",
    "isbn": "978-0-306-40615-7",
    "issn": "2049-3630",
    "latitude": "52.37",
    "longitude": "4.89",
    "email": "info@example.org",
    "ratingValue": "4",
    "bestRating": "5",
    "worstRating": "1",
    "duns": "150483782",
    "elevation": "12",
    "startTime": "2026-05-12T18:00",
    "endTime": "2026-05-12T20:00",
}
# The second of two dates must not be before the first.
_LATER = frozenset(
    ("endDate", "validThrough", "availabilityEnds", "deathDate", "dissolutionDate", "endTime", "coverageEndTime")
)
_SCALARS = {
    "Text": "A plain text",
    "URL": "https://example.org/there",
    "Number": "12.5",
    "Boolean": "true",
    "Date": "2026-05-12",
    "DateTime": "2026-05-12T19:30:00+02:00",
    "Time": "19:30",
}
_MOST = 7  # properties of one thing


def description(schema: Vocabulary, kind: str, rng: Random, depth: int = 1) -> Described:
    """A thing of this type with some of its properties. `depth`: how far things within it are described."""
    shape = schema.shape((kind,))
    space = schema.namespaces[0]
    names = sorted(one.name for term, one in shape.items() if term.startswith(f"<{space}") and not one.superseded)
    chosen = rng.sample(names, min(_MOST, len(names)))
    thing: Described = {"@type": kind, "name": f"The {kind}"}
    for name in chosen:
        value = expected(schema, shape[f"<{space}{name}>"], rng, depth)
        if value is not None:
            thing[name] = value
    return thing


def expected(schema: Vocabulary, known: PropertyTerm, rng: Random, depth: int) -> object | None:
    """A value that a property expects, of one of its kinds; None if that would nest too deep."""
    if known.name in _TEXTS:
        return _TEXTS[known.name]
    if known.name == "additionalType":
        return None
    choices: list[object] = []
    for kind in known.ranges:
        data = {"Text", "Number", "Boolean", "Date", "DateTime", "Time"} & schema.ancestors(kind)
        if kind == "URL":
            choices.append(_SCALARS["URL"])
        elif data:
            choices.append(_SCALARS[sorted(data)[0]])
        elif kind == "Duration":
            choices.append("PT1H30M")
        elif "Enumeration" in schema.ancestors(kind):
            members = sorted(name for name, of in schema.members.items() if kind in of)
            if members:
                choices.append(f"https://schema.org/{rng.choice(members)}")
        elif depth > 0 and kind in schema.types:
            choices.append(description(schema, kind, rng, depth - 1))
    if not choices:
        return None
    value = rng.choice(choices)
    if known.name in _LATER and isinstance(value, str) and value[:4] == "2026":
        value = f"2027{value[4:]}"
    return value
