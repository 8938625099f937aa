"""The user's link queries are answered without waiting for the next commit of the indexes, and strategies change while
a crawl runs. The crawl is that of `test_session`, in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from quadloom.crawling.run.control import ControlRequest
from quadloom.crawling.run.session import CrawlSession
from quadloom.errors import QuadloomError
from quadloom.settings import IndexSettings, Settings
from quadloom.warehouse import Warehouse
from unit.crawling.run.test_session import SEED, Web
from unit.crawling.test_runs import QUICK as SETTINGS
from unit.crawling.test_runs import RealClock

NEVER = IndexSettings(text_commit_seconds=3600.0, links="all")
OVER_PAGE = "SELECT ?target { GRAPH ?page { ?page <urn:quadloom:link:plain> ?target } }"
OVER_INDEX = "# over: index\nSELECT ?target { GRAPH ?page { ?page dcterms:references ?target } }"


def session(warehouse: Warehouse, settings: Settings) -> CrawlSession:
    clock = RealClock()
    warehouse.requests.add_seeds([SEED])
    return CrawlSession(
        warehouse.stores, settings, warehouse.scope, lambda: warehouse.ask.queries, fetch=Web(clock).unit, clock=clock
    )


@pytest.mark.parametrize("query", [OVER_PAGE, OVER_INDEX], ids=["page", "index"])
def test_queries_do_not_wait_for_the_next_commit(tmp_path: Path, query: str) -> None:
    (tmp_path / "mine.rq").write_text(query, encoding="utf-8")
    crawl = replace(SETTINGS.crawl, strategies=[str(tmp_path / "mine.rq")])
    settings = replace(SETTINGS, crawl=crawl, index=NEVER)
    with Warehouse.open(tmp_path / "w", settings=settings) as warehouse:
        read = [item.visit.href for item in session(warehouse, settings)]
        assert len(read) == 4, "with a commit an hour, each hop would take an hour"
        assert warehouse.maintenance.verify().ok


def test_strategies_change_while_the_crawl_runs(tmp_path: Path) -> None:
    settings = replace(SETTINGS, crawl=replace(SETTINGS.crawl, strategies=["feeds"]))
    (tmp_path / "mine.rq").write_text(OVER_PAGE, encoding="utf-8")
    wanted: list[object] = ["external", str(tmp_path / "mine.rq")]
    answers: list[object] = []
    with Warehouse.open(tmp_path / "w", settings=settings) as warehouse:
        running = session(warehouse, settings)

        def ask(**arguments: object) -> object:
            request = ControlRequest("strategies", arguments)
            return running._commands.answer(request, lambda action: action())

        read = []
        for settlement in running:
            read.append(settlement.visit.href)
            if not answers:
                assert ask() == {"strategies": ["feeds"], "pages": 0}
                with pytest.raises(QuadloomError, match="nonsense"):
                    ask(strategies=["nonsense"], stored=True)
                answers.append(ask(strategies=wanted, stored=True))
        assert answers == [{"strategies": wanted, "pages": 1}]
        assert len(read) == 4, "links of the first page were found after it had been read"
        assert warehouse.stores.catalog.backlog.counts() == {}
