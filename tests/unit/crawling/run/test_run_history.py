"""What is kept of each run of a warehouse."""

from __future__ import annotations

from pathlib import Path

from quadloom.crawling.run.report import CrawlReport
from quadloom.crawling.run.run_history import RUNS, RunHistory, runs_of
from quadloom.warehouse import Warehouse


def test_a_long_run_keeps_a_short_curve_and_all_its_time(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "w") as warehouse:
        catalog = warehouse.stores.catalog
        history = RunHistory(catalog, 1000.0)
        now, written = 1000.0, 0
        for second in range(4000):
            now = 1000.0 + second
            if history.is_due(now):
                history.write(CrawlReport(pages=2 * second, failed=1), now)
                written += 1
        assert written < 700, "the longer a run, the rarer it is written"
        (run,) = runs_of(catalog)
        assert run.state == "running", "so it stays if the crawl is killed now"
        history.end(CrawlReport(pages=8000, failed=1), now)
        (run,) = runs_of(catalog)
        assert (run.state, run.pages, run.failed, run.seconds) == ("ended", 8000, 1, 3999.0)
        assert len(run.points) <= 120 and run.points[0].at < 1200 and run.points[-1].at == now
        assert all(1.9 < point.rate < 2.1 for point in run.points[:-1])


def test_a_crawl_that_visits_nothing_is_no_run_and_old_runs_go(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "w") as warehouse:
        catalog = warehouse.stores.catalog
        RunHistory(catalog, 1.0).end(CrawlReport(), 2.0)
        assert runs_of(catalog) == []
        for start in range(1, 106):
            RunHistory(catalog, float(start)).end(CrawlReport(pages=start), start + 1.0)
        assert len(RUNS.keys(catalog)) == 100
        assert [run.pages for run in runs_of(catalog, 2)] == [105, 104]
