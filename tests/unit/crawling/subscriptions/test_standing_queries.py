"""Standing queries: once per change of an answer, rarely when slow, visibly when they fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.crawling.subscriptions import standing_queries
from quadloom.crawling.subscriptions.standing_queries import StandingQueries, failure_of, lines_of
from quadloom.errors import QueryLimit
from quadloom.model.quads import Quads
from quadloom.model.subscription import Subscription
from quadloom.settings import Settings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.warehouse import Warehouse
from quadloom_lab.memory.catalog import MemoryCatalog
from quadloom_lab.memory.frontier import MemoryFrontier
from quadloom_lab.memory.outbox import MemoryOutbox

NOW = 1_000_000.0
QUERY = Subscription(id="q", query="SELECT …")


class QueryRun:
    """A standing query over an answer that the test changes, in a process that can be restarted."""

    def __init__(self) -> None:
        self.catalog = MemoryCatalog(MemoryFrontier(FrontierPolicy(), now=NOW))
        self.outbox = MemoryOutbox(self.catalog)
        self.now = NOW
        self.version = 0
        self.answer: list[str] = []
        self.error = ""
        self.asked = 0
        self.notices: list[str] = []
        self.restart()

    def restart(self) -> None:
        self.queries = StandingQueries(
            self._ask, self.catalog, self.outbox, clock=lambda: self.now, notice=self.notices.append
        )

    def _ask(self, _query: str) -> list[str]:
        self.asked += 1
        if self.error:
            raise QueryLimit(self.error)
        return self.answer

    def turn(self, subscription: Subscription = QUERY, *, wait: float = 100.0, changed: bool = True) -> int:
        self.now += wait
        self.version += changed
        return self.queries.turn([subscription], self.version)


@pytest.fixture
def run() -> QueryRun:
    return QueryRun()


def test_each_change_of_an_answer_is_reported_once(run: QueryRun) -> None:
    turns = []
    for run.answer in (["a", "b"], ["b", "a"], ["b", "c"]):
        run.restart()
        turns.append(run.turn())
    assert turns == [1, 0, 1]
    assert [(n.added, n.removed) for n in run.outbox.since(0)] == [(("a", "b"), ()), (("c",), ("a",))]


def test_an_unchanged_index_asks_nothing(run: QueryRun) -> None:
    for _ in range(3):
        run.turn(changed=False)
    assert run.asked == 1


def test_a_failing_query_is_visible_and_asked_again_with_growing_pauses(run: QueryRun) -> None:
    run.answer = ["a"]
    run.turn()
    run.error = "ended after 30 seconds"
    run.turn()
    first = failure_of(run.catalog, "q")
    assert first is not None and (first.attempts, first.error) == (1, "ended after 30 seconds")
    assert run.notices == ["the standing query q fails: ended after 30 seconds"]
    run.turn(wait=59.0)
    assert run.asked == 2, "within the pause"
    run.restart()
    run.turn(wait=0.5)
    assert run.asked == 2, "the pause survives a restart"
    for _ in range(12):
        failure = failure_of(run.catalog, "q")
        assert failure is not None
        run.turn(wait=failure.retry_at - run.now, changed=False)
    last = failure_of(run.catalog, "q")
    assert last is not None and last.attempts == 13 and last.since == first.since
    assert last.retry_at - run.now == 6 * 3600.0, "pauses double up to six hours"
    assert len(run.notices) == 1, "the same failure is reported once"


def test_after_a_recovery_everything_that_changed_is_reported(run: QueryRun) -> None:
    run.answer = ["a"]
    run.turn()
    run.error = "too slow"
    run.turn()
    run.error, run.answer = "", ["b"]
    assert run.turn(changed=False) == 1, "asked again although the indexes have not changed: the limits may have"
    assert failure_of(run.catalog, "q") is None
    assert run.notices[-1] == "the standing query q answers again"
    assert [(n.added, n.removed) for n in run.outbox.since(0)][-1] == (("b",), ("a",))


def test_another_query_under_the_same_id_starts_afresh(run: QueryRun) -> None:
    run.error = "too slow"
    run.turn()
    run.error = ""
    run.turn(Subscription(id="q", query="SELECT better …"), wait=1.0, changed=False)
    assert run.asked == 2


def test_answers_are_lines_of_the_real_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = "http://a.example/"
    lines = b"".join(
        b'<http://a.example/%d> <http://p.example/n> "%d" <http://a.example/> .\n' % (n, n) for n in range(5)
    )
    with Warehouse.open(tmp_path / "warehouse", settings=Settings()) as warehouse:
        warehouse.stores.quads.replace(Quads.of(graph, lines))
        warehouse.stores.quads.flush()
        ask = lambda query: lines_of(warehouse.ask.queries, query, warehouse.settings.limits)  # noqa: E731
        assert sorted(ask("SELECT ?o { ?s <http://p.example/n> ?o }")) == [f'"{n}"' for n in range(5)]
        assert ask("ASK { ?s <http://p.example/n> '7' }") == ["false"]
        assert len(ask("CONSTRUCT WHERE { ?s <http://p.example/n> ?o }")) == 5
        monkeypatch.setattr(standing_queries, "ROWS", 4)
        with pytest.raises(QueryLimit, match="more than 4 rows"):
            ask("SELECT ?o { ?s <http://p.example/n> ?o }")


def test_a_literal_with_a_line_separator_is_one_row(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path) as warehouse:
        line = '<http://a.example/> <http://a.example/p> "one\u2028row" <http://a.example/> .\n'
        warehouse.stores.quads.replace(Quads.of("http://a.example/", line.encode()))
        warehouse.stores.quads.flush()
        limits = warehouse.settings.limits
        for query in ("SELECT ?o { ?s ?p ?o }", "CONSTRUCT WHERE { ?s ?p ?o }"):
            (row,) = lines_of(warehouse.ask.queries, query, limits)
            assert "one\u2028row" in row
        assert lines_of(warehouse.ask.queries, "ASK { ?s ?p ?o }", limits) == ["true"]
