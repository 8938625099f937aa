"""How often each class and property is used: for completions, the vocabularies page and example queries.

The crawl keeps these counts as it writes (`quadloom.asking.statistics`); here they are read and kept for a few seconds.
"""

from __future__ import annotations

import threading
import time
from weakref import WeakKeyDictionary

import msgspec

from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.statistics import Summary
from quadloom.web.server.state import SiteState
from quadloom.web.view.terms import is_iri, vocabulary_of

_KEPT = 10.0
_MOST = 1000
_lock = threading.Lock()


class TermUsage(msgspec.Struct, frozen=True):
    iri: str
    short: str
    count: int


class VocabularyUsage(msgspec.Struct, frozen=True):
    iri: str
    short: str
    classes: tuple[TermUsage, ...]
    properties: tuple[TermUsage, ...]
    count: int


class Usage(msgspec.Struct, frozen=True):
    """Most used first."""

    summary: Summary
    classes: tuple[TermUsage, ...] = ()
    properties: tuple[TermUsage, ...] = ()
    at: float = 0.0

    def vocabularies(self) -> list[VocabularyUsage]:
        spaces = dict.fromkeys(vocabulary_of(use.iri) for use in (*self.properties, *self.classes))
        found = []
        for space in spaces:
            classes = tuple(use for use in self.classes if vocabulary_of(use.iri) == space)
            properties = tuple(use for use in self.properties if vocabulary_of(use.iri) == space)
            count = sum(use.count for use in (*classes, *properties))
            found.append(VocabularyUsage(space, shorten(space + "x").removesuffix("x"), classes, properties, count))
        return sorted(found, key=lambda vocabulary: -vocabulary.count)


_known: WeakKeyDictionary[SiteState, Usage] = WeakKeyDictionary()


def usage(desk: SiteState) -> Usage:
    """As of now, or of a few seconds ago."""
    with _lock:
        known = _known.get(desk)
        if known is None or time.monotonic() - known.at > _KEPT:
            summary = desk.reader.ask(lambda warehouse: warehouse.ask.statistics(limit=_MOST))
            known = Usage(summary, _uses(summary.classes), _uses(summary.properties), time.monotonic())
            _known[desk] = known
        return known


def _uses(counts: tuple[tuple[str, int], ...]) -> tuple[TermUsage, ...]:
    return tuple(TermUsage(iri, shorten(iri), count) for iri, count in counts if is_iri(iri))
