"""`quadloom crawl --ray ADDRESS`: the crawl by workers that Ray places and restarts."""

from __future__ import annotations

import signal
import threading
from functools import partial
from pathlib import Path
from types import FrameType

from quadloom.cli.session import Session
from quadloom.cluster.ray_workers import on_ray
from quadloom.crawl.report import CrawlReport
from quadloom.errors import SettingsError
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse


def crawl_on_ray(s: Session, starts: list[str], address: str, workers: int) -> int:
    """Queue the seeds, have them crawled, and tell what the workers did. Ends when nobody has anything left."""
    if not s.settings.stores.frontier.startswith("postgresql://"):
        raise SettingsError(
            "workers on Ray need a database that they all reach",
            hint="set stores.frontier to postgresql://user@host:5432/database; see docs/howto/many-machines.md",
        )
    interrupted = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        interrupted.set()
        s.say_at_once("asking the workers to finish what is under way")

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
            warehouse.requests.add_seeds(starts)
        work = partial(_work, s.settings, s.warehouse.absolute())
        reports = on_ray(address, workers, work, interrupted=interrupted.is_set)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    pages, quads = sum(report.pages for report in reports), sum(report.quads for report in reports)
    if s.json:
        s.emit({"workers": len(reports), "pages": pages, "quads": quads, "reports": reports})
    else:
        s.say(f"{pages} pages · {quads} quads by {len(reports)} workers")
    return 130 if interrupted.is_set() else 0


def _work(settings: Settings, folder: Path, number: int, stopped: threading.Event) -> CrawlReport:
    """In an actor: one worker, in a directory of its own, until nobody has anything left."""
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
