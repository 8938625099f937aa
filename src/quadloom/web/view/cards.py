"""What a found page is about, in a few words: its first thing with a type, and some facts of it.

A page of results needs ten of them, so most statements are never parsed: which kind of object a line of N-Quads has
shows in its first characters, and only the lines that are shown become terms. A card is kept by page and time of its
reading: first for a few seconds, since it may come from a view of the store that is older than the hit; once a later
view has said the same, for some minutes. Of a page of results half the CPU went into cards before.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

import msgspec

from quadloom.asking.entity import Value
from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import Hit
from quadloom.web.view.labels import NAMING
from quadloom.web.view.terms import is_iri, statements

_TYPE = f"<{PREFIXES['rdf']}type>"
_TYPED = 20  # typed things of a page that are looked at
_SAID = 20  # statements of one thing
_FACTS = 3
_LONGEST = 80  # characters of a fact
_LONGEST_LINE = 600  # a line that is longer holds a longer text, or such IRIs that the card can do without it
_KEPT_SECONDS = 5.0  # what a crawl writes is seen within this time everywhere
_CONFIRMED_SECONDS = 120.0
_KEPT = 5000
_NAMING = {f"<{predicate}>": place for place, predicate in enumerate(NAMING)}


class CardFact(msgspec.Struct, frozen=True):
    property: str
    value: Value


class Card(msgspec.Struct, frozen=True):
    iri: str
    label: str
    types: tuple[str, ...]
    facts: tuple[CardFact, ...]


class Cards:
    """Cards of hits, for many threads; a page that was read again has a new one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, float], tuple[float, Card | None]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, quads: QuadStore, hits: Sequence[Hit]) -> dict[str, Card]:
        """By the hit's URL, for those that tell of a thing with a type."""
        found = {hit.id: self._card(quads, hit) for hit in hits}
        return {url: made for url, made in found.items() if made is not None}

    def _card(self, quads: QuadStore, hit: Hit) -> Card | None:
        key, now = (hit.id, hit.fetched_at), self._clock()
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept[0] > now:
            return kept[1]
        made = card(quads, hit.id)
        seconds = _CONFIRMED_SECONDS if kept is not None and kept[1] == made else _KEPT_SECONDS
        with self._lock:
            self._kept[key] = (now + seconds, made)
            self._kept.move_to_end(key)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return made


def card(quads: QuadStore, page: str) -> Card | None:
    """Of the page's typed things the one that is named after it, else the first; None where it has none.

    Two lookups a hit: what such a thing says is read only for the one that is shown.
    """
    if not is_iri(page):
        return None
    graph = f"<{page}>"
    things: dict[str, list[str]] = {}
    for line in quads.match(None, _TYPE, None, graph, _TYPED):
        subject, _, kind, _ = line.split(" ", 3)
        if subject[0] == "<" and kind[0] == "<":
            things.setdefault(subject[1:-1], []).append(kind[1:-1])
    if not things:
        return None
    iri = min(things, key=lambda name: not name.startswith(page))
    return _card(iri, tuple(things[iri]), quads.match(f"<{iri}>", None, None, graph, _SAID))


def _card(iri: str, types: tuple[str, ...], said: Iterable[str]) -> Card:
    literals: dict[str, str] = {}  # the last line of each property, as its value is the one shown
    for line in said:
        _, predicate, object = line.split(" ", 2)
        if object[0] == '"':
            literals[predicate] = line
    naming = min((name for name in literals if name in _NAMING), key=_NAMING.__getitem__, default="")
    shown = [literals[naming]] if naming else []
    # One more than is shown: a fact that only repeats the name is left out.
    short = [line for name, line in literals.items() if name != naming and len(line) <= _LONGEST_LINE]
    parsed = [(found.predicate, found.object) for found in statements([*shown, *short[: _FACTS + 1]])]
    label = parsed.pop(0)[1].text if naming else ""
    facts = [CardFact(*pair) for pair in parsed if pair[1].text != label and len(pair[1].text) <= _LONGEST]
    return Card(iri, label, types, tuple(facts[:_FACTS]))
