"""What a search hit is about, in a few words: its first thing with a type, and some facts about it.

A page of results needs ten cards, so most statements are never parsed: the first characters of an object in a line of
N-Quads show its kind, and only the lines that are shown become terms. A card is cached by page and time of its visit:
first for a few seconds, since it may come from a view of the store that is older than the hit; when a later view has
given the same card, for two minutes. Without the cache and the shortcut half the CPU time of a page of results was
spent on cards.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
from markupsafe import Markup, escape

from quadloom.asking.entity import Value
from quadloom.asking.sparql.prefixes import PREFIXES, both_schemes, shorten
from quadloom.asking.things.paths import NAMES, type_name, words
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import Hit
from quadloom.web.view.filters import date_words
from quadloom.web.view.terms import direction, entity_link, is_iri, statements

_TYPE = f"<{PREFIXES['rdf']}type>"
_MAX_TYPED = 20  # typed things of a page that are considered
_MAX_STATEMENTS = 20  # of one thing
_MAX_FACTS = 3
_MAX_FACT_LENGTH = 80  # characters of a fact
_MAX_LINE = 600  # a longer line holds a text or IRIs too long for a card
_CACHE_SECONDS = 5.0  # what a crawl writes is visible everywhere within this time
_CONFIRMED_SECONDS = 120.0
_MAX_CACHED = 5000
_LABEL_RANKS = {f"<{spelling}>": place for place, name in enumerate(NAMES) for spelling in both_schemes(name)}


class CardFact(msgspec.Struct, frozen=True):
    property: str
    value: Value


class Card(msgspec.Struct, frozen=True):
    iri: str
    label: str
    types: tuple[str, ...]
    facts: tuple[CardFact, ...]


class _CachedCard(NamedTuple):
    until: float
    card: Card | None


class Cards:
    """Cards of hits, for many threads; a page that was visited again gets a new one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cached: OrderedDict[tuple[str, float], _CachedCard] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, quads: QuadStore, hits: Sequence[Hit]) -> dict[str, Card]:
        """By the hit's URL, for pages that describe a thing with a type."""
        cards = {hit.id: self._card(quads, hit) for hit in hits}
        return {url: card for url, card in cards.items() if card is not None}

    def _card(self, quads: QuadStore, hit: Hit) -> Card | None:
        key, now = (hit.id, hit.fetched_at), self._clock()
        with self._lock:
            cached = self._cached.get(key)
        if cached is not None and cached.until > now:
            return cached.card
        card = card_of(quads, hit.id)
        seconds = _CONFIRMED_SECONDS if cached is not None and cached.card == card else _CACHE_SECONDS
        with self._lock:
            self._cached[key] = _CachedCard(now + seconds, card)
            self._cached.move_to_end(key)
            if len(self._cached) > _MAX_CACHED:
                self._cached.popitem(last=False)
        return card


def card_of(quads: QuadStore, page: str) -> Card | None:
    """Of the page's typed things the one whose IRI begins with the page's, otherwise the first; None if it has none.

    Two lookups per hit: only the statements of the thing that is shown are read.
    """
    if not is_iri(page):
        return None
    graph = f"<{page}>"
    things: dict[str, list[str]] = {}
    for line in quads.match(None, _TYPE, None, graph, _MAX_TYPED):
        subject, _, kind, _ = line.split(" ", 3)
        if subject[0] == "<" and kind[0] == "<":
            things.setdefault(subject[1:-1], []).append(kind[1:-1])
    if not things:
        return None
    iri = min(things, key=lambda name: not name.startswith(page))
    return _card(iri, tuple(things[iri]), quads.match(f"<{iri}>", None, None, graph, _MAX_STATEMENTS))


def _card(iri: str, types: tuple[str, ...], lines: Iterable[str]) -> Card:
    literals: dict[str, str] = {}  # the last line of each property: its value is the one shown
    for line in lines:
        _, predicate, object = line.split(" ", 2)
        if object[0] == '"':
            literals[predicate] = line
    naming = min((name for name in literals if name in _LABEL_RANKS), key=_LABEL_RANKS.__getitem__, default="")
    shown = [literals[naming]] if naming else []
    # One more than is shown: a fact that only repeats the label is left out.
    short = [line for name, line in literals.items() if name != naming and len(line) <= _MAX_LINE]
    parsed = [(found.predicate, found.object) for found in statements([*shown, *short[: _MAX_FACTS + 1]])]
    label = parsed.pop(0)[1].text if naming else ""
    facts = [CardFact(*pair) for pair in parsed if pair[1].text != label and len(pair[1].text) <= _MAX_FACT_LENGTH]
    return Card(iri, label, types, tuple(facts[:_MAX_FACTS]))


@lru_cache(maxsize=2048)  # a third of the cost of a page of results, if it were written each time
def card_line(card: Card) -> Markup:
    """The card as a page of results shows it."""
    facts = "".join(f' <span class="fact">{_fact(fact)}</span>' for fact in card.facts)
    kind, name = card.types[0], card.label or shorten(card.iri)
    return Markup(
        f'<p class="entity-card"><a href="{escape(entity_link(card.iri))}">{escape(name)}</a> '
        f'<span class="tag" title="{escape(kind)}">{escape(type_name(kind))}</span>{facts}</p>'
    )


def _fact(fact: CardFact) -> str:
    language = fact.value.language
    spoken = f' lang="{escape(language)}"' if language else ""
    text = escape(date_words(fact.value.text))
    name = escape(words(fact.property))
    return f'<span class="quiet">{name}</span> <span{spoken} dir="{direction(language)}">{text}</span>'
