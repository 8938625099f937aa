"""The mapping from mf2 types and properties to RDF terms, as tables. docs/reference/microformats.md explains it.

People, organisations and addresses become vCard, everything else schema.org where that has an accepted term. What has
none keeps its own name in the namespace `http://microformats.org/profile/`, so nothing an author marked is lost.
"""

from __future__ import annotations

from collections.abc import Mapping

SCHEMA = "http://schema.org/"
VCARD = "http://www.w3.org/2006/vcard/ns#"
ACTIVITY = "https://www.w3.org/ns/activitystreams#"
PROFILE = "http://microformats.org/profile/"


def _schema(same: str = "", **renamed: str) -> dict[str, str]:
    """Properties that are called the same in schema.org, and `mf2_name="schemaName"` for the rest."""
    table = {name: SCHEMA + name for name in same.split()}
    table.update({name.replace("_", "-"): SCHEMA + target for name, target in renamed.items()})
    return table


def _vcard(same: str, **renamed: str) -> dict[str, str]:
    table = {name: VCARD + name for name in same.split()}
    table.update({name.replace("_", "-"): VCARD + target for name, target in renamed.items()})
    return table


_ADDRESS = "street-address extended-address post-office-box locality region postal-code country-name label"
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
    f"sort-string tz rev latitude longitude organization-name organization-unit {_ADDRESS}",
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
    "h-adr": _vcard(f"latitude longitude {_ADDRESS}", geo="hasGeo", name="label"),
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
# Properties that schema.org hangs on a node in between: (property to that node, its type, property on it).
BETWEEN: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "h-product": {"price": (f"{SCHEMA}offers", f"{SCHEMA}Offer", f"{SCHEMA}price")},
    "h-review": {
        name: (f"{SCHEMA}reviewRating", f"{SCHEMA}Rating", f"{SCHEMA}{name}{'Value' if name == 'rating' else 'Rating'}")
        for name in ("rating", "best", "worst")
    },
}
# Properties that mean something else where the value is an item: (property, type of that item or "" for any).
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
