"""MultiCrawler (Harth, Umbrich, Decker 2006): speed of each phase, threads, services, scaling, complexity."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from quadloom.crawling.workers.batch import TransformPool
from quadloom.documents.detect import detect
from quadloom.documents.transform import transform
from quadloom.model.page import Page
from quadloom.model.quads import Quads
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings, Settings
from quadloom.stores.quads.oxigraph import OxigraphQuads
from quadloom.warehouse import Warehouse
from quadloom_lab.benchmarks.sample_pages import page
from quadloom_lab.charts import Series
from quadloom_lab.commands.bench import bench_settings
from quadloom_lab.commands.bench_phases import PAPER as PAPER_RATES
from quadloom_lab.commands.bench_phases import MeasuredPhase, each_alone, everything_known, figures
from quadloom_lab.commands.bench_services import _PAPER as PAPER_NODES
from quadloom_lab.commands.bench_services import measure
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process
from quadloom_lab.papers.report import Cell, Chart, Result, Scale

PAPER = "MultiCrawler (Harth, Umbrich, Decker 2006)"
_PIPELINES = """
import sys
from pathlib import Path
from quadloom.settings import Settings
from quadloom_lab.papers.multicrawler import one_pipeline
print(one_pipeline(int(sys.argv[1]), int(sys.argv[2])))
"""


def results(scale: Scale) -> Iterator[Result]:
    measured = _measured(scale)
    yield _over_time(measured)
    yield _balance(measured)
    yield threads(scale)
    yield services(scale)
    yield scaling(scale)
    yield complexity(scale)


def _measured(scale: Scale) -> dict[str, MeasuredPhase]:
    """Every phase alone, on the fake web or on a recorded one."""
    with tempfile.TemporaryDirectory(prefix="quadloom-papers-") as name:
        if scale.replay is not None:
            with Warehouse.open(scale.replay) as recorded:
                urls = [row.href for row in recorded.stores.catalog.scan(limit=1_000_000) if row.status == 200]
            settings = Settings(crawl=CrawlSettings(scope="any", transport=f"replay:{scale.replay.absolute()}"))
            with Warehouse.open(Path(name) / "phases", settings=settings) as warehouse:
                warehouse.requests.add_seeds(urls)
            return each_alone(Path(name), settings)
        spec = _spec(scale.size(400, 100_000), 1)
        with serve_in_process(FakeWeb(spec), logging=False, prerender=True) as serving:
            settings = bench_settings(Settings(), serving.web, 1)
            everything_known(Path(name), settings, serving.web.seeds)
            return each_alone(Path(name), settings)


def _spec(pages: int, seed: int) -> WebSpec:
    return WebSpec(
        seed=seed, pages=pages, hosts=max(4, pages // 40), crawl_delay=0.0, slow_seconds=0.0, faults=False, traps=False
    )


def _over_time(measured: dict[str, MeasuredPhase]) -> Result:
    series = tuple(Series(phase, one.progress) for phase, one in measured.items())
    rows = []
    for phase, one in measured.items():
        times, pages = zip(*one.progress, strict=True)
        half = int(np.searchsorted(pages, one.pages / 2))
        rows.append((phase, one.pages, times[-1], times[min(half, len(times) - 1)]))
    return Result(
        key="multicrawler-figures-2-6",
        paper=PAPER,
        item="Figures 2, 3, 5, 6",
        title="pages done by each phase over time",
        difference=(
            "The paper draws 100,000 pages of a directory over hours; here a web on loopback, or a recorded one, each "
            "phase alone. Index and extract report at their end. A straight line means that a phase does not slow "
            "down as its input grows."
        ),
        columns=("phase", "pages", "seconds", "seconds to half of them"),
        rows=tuple(rows),
        chart=Chart("seconds", "pages", series),
    )


def _balance(measured: dict[str, MeasuredPhase]) -> Result:
    table = figures(measured, os.cpu_count() or 1)
    rows = tuple(
        (row.phase, row.per_core, row.ratio, row.cores, row.paper_per_server, row.paper_ratio, row.paper_servers)
        for row in table
    )
    return Result(
        key="multicrawler-table-2",
        paper=PAPER,
        item="Table 2",
        title="pages a second of each phase, and the balance that follows",
        difference=(
            "The paper counts pages by the clock on one Opteron at 2.2 GHz; here by CPU seconds of all processes of a "
            "phase. Transform parses and extracts in one process instead of calling Tidy and xsltproc."
        ),
        columns=(
            "phase",
            "pages/s a core",
            "ratio",
            "cores in balance",
            "paper: pages/s",
            "ratio",
            "servers in balance",
        ),
        rows=rows,
    )


def threads(scale: Scale) -> Result:
    """Figure 4: transform with more and more workers than cores."""
    count = scale.size(3000, 30_000)
    rows, series = [], []
    for workers in (1, 2, 4, 8, *((50, 200) if scale.full else ())):
        with TransformPool(Settings(crawl=CrawlSettings(workers=workers))) as pool:
            begun, points = time.monotonic(), []
            for done, _ in enumerate(pool.each(_pages(count), lambda pair: pair)):
                points.append((time.monotonic() - begun, float(done + 1)))
        (middle, half), (end, last) = points[count // 2], points[-1]
        rows.append((workers, (last - half) / (end - middle)))
        series.append(Series(f"{workers} workers", points[:: max(1, count // 60)]))
    return Result(
        key="multicrawler-figure-4",
        paper=PAPER,
        item="Figure 4",
        title="transform by the number of workers",
        difference=(
            "With 200 threads the paper's machine swapped after 13,000 pages, with 50 it did not. Workers are "
            "processes here; pages and bytes in progress are bounded whatever their number, and a worker over its "
            "memory is replaced, so more workers than cores gain nothing and lose little. By the clock, on a machine "
            "with other work."
        ),
        columns=("workers", "pages/s, second half"),
        rows=tuple(rows),
        chart=Chart("seconds", "pages", tuple(series)),
    )


def _pages(count: int) -> Iterator[tuple[Visit, Page]]:
    bodies = [page(seed) for seed in range(20)]
    for number in range(count):
        url = f"http://bench.example/{number}"
        headers = (("content-type", "text/html"),)
        yield Visit(url, url, "bench.example", number), Page(url, url, 200, headers, bodies[number % 20], 0.0, 0.1)


def services(scale: Scale) -> Result:
    """Figure 7: transform by the number of external services."""
    delay, pages = (0.5, 160) if scale.full else (0.1, 60)
    runs = {count: measure([delay] * count, pages, 1) for count in (1, 2, 4)}
    rows = tuple(
        (count, run.rate, run.rate / runs[1].rate, nodes, rate, rate / PAPER_NODES[1])
        for (count, run), (nodes, rate) in zip(runs.items(), PAPER_NODES.items(), strict=True)
    )
    return Result(
        key="multicrawler-figure-7",
        paper=PAPER,
        item="Figure 7",
        title="transform by the number of services",
        difference=(
            f"Services here only wait ({delay:g} s a page) and never compete for CPU. The paper assigns pages by a "
            f"hash, so a slow page blocked its node; here each page goes to the instance that will probably answer "
            f"first."
        ),
        columns=("instances", "pages/s", "times one", "paper: nodes", "pages/s", "times one"),
        rows=rows,
        chart=Chart(
            "instances (paper: external nodes)",
            "times one",
            (
                Series("here", [(float(row[0]), row[2]) for row in rows]),
                Series("paper", [(float(max(1, row[3] - 1)), row[5]) for row in rows]),
            ),
        ),
    )


def scaling(scale: Scale) -> Result:
    """Section 4: total throughput = number of pipelines × throughput of one."""
    pages = scale.size(200, 5000)
    single: dict[str, float] = {}
    rows: list[tuple[str, int, float, float]] = []
    for count in (1, 2, *((4, 8) if scale.full else ())):
        argv = [[sys.executable, "-c", _PIPELINES, str(pages), str(seed)] for seed in range(1, count + 1)]
        running = [subprocess.Popen(line, stdout=subprocess.PIPE) for line in argv]
        rates = [msgspec.json.decode(child.communicate()[0], type=dict[str, float]) for child in running]
        total = {phase: sum(rate[phase] for rate in rates) for phase in rates[0]}
        single = single or total
        rows += [(phase, count, rate, rate / single[phase] / count) for phase, rate in total.items()]
    rows.sort(key=lambda row: list(PAPER_RATES).index(row[0]))
    return Result(
        key="multicrawler-scaling",
        paper=PAPER,
        item="Section 4",
        title="all phases by the number of pipelines",
        difference=(
            "The paper claims a constant factor and measures transform alone. Each pipeline is a process tree with "
            "its own part of the web; pages a CPU second are added, which leaves out what one machine's cores and "
            "disk share."
        ),
        columns=("phase", "pipelines", "pages/s", "of linear"),
        rows=tuple(rows),
    )


def one_pipeline(pages: int, seed: int) -> str:
    """Pages a CPU second of each phase, as JSON: what a process of `scaling` prints."""
    with (
        tempfile.TemporaryDirectory(prefix="quadloom-papers-") as name,
        serve_in_process(FakeWeb(_spec(pages, seed)), logging=False, prerender=True) as serving,
    ):
        settings = bench_settings(Settings(), serving.web, 1)
        everything_known(Path(name), settings, serving.web.seeds)
        table = figures(each_alone(Path(name), settings), 1)
    return msgspec.json.encode({row.phase: row.per_core for row in table}).decode()


def complexity(scale: Scale) -> Result:
    """Time by size of the input for detect, transform and index; the exponent is the slope in logarithms."""
    sizes = (16, 64, 256, 1024, *((4096,) if scale.full else ()))
    url, kind = "https://news.example/1", "text/html; charset=utf-8"
    work: dict[str, list[tuple[float, float]]] = {"detect": [], "transform": [], "index": []}
    for kilobytes in sizes:
        body = page(1, kilobytes=kilobytes, links=kilobytes * 3)
        work["detect"].append((len(body) / 1024, _cpu(partial(detect, body, url=url, content_type=kind))))
        work["transform"].append((len(body) / 1024, _cpu(partial(transform, body, url=url, content_type=kind))))
        quads = [f'<http://a/{n}> <http://p/{n % 9}> "value {n}" <{url}> .' for n in range(kilobytes * 20)]
        text = "\n".join(quads).encode()
        work["index"].append((len(text) / 1024, _indexing(text)))
    rows: list[tuple[Cell, ...]] = []
    bounds = {"detect": "O(N)", "transform": "O(N·M)", "index": "O(N log N)"}
    for phase, points in work.items():
        x, y = np.log([p[0] for p in points]), np.log([p[1] for p in points])
        rows.append((phase, points[0][1], points[-1][1], float(np.polyfit(x, y, 1)[0]), bounds[phase]))
    series = tuple(
        Series(phase, [(float(np.log10(size)), float(np.log10(ms))) for size, ms in points])
        for phase, points in work.items()
    )
    return Result(
        key="multicrawler-complexity",
        paper=PAPER,
        item="Section 3",
        title="CPU of a page by its size",
        difference="The paper states bounds; here the exponent of time over size is measured; 1 is linear.",
        columns=("phase", f"ms at {sizes[0]} KB", f"ms at {sizes[-1]} KB", "exponent", "paper"),
        rows=tuple(rows),
        chart=Chart("log10 of KB", "log10 of CPU-ms", series),
    )


def _cpu(work: Callable[[], object], rounds: int = 5) -> float:
    """Best CPU-ms of several rounds."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        found.append((time.process_time() - began) * 1000)
    return max(min(found), 1e-3)


def _indexing(nquads: bytes) -> float:
    with tempfile.TemporaryDirectory(prefix="quadloom-papers-") as name:
        store = OxigraphQuads(Path(name))
        try:
            return _cpu(lambda: store.insert_new([Quads.of("https://news.example/1", nquads)]), rounds=1)
        finally:
            store.close()
