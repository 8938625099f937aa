"""Running counts equal a count of the store, whatever was added, replaced and removed."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from quadloom.crawling.topical.topic import SCORE
from quadloom.model.quads import Quads
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.schema import SCHEMA
from quadloom.stores.statistics import OPEN, STATISTICS, Statistics, mark_complete
from quadloom_lab.memory.quads import MemoryQuads
from thoroughness import examples

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
triples = st.one_of(
    st.builds("<urn:s:{}> {} <urn:c:{}>".format, st.integers(0, 3), st.just(TYPE), st.integers(0, 3)),
    st.builds('<urn:s:{}> <urn:p:{}> "a b {}"'.format, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),
)
steps = st.lists(st.tuples(st.integers(0, 3), st.lists(triples, max_size=6, unique=True)), max_size=12)


def page(number: int, lines: list[str]) -> Quads:
    graph = f"http://x.example/{number}"
    return Quads.of(graph, "".join(sorted(f"{line} <{graph}> .\n" for line in lines)).encode())


@settings(max_examples=examples(30, 200), deadline=None)
@given(steps)
def test_sums_equal_a_recount(changes: list[tuple[int, list[str]]]) -> None:
    store, statistics = MemoryQuads(), Statistics()
    for number, lines in changes:
        statistics.apply(store.replace(page(number, lines)))
    recounted = Statistics.recounted(store)
    assert +statistics.classes == recounted.classes
    assert +statistics.properties == recounted.properties
    again = STATISTICS.decode(statistics.encode())
    assert (again.classes, again.properties) == (recounted.classes, recounted.properties)


def test_what_the_warehouse_says_itself_is_not_counted() -> None:
    store = MemoryQuads()
    store.replace(page(1, ['<urn:s:1> <urn:p:1> "a"']))
    for graph, predicate in (("urn:quadloom:pages", "urn:quadloom:status"), ("urn:quadloom:topic:t", SCORE)):
        store.replace(Quads.of(graph, f'<http://x.example/1> <{predicate}> "1" <{graph}> .\n'.encode()))
    assert Statistics.recounted(store).properties == {"urn:p:1": 1}


def test_after_a_crash_the_store_is_counted_anew(tmp_path: Path) -> None:
    database = SqliteDatabase.open(tmp_path / "x.db", SCHEMA)
    store, catalog = MemoryQuads(), SqliteCatalog(database)
    first = Statistics.resume(catalog, store)
    store.replace(page(1, [f"<urn:s:1> {TYPE} <urn:c:1>"]))  # written, but the process ended before it was counted
    assert not first.classes
    resumed = Statistics.resume(catalog, store)
    assert resumed.classes == {"urn:c:1": 1}
    mark_complete(catalog)
    assert OPEN.get(catalog) is None
    assert Statistics.saved(catalog).classes == {"urn:c:1": 1}
    database.close()
