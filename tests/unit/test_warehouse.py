"""The warehouse as a library has it: what is said to `crawl` holds for that crawl."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quadloom.crawling.run.scope import CrawlScope, stored_scope
from quadloom.documents.extract import seed_discoveries
from quadloom.errors import SettingsError, UsageError
from quadloom.settings import CrawlSettings, GuardSettings, Settings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.opened import Stores, open_stores
from quadloom.warehouse import Warehouse
from quadloom_lab.memory.frontier import MemoryFrontier

SEED = "http://127.0.0.1:9/"
DEEP = "http://127.0.0.1:9/a/b"


def test_limits_of_a_later_crawl_change_the_scope_of_known_seeds(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path, settings=Settings(guard=GuardSettings(allow=["127.0.0.0/8"]))) as warehouse:
        warehouse.requests.add_seeds([SEED])
        assert warehouse.scope.current.verdict(DEEP, "127.0.0.1:9", 2) is None
        for limits, verdict in (({"max_depth": 1}, "depth"), ({"scope": "page", "max_depth": 9}, "page")):
            running = warehouse.crawl([SEED], **limits)
            running.close()
            refused = warehouse.scope.current.verdict(DEEP, "127.0.0.1:9", 2)
            assert refused is not None and verdict in refused
        running = warehouse.crawl(scope="host")
        running.close()
        assert warehouse.scope.current.verdict(DEEP, "127.0.0.1:9", 2) is None


def test_a_scope_that_was_narrowed_between_two_crawls_holds_for_what_is_queued(tmp_path: Path) -> None:
    far, forbidden = "http://far.example/", "http://near.example/private/1"

    def opened(crawl: CrawlSettings) -> Warehouse:
        return Warehouse.open(tmp_path, settings=Settings(crawl=crawl))

    def states(warehouse: Warehouse) -> list[str | None]:
        warehouse.crawl([]).close()
        found = [warehouse.stores.frontier.explain(url, 1e10) for url in ("http://near.example/", far, forbidden)]
        return [explained.state if explained is not None else None for explained in found]

    with opened(CrawlSettings(scope="any")) as warehouse:
        warehouse.requests.add_seeds(["http://near.example/"])
        assert warehouse.stores.frontier.add(seed_discoveries([far, forbidden]), 0.0).new == 2
    with opened(CrawlSettings(scope="host", exclude=["/private/*"])) as warehouse:
        assert states(warehouse) == ["queued", "parked", "parked"]
    with opened(CrawlSettings(scope="any")) as warehouse:  # parked, not lost
        assert states(warehouse) == ["queued", "queued", "queued"]


def test_seeds_that_another_machine_adds_while_a_worker_opens_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frontier has then begun with an older scope, and refuses every link until the scope is loaded again."""
    settings = Settings(crawl=CrawlSettings(scope="host"), guard=GuardSettings(allow=["127.0.0.0/8"]))

    @contextmanager
    def opened(*arguments: object, **options: object) -> Iterator[Stores]:
        with open_stores(*arguments, **options) as stores:  # type: ignore[arg-type]
            before = stored_scope(settings.crawl, stores.catalog)
            elsewhere = MemoryFrontier(FrontierPolicy(), now=0.0)
            CrawlScope(settings.crawl, stores.catalog, elsewhere, before).add_seeds([SEED], 0.0)
            yield stores

    monkeypatch.setattr("quadloom.warehouse.open_stores", opened)
    with Warehouse.open(tmp_path, settings=settings) as warehouse:
        assert warehouse.stores.frontier.add(seed_discoveries([DEEP]), 0.0).refused == 1
        assert warehouse.scope.reload()
        assert warehouse.stores.frontier.add(seed_discoveries([DEEP]), 0.0).new == 1


@pytest.mark.parametrize(
    "limits", [{"max_page": 3}, {"max_pages": "many"}, {"max_depth": -1}, {"order": "random"}, {"scope": "moon"}]
)
def test_limits_that_make_no_sense_are_refused(tmp_path: Path, limits: dict[str, Any]) -> None:
    with Warehouse.open(tmp_path) as warehouse:
        with pytest.raises(UsageError):
            warehouse.crawl([SEED], **limits)
        assert warehouse.scope.seeds() == []


def test_a_strategy_that_cannot_be_used_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    broken = tmp_path / "broken.rq"
    broken.write_text("SELECT ?target WHERE { ?target", encoding="utf-8")
    for strategies in (["foo"], ["external,feeds"], [str(tmp_path / "missing.rq")], [str(broken)]):
        crawl = CrawlSettings(strategies=strategies)
        with Warehouse.open(tmp_path / "w", settings=Settings(crawl=crawl)) as warehouse:
            with pytest.raises(SettingsError):
                warehouse.crawl([SEED])
            assert warehouse.scope.seeds() == []
            assert warehouse.stores.frontier.stats(0.0).total == 0
    with Warehouse.open(tmp_path / "w") as warehouse:
        with pytest.raises(SettingsError):
            warehouse.crawl([SEED], strategies=["foo"])  # type: ignore[arg-type]
        assert warehouse.settings.crawl.strategies == ["all"]


def test_seeds_added_again_cost_no_more_than_the_first_time(tmp_path: Path) -> None:
    urls = [f"https://host{number % 97}.example/page/{number}" for number in range(40_000)]
    seconds = []
    with Warehouse.open(tmp_path) as warehouse:
        for _ in range(2):
            started = time.process_time()
            warehouse.requests.add_seeds(urls)
            seconds.append(time.process_time() - started)
        assert warehouse.scope.seeds() == urls
    assert seconds[1] < 3 * seconds[0]  # quadratic: ten times
