"""The entity view: sources, contradictions, inverse links, consolidation."""

from __future__ import annotations

import pytest

from quadloom.asking.entity import as_nquads, describe_entity
from quadloom.errors import NothingFound
from quadloom_lab.memory.quads import MemoryQuads
from unit.asking.conftest import SCHEMA, A, B, Stores, quads

THING = A + "#x"


def test_statements_come_with_their_sources(stores: Stores) -> None:
    entity = describe_entity(stores.quads, THING)
    assert entity.label == 'Opera "night"'
    assert entity.types == (SCHEMA + "Event",)
    assert set(entity.sources) == {A, B}
    assert [(link.subject, link.predicate) for link in entity.inverse] == [(B + "#x", SCHEMA + "organizer")]


def test_pages_that_differ_contradict_each_other(stores: Stores) -> None:
    (contradiction,) = describe_entity(stores.quads, THING).contradictions
    assert contradiction.iri == SCHEMA + "startDate"
    assert {(s.value.text, s.sources) for s in contradiction.statements} == {
        ("2026-05-01", (A,)),
        ("2026-05-02", (B,)),
    }


def test_two_values_of_one_page_are_no_contradiction() -> None:
    store = MemoryQuads()
    store.replace(quads(A, f'<{THING}> <urn:x:tag> "a"', f'<{THING}> <urn:x:tag> "b"'))
    store.replace(quads(B, f'<{THING}> <urn:x:tag> "c"', f'<{THING}> <urn:x:name> "Ada  Lovelace"'))
    store.replace(quads("http://e.example/", f'<{THING}> <urn:x:name> "ada lovelace"'))
    assert describe_entity(store, THING).contradictions == ()


def test_languages_do_not_contradict_each_other() -> None:
    store = MemoryQuads()
    store.replace(quads(A, f'<{THING}> <urn:x:name> "Vienna"@en'))
    store.replace(quads(B, f'<{THING}> <urn:x:name> "Wien"@de'))
    assert describe_entity(store, THING).contradictions == ()


def test_consolidation_follows_same_as_both_ways(stores: Stores) -> None:
    for name, other in ((THING, B + "#x"), (B + "#x", THING)):
        entity = describe_entity(stores.quads, name, consolidate=True)
        assert entity.names == (name, other)
        assert "https://schema.org/Event" in entity.types
    assert describe_entity(stores.quads, THING).names == (THING,)


def test_consolidation_by_a_shared_mailbox() -> None:
    store = MemoryQuads()
    box = "<http://xmlns.com/foaf/0.1/mbox> <mailto:a@x.example>"
    store.replace(quads(A, f"<{A}#me> {box}"))
    store.replace(quads(B, f"<{B}#me> {box}"))
    assert describe_entity(store, A + "#me", consolidate=True).names == (A + "#me", B + "#me")


def test_an_unknown_thing() -> None:
    with pytest.raises(NothingFound):
        describe_entity(MemoryQuads(), "http://nowhere.example/")


def test_statements_again(stores: Stores) -> None:
    again = as_nquads(describe_entity(stores.quads, THING))
    stored = [line + "\n" for line in stores.quads.match(f"<{THING}>", None, None, None)]
    assert sorted(again.decode().splitlines(keepends=True)) == sorted(stored)
