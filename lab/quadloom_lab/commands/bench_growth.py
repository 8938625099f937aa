"""`quadloom bench growth`: what a page costs when there are many already.

A web of small pages that a function computes, in the same process: no sockets, no server that takes the processor. Each
page has a few statements, words of a vocabulary that grows as real ones do, links to its host's other pages and one to
another host. The figures are of the pages between two lines, so that the last line can be compared with the first.
"""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from quadloom.cli.session import session
from quadloom.crawling.run.session import CrawlSession
from quadloom.fetching.in_process import respond
from quadloom.fetching.transport import FetchRequest
from quadloom.fetching.unit import answered_in_process
from quadloom.model.page import Page
from quadloom.process import limits
from quadloom.settings import GuardSettings, PolitenessSettings
from quadloom.warehouse import Warehouse
from quadloom_lab.charts import Series, line_chart

_BRANCHES = 3
_WORDS = 60


class GrowthFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The pages since the line before. `cpu_ms`: of all processes, `ranking_ms` of it for rankings;
    `owner_megabytes`: in RAM now, of which `mapped_megabytes` are pages of files, which the system takes back when it
    needs them."""

    pages: int
    cpu_ms: float
    owner_ms: float
    ranking_ms: float
    owner_megabytes: int
    mapped_megabytes: int
    megabytes_on_disk: int
    quads: int


class GrowingWeb:
    """`hosts` trees of pages, without an end."""

    def __init__(self, hosts: int) -> None:
        self._hosts = hosts

    def seeds(self) -> list[str]:
        return [self._url(host, 0) for host in range(self._hosts)]

    def answer(self, request: FetchRequest) -> Page:
        name, _, path = request.href.partition("://")[2].partition("/")
        if path == "robots.txt":
            return respond(request, b"", status=404)
        host, number = int(name.partition(".")[0][1:]), int(path or 0)
        return respond(request, self._body(host, number).encode(), headers=(("content-type", "text/html"),))

    def _body(self, host: int, number: int) -> str:
        place = host + number * self._hosts  # over all hosts, in the order in which a crawl finds pages
        words = " ".join(f"w{(place * 7919 + step * step * 104729) % (1000 + place // 4)}" for step in range(_WORDS))
        near = [number * _BRANCHES + child for child in range(1, _BRANCHES + 1)] + [number // _BRANCHES, 0]
        links = "".join(f'<li><a href="{self._url(host, page)}">page {page} of {host}</a>' for page in near)
        far = self._url(place * 31 % self._hosts, number)
        data = f'{{"@context":"https://schema.org","@type":"Product","name":"thing {place}","sku":"s{place}"}}'
        return (
            f"<!doctype html><html lang=en><title>Page {number} of host {host}</title>"
            f'<script type="application/ld+json">{data}</script><h1>Thing {place}</h1><p>{words}</p>'
            f'<ul>{links}<li><a href="{far}">elsewhere</a></ul>'
        )

    @staticmethod
    def _url(host: int, page: int) -> str:
        return f"http://h{host}.example/{page or ''}"


def growth(*, pages: int = 100_000, hosts: int = 500, step: int = 10_000, plot: Path | None = None) -> None:
    """Crawl many small pages; print what the pages of each step cost, the owner's memory, and the size on disk.

    Parameters
    ----------
    pages
        pages to read
    hosts
        number of hosts
    step
        pages between two lines
    plot
        folder for charts of CPU time, memory and disk
    """
    s = session()
    web = GrowingWeb(hosts)
    settings = msgspec.structs.replace(
        s.settings,
        crawl=msgspec.structs.replace(
            s.settings.crawl, scope="any", contact="bench@quadloom.invalid", max_pages=pages, workers=1
        ),
        politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, per_site=16, adaptive=0.0),
        guard=GuardSettings(allow=["0.0.0.0/0"], hosts={f"h{host}.example": "127.0.0.1" for host in range(hosts)}),
    )
    with tempfile.TemporaryDirectory(prefix="quadloom-bench-") as folder:
        path = s.named_warehouse or Path(folder) / "warehouse"
        with Warehouse.open(path, settings=settings) as warehouse:
            warehouse.requests.add_seeds(web.seeds())
            running = CrawlSession(
                warehouse.stores,
                settings,
                warehouse.scope,
                lambda: warehouse.ask.queries,
                fetch=answered_in_process(web.answer),
            )
            before = _Moment(running, 0)
            lines: list[GrowthFigures] = []
            for number, _ in enumerate(running, 1):
                if number % step == 0:
                    now = _Moment(running, number)
                    figures = now.since(before, path)
                    before = now
                    lines.append(figures)
                    if s.json:
                        s.emit(figures)
                    else:
                        s.write(_line(figures))
    if plot is not None:
        save_charts(plot, lines)
        s.say(f"charts in {plot}")


def save_charts(folder: Path, lines: Sequence[GrowthFigures]) -> None:
    """`growth-cpu.svg` and `growth-size.svg`. The cost of a step depends on which commits and merges fall into it, so
    its curve is the mean of five steps."""
    folder.mkdir(parents=True, exist_ok=True)
    line_chart(
        folder / "growth-cpu.svg",
        [
            Series("all processes", _means(lines, lambda line: line.cpu_ms)),
            Series("the owner", _means(lines, lambda line: line.owner_ms)),
            Series("rankings", _means(lines, lambda line: line.ranking_ms)),
        ],
        title="What a page costs",
        x_label="thousand pages read",
        y_label="CPU-ms a page",
    )
    line_chart(
        folder / "growth-size.svg",
        [
            Series("memory of the owner", [(line.pages / 1000, line.owner_megabytes) for line in lines]),
            Series("of it mapped files", [(line.pages / 1000, line.mapped_megabytes) for line in lines]),
            Series("tenth of the disk", [(line.pages / 1000, line.megabytes_on_disk / 10) for line in lines]),
        ],
        title="Memory and disk",
        x_label="thousand pages read",
        y_label="MB",
    )


def _means(lines: Sequence[GrowthFigures], value: Callable[[GrowthFigures], float]) -> list[tuple[float, float]]:
    parts = [(line, lines[max(0, place - 4) : place + 1]) for place, line in enumerate(lines)]
    return [(line.pages / 1000, sum(map(value, part)) / len(part)) for line, part in parts]


def _line(figures: GrowthFigures) -> str:
    return (
        f"{figures.pages:>9,} pages\t{figures.cpu_ms:.2f} ms a page\tranking {figures.ranking_ms:.2f} ms"
        f"\towner {figures.owner_ms:.2f} ms,"
        f" {figures.owner_megabytes} MB (mapped {figures.mapped_megabytes})"
        f"\t{figures.megabytes_on_disk} MB on disk\t{figures.quads:,} quads"
    )


class _Moment:
    def __init__(self, running: CrawlSession, pages: int) -> None:
        report = running.report()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.pages = pages
        self.quads = report.quads
        self.owner = usage.ru_utime + usage.ru_stime
        self.ranking = running.ranking_seconds
        self.workers = sum(report.cpu[phase] for phase in ("detect", "transform", "extract"))

    def since(self, before: _Moment, path: Path) -> GrowthFigures:
        pages = self.pages - before.pages
        owner = self.owner - before.owner
        ranking = self.ranking - before.ranking
        return GrowthFigures(
            pages=self.pages,
            cpu_ms=round((owner + ranking + self.workers - before.workers) / pages * 1000, 3),
            owner_ms=round(owner / pages * 1000, 3),
            ranking_ms=round(ranking / pages * 1000, 3),
            owner_megabytes=limits.resident_bytes(os.getpid()) >> 20,
            mapped_megabytes=_mapped_bytes() >> 20,
            megabytes_on_disk=sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) >> 20,
            quads=self.quads,
        )


def _mapped_bytes() -> int:
    """Pages of files that this process has in RAM: libraries, segments of the text index."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[2]) * os.sysconf("SC_PAGE_SIZE")
