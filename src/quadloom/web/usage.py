"""How often each class and property is used: for completions, the vocabularies page and VoID.

Counted by two queries, which run like any visitor's, in a process that can be killed; the counts are kept for a minute.
"""

from __future__ import annotations

import threading
import time
from weakref import WeakKeyDictionary

import msgspec

from quadloom.asking.prefixes import shorten
from quadloom.web.desk import Desk
from quadloom.web.terms import is_iri, vocabulary_of

_KEPT = 60.0
_MOST = 300
_CLASSES = f"SELECT ?iri (COUNT(*) AS ?n) {{ ?s a ?iri }} GROUP BY ?iri ORDER BY DESC(?n) LIMIT {_MOST}"
_PROPERTIES = f"SELECT ?iri (COUNT(*) AS ?n) {{ ?s ?iri ?o }} GROUP BY ?iri ORDER BY DESC(?n) LIMIT {_MOST}"
_lock = threading.Lock()


class Use(msgspec.Struct, frozen=True):
    iri: str
    short: str
    count: int


class Vocabulary(msgspec.Struct, frozen=True):
    iri: str
    short: str
    classes: tuple[Use, ...]
    properties: tuple[Use, ...]
    count: int


class Usage(msgspec.Struct, frozen=True):
    classes: tuple[Use, ...] = ()
    properties: tuple[Use, ...] = ()
    at: float = 0.0

    def vocabularies(self) -> list[Vocabulary]:
        """Most used first."""
        spaces = dict.fromkeys(vocabulary_of(use.iri) for use in (*self.properties, *self.classes))
        found = []
        for space in spaces:
            classes = tuple(use for use in self.classes if vocabulary_of(use.iri) == space)
            properties = tuple(use for use in self.properties if vocabulary_of(use.iri) == space)
            count = sum(use.count for use in (*classes, *properties))
            found.append(Vocabulary(space, shorten(space + "x").removesuffix("x"), classes, properties, count))
        return sorted(found, key=lambda vocabulary: -vocabulary.count)


_known: WeakKeyDictionary[Desk, Usage] = WeakKeyDictionary()


def usage(desk: Desk) -> Usage:
    """Counted now, or within the last minute. Raises `QueryLimit` where a huge store takes too long."""
    with _lock:
        known = _known.get(desk)
        if known is None or time.monotonic() - known.at > _KEPT:
            known = Usage(_counted(desk, _CLASSES), _counted(desk, _PROPERTIES), time.monotonic())
            _known[desk] = known
        return known


def _counted(desk: Desk, query: str) -> tuple[Use, ...]:
    with desk.queries.ask(query, format="json", client="quadloom") as answer:
        rows = answer.values()
    return tuple(Use(iri, shorten(iri), int(count)) for iri, count in rows if is_iri(iri))
