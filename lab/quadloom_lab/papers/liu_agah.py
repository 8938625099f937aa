"""Topical crawling through sites' own search (Liu, Agah 2012): survey, sites of a web search, harvest."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from quadloom.crawling.topical.crawl import run_strategy
from quadloom.crawling.topical.relevance import Topic
from quadloom.crawling.topical.run import TopicalRun
from quadloom.crawling.topical.search.web_search import WebHit, sites_of
from quadloom.crawling.topical.sites import SeedSite
from quadloom.crawling.topical.survey import Survey, by_category
from quadloom_lab.charts import Series
from quadloom_lab.papers.report import Cell, Chart, Result, Scale
from quadloom_lab.topical.evaluation import (
    BUDGET,
    RECALL,
    EvaluationRun,
    SimulatedAccess,
    World,
    interval,
)

PAPER = "Topical crawling through local search (Liu, Agah 2012)"
_TABLE_1 = {
    "Automobile manufacturers": (62, 40), "Business": (196, 41), "Colleges and universities": (127, 73),
    "Finance": (78, 27), "Government departments": (183, 40), "Health and medicine": (93, 38),
    "Sports": (59, 39), "Travel": (40, 20),
}  # fmt: skip
_TABLE_2 = (
    "www.ehow.com/", "www.wikihow.com/", "www.instructables.com/", "www.wonderhowto.com/", "www.howtodothings.com/",
    "www.expertvillage.com/", "www.howcast.com/", "openvpn.net/howto.html", "tldp.org/HOWTO/", "www.diynetwork.com/",
)  # fmt: skip
_TABLE_3 = (
    ("Sports, baseball", 139, 873, 82), ("Travel, Paris", 138, 483, 90), ("Education, computer science", 556, 1907, 96),
    ("Finance, stock", 130, 808, 73), ("all", 963, 4071, 88),
)  # fmt: skip
_INTELLIGENT = 0.40  # average harvest of Aggarwal's crawler by section 6


def results(scale: Scale) -> Iterator[Result]:
    yield survey(scale)
    yield sites_of_a_search()
    yield from harvest(scale)


def survey(scale: Scale) -> Result:
    """Table 1: sites with a search of their own, by category."""
    rows: list[tuple[str, int, float, float, str, int, float]] = []
    sites = scale.size(30, 100)
    for seed, (category, (count, share)) in enumerate(_TABLE_1.items()):
        world = World(seed, "held_out", sites)
        strategy = Survey([SeedSite(home) for home in world.web.homes()], Random(seed), 0.0)
        run_strategy(strategy, TopicalRun(Topic("", ""), 100_000), SimulatedAccess(world.web))
        found = by_category(strategy.lines)[0]
        has = sum(plan.search != "none" for plan in world.web.plans.values())
        rows.append((f"web {seed + 1}", found.sites, has / found.sites, found.share, category, count, share / 100))
    total = sum(row[1] for row in rows)
    has_all, found_all = sum(row[1] * row[2] for row in rows) / total, sum(row[1] * row[3] for row in rows) / total
    rows.append(("all", total, has_all, found_all, "all", 838, 0.43))
    return Result(
        key="liu-agah-table-1",
        paper=PAPER,
        item="Table 1",
        title="sites with a search of their own",
        difference=(
            "The paper surveyed sites of a directory in eight categories, whose true share is unknown. Generated "
            "sites have a known share, five in six, so the survey itself is measured: what it finds of what is there."
        ),
        columns=("web", "sites", "have a search", "found", "paper: category", "sites", "found"),
        rows=tuple(rows),
    )


def sites_of_a_search() -> Result:
    """Table 2: home pages among the results of a web search for "how to", from the paper's own list."""
    hits = [WebHit(f"http://{url}") for url in _TABLE_2]
    homes = {seed.home for seed in sites_of([hits], home_pages_only=True)}
    default = {seed.home for seed in sites_of([hits])}
    rows = tuple(
        (
            hit.url,
            _mark(hit.url in homes),
            _mark(any(map(hit.url.startswith, default))),
            _mark(hit.url.endswith("com/")),
        )
        for hit in hits
    )
    return Result(
        key="liu-agah-table-2",
        paper=PAPER,
        item="Table 2",
        title="sites among the results of a web search",
        difference="The paper keeps home pages only (`--home-pages-only`); by default the site of every result counts.",
        columns=("result", "home pages only", "default", "paper"),
        rows=rows,
    )


