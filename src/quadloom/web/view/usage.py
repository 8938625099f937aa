"""How often each class and property is used: for completions, the vocabularies page and example queries.

The crawl maintains these counts while it writes (`quadloom.asking.statistics`); here they are read and cached for a few
seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.statistics import Summary
from quadloom.web.view.terms import is_iri, vocabulary_of

MOST_TERMS = 1000
_CACHE_SECONDS = 10.0


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

    def vocabularies(self) -> list[VocabularyUsage]:
        spaces = dict.fromkeys(vocabulary_of(use.iri) for use in (*self.properties, *self.classes))
        found = []
        for space in spaces:
            classes = tuple(use for use in self.classes if vocabulary_of(use.iri) == space)
            properties = tuple(use for use in self.properties if vocabulary_of(use.iri) == space)
            count = sum(use.count for use in (*classes, *properties))
            found.append(VocabularyUsage(space, shorten(space + "x").removesuffix("x"), classes, properties, count))
        return sorted(found, key=lambda vocabulary: -vocabulary.count)


class UsageCache:
    """`read` gives the counts as they are now; it is called at most once in ten seconds, by one thread at a time."""

    def __init__(self, read: Callable[[], Summary], clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._usage: Usage | None = None
        self._until = 0.0
        self._lock = threading.Lock()

    def current(self) -> Usage:
        with self._lock:
            if self._usage is None or self._clock() > self._until:
                summary = self._read()
                self._usage = Usage(summary, _uses(summary.classes), _uses(summary.properties))
                self._until = self._clock() + _CACHE_SECONDS
            return self._usage


def _uses(counts: tuple[tuple[str, int], ...]) -> tuple[TermUsage, ...]:
    return tuple(TermUsage(iri, shorten(iri), count) for iri, count in counts if is_iri(iri))
