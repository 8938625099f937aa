"""`quadloom bench phases`: table 2 of MultiCrawler. Every phase runs alone, and the table says what balance it implies.

The paper had a server for each phase and measured pages per second of it. Here each phase runs by itself on the same
warehouse, taking what the one before it has left in the catalog and the archive; what counts is the CPU that a page
takes, so the figures are those of one core. Settle and start of a phase's processes are in its figure.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from quadloom.cli.session import session
from quadloom.crawling.run.session import RunningCrawl
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse
from quadloom_lab.commands.bench import Folder, Hosts, Pages, Seed, bench_settings
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process

# Harth, Umbrich, Decker: MultiCrawler (2006), table 2: pages per second of one server.
PAPER = {"fetch": 38.0, "detect": 460.0, "transform": 5.0, "index": 92.0, "extract": 260.0}


class PhaseFigures(msgspec.Struct, frozen=True):
    """`per_core`: pages a second that one core does; `ratio`: to the fastest phase; `cores` of this machine that the
    phase needs if all of them share it in balance. The last three are the paper's own."""

    phase: str
    pages: int
    cpu_seconds: float
    per_core: float
    ratio: float
    cores: float
    paper_per_server: float
    paper_ratio: float
    paper_servers: int


class MeasuredPhase(NamedTuple):
    """`progress`: (seconds, pages done), every twentieth of a second."""

    pages: int
    cpu_seconds: float
    progress: tuple[tuple[float, float], ...] = ()


def phases(*, pages: Pages = 1000, hosts: Hosts = 20, seed: Seed = 1, folder: Folder = None) -> None:
    """Run each phase alone on a fake web, and print what one core does in it, beside the paper's figures."""
    s = session()
    spec = WebSpec(seed=seed, pages=pages, hosts=hosts, crawl_delay=0.0, slow_seconds=0.0, faults=False, traps=False)
    with (
        tempfile.TemporaryDirectory(prefix="quadloom-bench-") as temporary,
        serve_in_process(FakeWeb(spec), logging=False, prerender=True) as serving,
    ):
        settings = bench_settings(s.settings, serving.web, 1)
        path = folder or Path(temporary)
        everything_known(path, settings, serving.web.seeds)
        measured = each_alone(path, settings)
    table = figures(measured, os.cpu_count() or 1)
    if s.json:
        s.emit({"phases": table})
        return
    s.table(
        ["phase", "pages", "CPU s", "pages/s a core", "ratio", "cores", "paper: pages/s", "ratio", "servers"],
        [msgspec.structs.astuple(row) for row in table],
    )
    slowest = max(table, key=lambda row: row.cores)
    s.write(f"slowest\t{slowest.phase}: it needs {slowest.cores:.2f} of {os.cpu_count()} cores in balance")


def figures(measured: dict[str, MeasuredPhase], cores: int) -> list[PhaseFigures]:
    """The table. Servers of the paper: how many of each phase keep up with one server of its fastest phase."""
    costs = {phase: one.cpu_seconds / max(1, one.pages) for phase, one in measured.items()}
    fastest, whole = min(costs.values()), sum(costs.values())
    return [
        PhaseFigures(
            phase,
            one.pages,
            round(one.cpu_seconds, 2),
            round(1 / costs[phase], 1),
            round(fastest / costs[phase], 3),
            round(cores * costs[phase] / whole, 2),
            PAPER[phase],
            round(PAPER[phase] / max(PAPER.values()), 3),
            math.ceil(max(PAPER.values()) / PAPER[phase]),
        )
        for phase, one in measured.items()
    ]


def everything_known(path: Path, settings: Settings, seeds: list[str]) -> None:
    """All URLs of the web are in the queue, so that fetch, which follows no links, has all of them to do."""
    with Warehouse.open(path / "links", settings=settings) as warehouse:
        for _ in warehouse.crawl(seeds):
            pass
        urls = [row.href for row in warehouse.stores.catalog.scan(limit=1_000_000) if row.status == 200]
    with Warehouse.open(path / "phases", settings=settings) as warehouse:
        warehouse.requests.add_seeds(urls)


def each_alone(path: Path, settings: Settings) -> dict[str, MeasuredPhase]:
    with Warehouse.open(path / "phases", settings=settings) as warehouse:
        return {
            "fetch": _run(warehouse.fetch(), "fetch"),
            "detect": _run(warehouse.detect(), "detect"),
            "transform": _run(warehouse.transform(), "transform"),
            "index": _run(warehouse.index(), "index"),
            "extract": _run(warehouse.extract(), "extract"),
        }


def _run(running: RunningCrawl, phase: str) -> MeasuredPhase:
    """To its end; the CPU of all its processes."""
    started, progress = time.monotonic(), [(0.0, 0.0)]
    for _ in running:
        now = time.monotonic() - started
        if now >= progress[-1][0] + 0.05:
            progress.append((now, float(running.report().phases.get(phase, 0))))
    report = running.report()
    done = report.phases.get(phase, 0)
    progress.append((time.monotonic() - started, float(done)))
    return MeasuredPhase(done, report.cpu_seconds, tuple(progress))
