"""A crawl of seconds leaves ranked pages, and `quadloom importance` is seen by `why` at once."""

from __future__ import annotations

from pathlib import Path

from quadloom.settings import Settings
from quadloom.warehouse import Warehouse
from quadloom_lab.commands.bench import bench_settings
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process


def ranking_of(warehouse: Warehouse, url: str) -> dict[str, str]:
    return {reason.what: reason.value for reason in warehouse.requests.why(url).reasons if reason.part == "ranking"}


def test_a_short_crawl_ends_with_ranked_pages(tmp_path: Path) -> None:
    spec = WebSpec(seed=5, pages=40, hosts=3, crawl_delay=0.0, slow_seconds=0.0, faults=False, traps=False)
    with serve_in_process(FakeWeb(spec), logging=False, prerender=True) as serving:
        settings = bench_settings(Settings(), serving.web, 1)
        seed = serving.web.seeds[0]
        with Warehouse.open(tmp_path, settings=settings) as warehouse:
            for _ in warehouse.crawl(serving.web.seeds):
                pass
            assert "importance" in ranking_of(warehouse, seed)
        (tmp_path / "links/standings.npy").unlink()
        with Warehouse.open(tmp_path, settings=settings) as warehouse:
            assert "importance" not in ranking_of(warehouse, seed)
            assert warehouse.rank().pages
            assert "importance" in ranking_of(warehouse, seed)
