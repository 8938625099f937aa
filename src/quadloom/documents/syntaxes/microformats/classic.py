"""The classic microformats (hCard, hCalendar, hAtom, …) as tables: root class to mf2 type, class to mf2 property.

The tables follow the "parser compatibility" sections of the h-* pages on microformats.org. A classic root has only
these names; an mf2 root has only prefixed ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal

Kind = Literal["p", "u", "dt", "e"]
Property = tuple[Kind, str]

ROOTS: Mapping[str, str] = {
    "adr": "h-adr",
    "geo": "h-geo",
    "hentry": "h-entry",
    "hfeed": "h-feed",
    "hnews": "h-news",
    "hproduct": "h-product",
    "hrecipe": "h-recipe",
    "hresume": "h-resume",
    "hreview": "h-review",
    "hreview-aggregate": "h-review-aggregate",
    "vcard": "h-card",
    "vevent": "h-event",
}
# What a review is about, if the author gave it no root of its own.
ITEM = "h-item"


def _table(texts: str = "", urls: str = "", dates: str = "", **renamed: str) -> dict[str, Property]:
    """Names that keep their name by kind, and `classic_name="kind-name"` for those that do not (`_` stands for `-`)."""
    table: dict[str, Property] = {}
    table.update((name, ("p", name)) for name in texts.split())
    table.update((name, ("u", name)) for name in urls.split())
    table.update((name, ("dt", name)) for name in dates.split())
    kinds: dict[str, Kind] = {"p": "p", "u": "u", "dt": "dt", "e": "e"}
    for name, target in renamed.items():
        kind, _, new = target.partition("-")
        table[name.replace("_", "-")] = (kinds[kind], new)
    return table


_ADDRESS = "post-office-box extended-address street-address locality region postal-code country-name"
_PLACE = "geo latitude longitude"

_CLASSES: Mapping[str, Mapping[str, Property]] = {
    "h-adr": _table(_ADDRESS),
    "h-geo": _table("latitude longitude"),
    "h-card": _table(
        f"honorific-prefix given-name additional-name family-name honorific-suffix nickname category adr {_ADDRESS} "
        f"label {_PLACE} tel note org organization-name organization-unit role mailer tz sort-string class agent key",
        "url email logo photo uid sound",
        "bday rev",
        fn="p-name",
        title="p-job-title",
    ),
    "h-entry": _table(
        "author category",
        dates="published updated",
        entry_title="p-name",
        entry_summary="p-summary",
        entry_content="e-content",
    ),
    # The last two are not in the specification: blogs whose whole page is one hfeed name it with them.
    "h-feed": _table("author category", "url photo", site_title="p-name", site_description="p-summary"),
    "h-event": _table(
        f"description category location attendee contact organizer {_PLACE}",
        "url",
        "duration",
        summary="p-name",
        dtstart="dt-start",
        dtend="dt-end",
    ),
    "h-news": _table(f"entry source-org dateline {_PLACE}"),
    "h-product": _table("brand category description review price listing", "url photo identifier", fn="p-name"),
    "h-recipe": _table(
        "ingredient yield summary author nutrition category",
        "photo",
        "duration published",
        fn="p-name",
        instructions="e-instructions",
    ),
    "h-resume": _table("contact summary education experience skill affiliation publication"),
    "h-review": _table(
        "item rating best worst",
        summary="p-name",
        reviewer="p-author",
        description="e-content",
        dtreviewed="dt-published",
    ),
    "h-review-aggregate": _table("item rating average best worst count votes", "url", summary="p-name"),
    ITEM: _table("", "url photo", fn="p-name"),
}
_RELATIONS: Mapping[str, Mapping[str, Property]] = {
    "h-entry": {"bookmark": ("u", "url"), "tag": ("p", "category")},
    "h-feed": {"tag": ("p", "category")},
    "h-news": {"principles": ("u", "principles")},
    "h-recipe": {"tag": ("p", "category")},
    "h-review": {"bookmark": ("u", "url"), "tag": ("p", "category")},
}
# Properties whose value is an item of that type, even if its author gave it no root class of its own.
_ITEMS: Mapping[str, Mapping[str, str]] = {
    "h-entry": {"author": "h-card"},
    "h-product": {"review": "h-review"},
    "h-recipe": {"author": "h-card"},
    "h-resume": {"contact": "h-card", "affiliation": "h-card", "education": "h-event", "experience": "h-event"},
    "h-review": {"item": ITEM, "reviewer": "h-card"},
    "h-review-aggregate": {"item": ITEM},
}


# Every class name that means something to some classic root; an element with none of them needs no closer look.
NAMES = frozenset(ROOTS).union({"include"}, *_CLASSES.values())


class ClassicVocabulary:
    """What the classes and link relations inside one classic root mean; several root classes on one element unite."""

    __slots__ = ("_classes", "_relations", "items")

    def __init__(self, types: Iterable[str]) -> None:
        self._classes: dict[str, list[Property]] = {}
        self._relations: dict[str, Property] = {}
        self.items: dict[str, str] = {}  # class names that make an element an item, and its type
        for kind in types:
            for name, target in _CLASSES[kind].items():
                self._classes.setdefault(name, []).append(target)
            self._relations.update(_RELATIONS.get(kind, {}))
            self.items.update(_ITEMS.get(kind, {}))

    def properties(self, tokens: Iterable[str]) -> list[Property]:
        """The properties that class names stand for, each once."""
        found: dict[Property, None] = {}
        for token in tokens:
            for target in self._classes.get(token, ()):
                found[target] = None
        return list(found)

    def relations(self, tokens: Iterable[str]) -> list[tuple[str, Property]]:
        """Link relation and property, for the relations that stand for one."""
        return [(token, self._relations[token]) for token in tokens if token in self._relations]


@lru_cache(maxsize=64)
def vocabulary_of(types: tuple[str, ...]) -> ClassicVocabulary:
    """The vocabulary of a root with these types; nearly every page has the same few."""
    return ClassicVocabulary(types)
