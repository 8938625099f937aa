"""Cards of search results."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import Hit
from quadloom.warehouse import Warehouse
from quadloom.web.view.cards import Card, CardFact, Cards, card_of
from quadloom_lab.memory.quads import MemoryQuads
from unit.web.web_fixture import BOOK, EVIL


def test_a_card_names_the_thing_and_says_a_few_facts(warehouse_path: Path) -> None:
    with Warehouse.read(warehouse_path) as warehouse:
        found = card_of(warehouse.stores.quads, BOOK)
        assert found is not None
        assert (found.iri, found.label) == (f"{BOOK}#it", "The Distant Lighthouse")
        assert found.types == ("http://schema.org/Book",)
        assert {fact.property: fact.value.text for fact in found.facts}["http://schema.org/isbn"] == "978-3"
        assert card_of(warehouse.stores.quads, "http://nowhere.example/") is None
        assert card_of(warehouse.stores.quads, "no iri> at all") is None


def test_hostile_literals_come_whole(warehouse_path: Path) -> None:
    with Warehouse.read(warehouse_path) as warehouse:
        found = card_of(warehouse.stores.quads, EVIL)
    assert found is not None and isinstance(found.label, str)
    assert all(isinstance(fact, CardFact) and len(fact.value.text) <= 80 for fact in found.facts)


def test_a_card_is_kept_for_seconds_and_made_anew_for_a_new_reading(
    warehouse_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import quadloom.web.view.cards as module

    now, looked = 0.0, 0

    def counted(quads: QuadStore, page: str) -> Card | None:
        nonlocal looked
        looked += 1
        return card_of(quads, page)

    monkeypatch.setattr(module, "card_of", counted)
    cards = Cards(lambda: now)
    with Warehouse.read(warehouse_path) as warehouse:
        for at, expected in ((1.0, 1), (1.0, 1), (2.0, 2)):
            assert BOOK in cards.of(warehouse.stores.quads, [Hit(id=BOOK, score=1.0, fetched_at=at)])
            assert looked == expected
        # Seconds later a newer view is read once more; what it confirms is cached for minutes, but not for ever.
        for at, expected in ((6.0, 3), (100.0, 3), (130.0, 4)):
            now = at
            cards.of(warehouse.stores.quads, [Hit(id=BOOK, score=1.0, fetched_at=2.0)])
            assert looked == expected


def test_a_card_that_the_next_view_denies_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first may come from a view that is older than the hit."""
    import quadloom.web.view.cards as module

    said = iter([None, Card("urn:x", "new", (), ()), Card("urn:x", "new", (), ())])
    monkeypatch.setattr(module, "card_of", lambda _quads, _page: next(said))
    now = 0.0
    cards, hit = Cards(lambda: now), Hit(id="http://a.example/", score=1.0, fetched_at=1.0)
    quads = MemoryQuads()
    assert cards.of(quads, [hit]) == {}
    for at in (6.0, 12.0, 100.0):
        now = at
        assert cards.of(quads, [hit])[hit.id].label == "new"
    assert next(said, None) is None, "asked three times: at 0, 6 and 12 seconds"
