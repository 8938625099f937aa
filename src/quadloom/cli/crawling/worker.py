"""`quadloom worker`, one of many machines that crawl together; and `quadloom crawl --ray`, which has Ray start them."""

from __future__ import annotations

import signal
import threading
from functools import partial
from pathlib import Path
from types import FrameType

from quadloom.cli.crawling.crawl import chosen_phases, follow_crawl, require_contact
from quadloom.cli.crawling.live import finish
from quadloom.cli.options import MaxSeconds, Phases
from quadloom.cli.session import Session, session
from quadloom.crawling.cluster.ray_workers import on_ray
from quadloom.crawling.run.report import CrawlReport
from quadloom.errors import SettingsError, UsageError
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse


def worker(
    *,
    cluster: str | None = None,
    forever: bool = False,
    phases: Phases = (),
    max_seconds: MaxSeconds = None,
) -> int:
    """Crawl a fair share of the sites of a shared warehouse, until stopped.

    Parameters
    ----------
    cluster
        the database that all workers share, postgresql://user@host:5432/database [default: stores.frontier]
    forever
        also keep known pages fresh, within freshness.bandwidth
    """
    s = session()
    if cluster is not None and not cluster.startswith("postgresql://"):
        raise UsageError(
            "--cluster takes the address of a PostgreSQL database",
            hint="write postgresql://user@host:5432/database; put the password into ~/.pgpass or PGPASSWORD",
        )
    address = {"stores.frontier": cluster, "stores.catalog": "postgresql:"} if cluster is not None else {}
    s.override({**address, "crawl.max_seconds": max_seconds})
    chosen = chosen_phases(phases)
    with Warehouse.open(s.warehouse, settings=s.settings, phases=chosen) as warehouse:
        if "fetch" in chosen:
            require_contact(s, warehouse, [])
        running = warehouse.work(forever=forever, notice=s.say)
        report, interrupted = follow_crawl(s, running)
    return finish(s, report, interrupted, None)


def crawl_on_ray(s: Session, starts: list[str], address: str, workers: int) -> int:
    """Queue the seeds, run workers on Ray until none has URLs left, and print their results."""
    if not s.settings.stores.frontier.startswith("postgresql://"):
        raise SettingsError(
            "workers on Ray need a database that all machines can reach",
            hint="set stores.frontier to postgresql://user@host:5432/database; see docs/howto/many-machines.md",
        )
    interrupted = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        interrupted.set()
        s.say_at_once("the workers finish what is in progress and stop")

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with s.open() as warehouse:
            warehouse.requests.add_seeds(starts)
        work = partial(_work, s.settings, s.warehouse.absolute())
        reports = on_ray(address, workers, work, interrupted=interrupted.is_set)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    pages, quads = sum(report.pages for report in reports), sum(report.quads for report in reports)
    result = {"workers": len(reports), "pages": pages, "quads": quads, "reports": reports}
    s.report(result, f"{pages:,} pages · {quads:,} quads by {len(reports)} workers")
    return 130 if interrupted.is_set() else 0


def _work(settings: Settings, folder: Path, number: int, stopped: threading.Event) -> CrawlReport:
    """In a Ray actor: run one worker in a directory of its own until no worker has URLs left."""
    with Warehouse.open(folder / f"ray-{number}", settings=settings) as warehouse:
        running = warehouse.crawl([])
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.2):
                if stopped.is_set():
                    running.stop()

        watcher = threading.Thread(target=watch, name="stop-watch", daemon=True)
        watcher.start()
        for _ in running:
            pass
        ended.set()
        watcher.join()
        return running.report()
