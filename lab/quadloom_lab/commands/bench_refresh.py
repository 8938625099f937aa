"""`quadloom bench refresh`: what a visit costs that finds a new page, one that finds the same bytes, and a 304.

Three crawls of one fake web: the first reads it, the second asks with validators, the third without, as for a server
that has none. Pages of hosts without validators come with 200 in the second, too; the table says how many visits of
each crawl found nothing new.
"""

from __future__ import annotations

import resource
import sqlite3
import tempfile
import time
from pathlib import Path

import msgspec

from quadloom.cli.crawling.crawl import follow_crawl
from quadloom.cli.session import Session, session
from quadloom.crawling.run.report import CrawlReport
from quadloom.settings import Settings
from quadloom.stores.backends import DATABASE
from quadloom.warehouse import Warehouse
from quadloom_lab.commands.bench import Hosts, Pages, Seed, bench_settings
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process


class RefreshFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One crawl: CPU-ms per visit by phase, the memory of the owning process, and the size of the quads."""

    crawl: str
    visits: int
    unchanged: int
    cpu_ms: dict[str, float]
    total_ms: float
    owner_megabytes: int
    bytes_per_statement: int


def refresh(*, pages: Pages = 3000, hosts: Hosts = 40, seed: Seed = 1) -> None:
    """Crawl a fake web three times; print CPU-ms per visit: new pages, with validators, without."""
    s = session()
    spec = WebSpec(seed=seed, pages=pages, hosts=hosts, crawl_delay=0.0, slow_seconds=0.0, faults=False, traps=False)
    found: list[RefreshFigures] = []
    with (
        tempfile.TemporaryDirectory(prefix="quadloom-bench-") as folder,
        serve_in_process(FakeWeb(spec), logging=False, prerender=True) as serving,
    ):
        settings = bench_settings(s.settings, serving.web, workers=1)
        path = Path(folder) / "warehouse"
        found.append(_crawled(s, "first", path, settings, serving.web.seeds))
        found.append(_crawled(s, "again, with validators", path, settings))
        with sqlite3.connect(path / DATABASE) as database:
            database.execute("UPDATE url SET etag='', last_modified=''")
        found.append(_crawled(s, "again, without", path, settings))
    if s.json:
        s.emit([msgspec.structs.asdict(row) for row in found])
        return
    for row in found:
        phases = "  ".join(f"{phase} {cost:.2f}" for phase, cost in row.cpu_ms.items())
        share = row.unchanged / max(1, row.visits)
        s.write(f"{row.crawl}\t{row.total_ms:.2f} ms\t{phases}\t{row.visits} visits, {share:.0%} unchanged")
    s.write(f"owner {found[-1].owner_megabytes} MB\t{found[-1].bytes_per_statement} bytes a statement")


def _crawled(s: Session, name: str, path: Path, settings: Settings, seeds: list[str] | None = None) -> RefreshFigures:
    with Warehouse.open(path, settings=settings) as warehouse:
        if seeds is None:
            warehouse.requests.refresh(read_before=time.time())
        report, _ = follow_crawl(s, warehouse.crawl(seeds or []))
        statements = len(warehouse.stores.quads)
        folder = warehouse.stores.places.quads
    return _figures(name, report, sum(file.stat().st_size for file in folder.iterdir()), statements)


def _figures(name: str, report: CrawlReport, size: int, statements: int) -> RefreshFigures:
    visits = max(1, report.phases.get("fetch", 0))
    costs = {phase: round(seconds * 1000 / visits, 3) for phase, seconds in report.cpu.items()}
    return RefreshFigures(
        crawl=name,
        visits=visits,
        unchanged=report.unchanged,
        cpu_ms=costs,
        total_ms=round(sum(costs.values()), 3),
        owner_megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        bytes_per_statement=size // max(1, statements),
    )
