"""`quadloom bench`: the cost of the pipeline on the fake web on loopback; other benchmarks have their own modules."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from quadloom.cli.crawling.crawl import follow_crawl
from quadloom.cli.session import session
from quadloom.settings import GuardSettings, PolitenessSettings, Settings
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process

# Options that several benchmarks have.
Pages = Annotated[int, Parameter(help="content pages of the fake web")]
Hosts = Annotated[int, Parameter(help="number of hosts")]
Seed = Annotated[int, Parameter(help="seed of the fake web")]
Folder = Annotated[Path | None, Parameter(help="folder of the warehouse [default: a temporary one]")]

bench = App(name="bench", help="Measure the pipeline on a fake web on loopback.")
bench.command("quadloom_lab.commands.bench_topical:topical", name="topical")
bench.command("quadloom_lab.commands.bench_importance:importance", name="importance")
bench.command("quadloom_lab.commands.bench_phases:phases", name="phases")
bench.command("quadloom_lab.commands.bench_services:services", name="services")
bench.command("quadloom_lab.commands.bench_refresh:refresh", name="refresh")
bench.command("quadloom_lab.commands.bench_growth:growth", name="growth")
bench.command("quadloom_lab.commands.simulate:scheduling", name="scheduling")
bench.command("quadloom_lab.commands.simulate:first_reads", name="first-reads")
bench.command("quadloom_lab.commands.bench_search:search", name="search")
bench.command("quadloom_lab.commands.bench_real:real", name="real")
bench.command("quadloom_lab.commands.bench_audit:audit", name="audit")


@bench.command
def pipeline(
    *, pages: Pages = 3000, hosts: Hosts = 40, workers: int = 1, seed: Seed = 1, folder: Folder = None
) -> None:
    """Crawl a fake web without pauses; print CPU-ms per page for the whole pipeline and for each phase.

    Parameters
    ----------
    workers
        transform processes
    """
    s = session()
    web = FakeWeb(
        WebSpec(seed=seed, pages=pages, hosts=hosts, crawl_delay=0.0, slow_seconds=0.0, faults=False, traps=False)
    )
    with (
        tempfile.TemporaryDirectory(prefix="quadloom-bench-") as temporary,
        serve_in_process(web, logging=False, prerender=True) as serving,
    ):
        settings = bench_settings(s.settings, serving.web, workers)
        with Warehouse.open(folder or Path(temporary), settings=settings) as warehouse:
            running = warehouse.crawl(serving.web.seeds)
            report, _ = follow_crawl(s, running)
            stored = len(warehouse.stores.quads)
        server = serving.load()
    visits = max(1, report.phases.get("fetch", 0))
    per_page = {phase: round(seconds * 1000 / visits, 3) for phase, seconds in report.cpu.items()}
    result = {
        "visits": visits,
        "pages": report.pages,
        "quads": stored,
        "seconds": report.seconds,
        "pages_per_second": round(visits / report.seconds, 1),
        "cpu_ms_per_page": round(sum(per_page.values()), 3),
        "cpu_ms_per_page_by_phase": per_page,
        "server_cpu_ms_per_request": round(server.cpu_seconds * 1000 / max(1, server.requests), 3),
        "workers": workers,
    }
    if s.json:
        s.emit(result)
        return
    s.write(f"visits\t{visits}\npages\t{report.pages}\nquads\t{stored}\nseconds\t{report.seconds:.1f}")
    s.write(f"pages per second\t{visits / report.seconds:.1f}\nCPU-ms per page\t{sum(per_page.values()):.2f}")
    for phase, cost in per_page.items():
        s.write(f"  {phase}\t{cost:.3f}")


def bench_settings(settings: Settings, web: FakeWeb, workers: int) -> Settings:
    """No pauses, loopback allowed, names of the fake web resolved; everything else as configured."""
    return msgspec.structs.replace(
        settings,
        crawl=msgspec.structs.replace(
            settings.crawl, scope="any", contact="bench@quadloom.invalid", workers=workers, max_wait=0.5
        ),
        politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, per_site=16, adaptive=0.0, retries=0),
        guard=GuardSettings(allow=["127.0.0.0/8"], hosts=web.hosts_override()),
    )