def _mark(site: bool) -> str:
    return "site" if site else "-"


def harvest(scale: Scale) -> Iterator[Result]:
    """Table 3 and figure 6: harvest of several topics, and by requests for each strategy."""
    webs, sites, budget = (10, 60, BUDGET) if scale.full else (4, 30, 600)
    runs: dict[str, list[EvaluationRun]] = {}
    for seed in range(webs):
        world = World(seed, "held_out", sites)
        for name in ("adaptive", "liu-agah", "best-first", "random"):
            runs.setdefault(name, []).append(world.run(name, budget))
    yield _table_3(runs)
    yield _figure_6(runs, budget)


def _table_3(runs: dict[str, list[EvaluationRun]]) -> Result:
    rows: list[tuple[Cell, ...]] = []
    for number, (pair, count, documents, rate) in enumerate((*_TABLE_3[:4],)):
        paper, ours = runs["liu-agah"][number], runs["adaptive"][number]
        rows.append(
            (
                f"topic {number + 1}",
                paper.documents,
                paper.relevant / max(1, paper.documents),
                ours.documents,
                ours.relevant / max(1, ours.documents),
                pair,
                count,
                documents,
                rate / 100,
            )
        )
    means = {
        name: interval([run.relevant / max(1, run.documents) for run in runs[name]])
        for name in ("liu-agah", "adaptive")
    }
    shown = {name: f"{mean.mean:.2f} [{mean.low:.2f}, {mean.high:.2f}]" for name, mean in means.items()}
    rows.append(("all, 95 %", "", shown["liu-agah"], "", shown["adaptive"], *_TABLE_3[4][:3], 0.88))
    return Result(
        key="liu-agah-table-3",
        paper=PAPER,
        item="Table 3",
        title="harvest by pairs of queries",
        difference=(
            "The paper judged documents of the open web by a classifier, here the labels are true and two in five "
            "sites are topical. Its crawler counts whatever its probes fetch, and spends most requests on probing; "
            "with every request counted, the budget ends before all sites are searched."
        ),
        columns=(
            "topic",
            "documents, liu-agah",
            "harvest",
            "documents, adaptive",
            "harvest",
            "paper: queries",
            "sites",
            "documents",
            "harvest",
        ),
        rows=tuple(rows),
    )


def _figure_6(runs: dict[str, list[EvaluationRun]], budget: int) -> Result:
    rows, series = [], []
    for name, members in runs.items():
        points = []
        for step in range(1, 21):
            at = budget * step / 20
            reached = [[c for c in run.curve if c[0] <= at] for run in members]
            rates = [curve[-1][1] / curve[-1][2] for curve in reached if curve]
            if rates:
                points.append((at, sum(rates) / len(rates)))
        series.append(Series(name, points))
        half = [found[1] for run in members if (found := run.at_recall(RECALL)) is not None]
        mean = interval([run.relevant / max(1, run.documents) for run in members])
        rows.append(
            (
                name,
                f"{mean.mean:.2f} [{mean.low:.2f}, {mean.high:.2f}]",
                f"{len(half)} of {len(members)}",
                sum(half) / len(half) if half else "-",
                _PAPERS.get(name, "-"),
            )
        )
    return Result(
        key="liu-agah-figure-6",
        paper=PAPER,
        item="Figure 6",
        title="harvest by strategy",
        difference=(
            "Harvest falls as a web runs out of relevant documents, so it is also given at the moment when half of "
            "them are found. The paper compares by its own webs with figures that others have published."
        ),
        columns=("strategy", "harvest", f"webs at recall {RECALL}", "harvest there", "paper"),
        rows=tuple(rows),
        chart=Chart("requests", "harvest", tuple(series)),
    )


_PAPERS = {"liu-agah": 0.88, "intelligent": _INTELLIGENT}
