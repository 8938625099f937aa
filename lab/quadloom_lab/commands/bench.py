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

# Name → (where it is, its help, whose first line the list shows). Loaded when used, as in `quadloom.cli.main`.
_OTHERS = {
    "audit": ("bench_audit:audit", "Find planted mistakes in pages, and count false alarms."),
    "audit-sample": ("bench_audit:audit_sample", "Draw findings of real sites, for a reader to judge."),
    "first-reads": (
        "simulate:first_reads",
        "Compare orders of first reads on a simulated web, or on the links between the HTML files of a folder.\n\n"
        "Prints the share of all importance that was read after a share of all pages.",
    ),
    "growth": ("bench_growth:growth", "Crawl many small pages; print what a page costs as the warehouse grows."),
    "importance": (
        "bench_importance:importance",
        "Time importance, beside scipy; 20 million pages need 5 GB.",
    ),
    "pages": ("bench_pages:pages", "Time the HTML pages of WARC files, by size and by the data that they have."),
    "phases": ("bench_phases:phases", "Run each phase alone, beside the paper's figures."),
    "real": ("bench_real:real", "Crawl pages like those of the web; print CPU-ms by phase, kind and step."),
    "refresh": ("bench_refresh:refresh", "Read pages again; print CPU-ms with and without validators."),
    "scheduling": ("simulate:scheduling", "Compare refresh policies, also on a real history of changes."),
    "search": (
        "bench_search:search",
        "Ask known-item questions in ten languages, beside SQLite FTS5 and plain tantivy on the same texts.\n\n"
        "Prints mean reciprocal rank (MRR) and the share of questions with the right page first and in the first five.",
    ),
    "services": ("bench_services:services", "Transform pages with 1, 2 and 4 instances of a service."),
    "topical": ("bench_topical:topical", "Compare topical strategies on simulated webs."),
}

bench = App(name="bench", help="Measure the pipeline on a fake web on loopback.")
for _name, (_where, _help) in _OTHERS.items():
    bench.command(f"quadloom_lab.commands.{_where}", name=_name, help=_help)


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
