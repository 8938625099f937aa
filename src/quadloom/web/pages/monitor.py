"""`/monitor`: the crawl, live. The page is complete without scripts; with them its figures refresh until paused.

All figures are in `monitor.json` too, so that a browser, a terminal and a script see the same.
"""

from __future__ import annotations

import os
from collections import Counter

import msgspec
from markupsafe import Markup

from quadloom.asking.report.numbers import LABELS, WarehouseNumbers, counts_of, numbers_from, store_counts
from quadloom.crawling.cluster.view import ClusterView
from quadloom.crawling.run.balance import Balance, Machines, balance_of
from quadloom.crawling.run.monitor import SAMPLE, FreshnessReport, WorkerLoad, freshness, heartbeat
from quadloom.crawling.run.report import CrawlReport, Meter
from quadloom.crawling.run.run_history import CrawlRun, balance_of_run, runs_of
from quadloom.model.event import Event
from quadloom.model.url import host_of
from quadloom.planning.policy.demand import ExpectedFreshness
from quadloom.planning.refresh.state import schedule_of
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import FrontierStats, HostRow
from quadloom.web.server.crawl_poller import ChartPoint
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.view.charts import Mark, line
from quadloom.web.view.filters import counted, moment, number, percent, span

_MAX_HOSTS = 10
_JUST_NOW = 30.0  # seconds
_DRAWN = ("fetch", "transform", "index")
_MAX_POINTS = 200  # of a line
_MAX_RUNS = 6
_MIN_POINTS = 4  # with fewer there is no curve to see
_STATES = (
    "queued",
    "waiting",
    "leased",
    "done",
    "dead",
    "parked",
)  # of a URL; the other figures of the frontier count hosts


class BusyHost(msgspec.Struct, frozen=True):
    host: str
    site: str
    pages: int
    queued: int
    delay: float
    blocked: str


class Tile(msgspec.Struct, frozen=True):
    """One figure. `tone`: good, warn, bad, or go for what only leads somewhere."""

    label: str
    value: str
    tone: str = ""
    href: str = ""


class MonitorView(msgspec.Struct, frozen=True, kw_only=True):
    at: float
    running: bool
    state: str
    sentence: str
    report: CrawlReport | None
    balance: Balance
    workers: list[WorkerLoad]
    frontier: dict[str, int]
    outcomes: dict[str, int]
    statuses: dict[str, int]
    kinds: dict[str, int]
    numbers: WarehouseNumbers
    freshness: FreshnessReport
    expected: ExpectedFreshness | None
    findings: dict[str, int]
    busiest: list[BusyHost]
    hosts: list[tuple[str, int]]  # asked just now, and how often
    limit: int  # pages at which the crawl ends; 0 = there is none
    events: list[Event]
    points: list[ChartPoint]
    runs: list[CrawlRun]  # of this warehouse, newest first
    away: dict[str, str] = {}  # stores that do not answer, and what workers wait for
    cluster: ClusterView | None = None  # all workers; None = the warehouse belongs to one machine


def monitor_page(request: WebRequest) -> ViewResponse:
    warehouse, now = request.warehouse, request.site.clock()
    live = request.site.crawl.report()
    report = msgspec.convert(live, CrawlReport) if live is not None else None
    stats = warehouse.stores.frontier.stats(now)
    counts = warehouse.stores.catalog.counts()
    sample = warehouse.stores.catalog.scan(limit=SAMPLE)
    cluster = request.site.crawl.cluster()
    machines = cluster.machines if cluster is not None else Machines()
    has, away = store_counts(warehouse.stores, patient=False)
    numbers = numbers_from(warehouse.stores.catalog, has.get("text"), has.get("quads"))
    view = MonitorView(
        at=now,
        running=report is not None,
        state=report.state if report else "stopped",
        sentence=_sentence(report, stats, numbers),
        report=report,
        balance=balance_of(report, machines) if report else _last_balance(warehouse.stores.catalog),
        workers=heartbeat(report.workers, report.seconds) if report else [],
        frontier={name: number for name, number in msgspec.structs.asdict(stats).items() if isinstance(number, int)},
        outcomes=_counted(counts, "outcome"),
        statuses=_counted(counts, "status"),
        kinds=_counted(counts, "kind"),
        numbers=numbers,
        freshness=freshness(sample, now),
        expected=(report.expected if report else None)
        or schedule_of(warehouse.stores.catalog, warehouse.settings).planner.expected(),
        findings=dict(Counter(finding.code for page in sample for finding in page.findings).most_common(15)),
        busiest=[
            _busy(row, now)
            for row in sorted(warehouse.stores.frontier.hosts.rows(limit=10_000), key=_activity)[:_MAX_HOSTS]
        ],
        hosts=_hosts(request.site.crawl.events(0, 200), now) if report else [],
        limit=report.limit if report else 0,
        events=request.site.crawl.events(0, 20)[::-1],
        points=request.site.crawl.points(),
        runs=runs_of(warehouse.stores.catalog),
        cluster=cluster,
        away={**away, **(_waits(cluster, now) if cluster is not None else {})},
    )
    drawn_runs = _drawn_runs(view.runs)
    extra: dict[str, object] = {
        "states": {name: view.frontier[name] for name in _STATES},
        "tiles": tiles(view),
        "phases": _DRAWN,
        "chart": _chart(view.points),
        "drawn_runs": drawn_runs,
        "past": _past(drawn_runs),
        "by_phase": _phases_of_run(view.runs),
    }
    return ViewResponse("monitor.html", view, extra)


def tiles(view: MonitorView) -> list[Tile]:
    """The figures that a person looks for first."""
    failed, denied = view.outcomes.get("failed", 0), view.outcomes.get("denied", 0)
    found = [
        Tile(LABELS["pages_visited"], number(view.numbers.pages_visited), "go", "/pages"),
        Tile(LABELS["documents_indexed"], _known(view.numbers.documents_indexed), "go", "/search"),
        Tile(LABELS["statements_by_pages"], _known(view.numbers.statements_by_pages), "go", "/types"),
        Tile("URLs due now", number(view.frontier["queued"])),
        Tile("pages failed", number(failed), "bad" if failed else "good", "/pages?outcome=failed"),
        Tile("pages denied", number(denied), "warn" if denied else "", "/pages?outcome=denied"),
        Tile("of pages contain data", percent(view.freshness.harvest), "", "/types"),
    ]
    if view.report is not None:
        rate = view.report.rates.get("fetch", 0.0)
        state = "good" if view.state == "running" else "warn"
        found.insert(0, Tile("state of the crawl", view.state, state))
        found.insert(1, Tile("pages a second now", f"{rate:.1f}", state))
        if view.limit and rate and view.report.pages < view.limit:
            seconds = (view.limit - view.report.pages) / rate
            found.append(Tile(f"until {number(view.limit)} pages", span(seconds)))
    return found


def _known(figure: int | None) -> str:
    """None = its store does not answer."""
    return number(figure) if figure is not None else "away"


def _waits(cluster: ClusterView, now: float) -> dict[str, str]:
    """What each worker waits for."""
    return {
        worker.name: "waits for " + "; ".join(f"{what}, for {span(now - at)}" for what, at in worker.waits_for.items())
        for worker in cluster.alive
        if worker.waits_for
    }


def _chart(points: list[ChartPoint]) -> Markup:
    if len(points) < 2:
        return Markup()
    step = max(1, len(points) // _MAX_POINTS)
    series = [(name, [Mark("", point.at, point.rates.get(name, 0.0)) for point in points[::step]]) for name in _DRAWN]
    return line(series, "Pages per second through the phases", dates=True)


def _last_balance(catalog: Catalog) -> Balance:
    """Of the last crawl, if there was one."""
    runs = runs_of(catalog, 1)
    return balance_of_run(runs[0], os.cpu_count() or 1) if runs else Balance(advice="No crawl is running.")


def _phases_of_run(runs: list[CrawlRun]) -> Markup:
    """The curves of the phases over the newest run that has some: MultiCrawler's figures 2 to 6."""
    run = next((run for run in runs if len(run.points) >= _MIN_POINTS and run.points[-1].phases), None)
    if run is None:
        return Markup()
    series = [
        (phase, [Mark("", point.at - run.started_at, point.phases[n]) for point in run.points if point.phases])
        for n, phase in enumerate(Meter.PHASES)
    ]
    return line(series, f"Pages per second through each phase, run of {moment(run.started_at)}")


def _past(runs: list[CrawlRun]) -> Markup:
    """The pace of the newest runs, one line each. One run alone has its phases drawn, which says more."""
    series = [
        (moment(run.started_at), [Mark("", point.at - run.started_at, point.rate) for point in run.points])
        for run in runs
    ]
    return line(series, "Pages per second of the latest runs, by time since their begin") if len(runs) > 1 else Markup()


def _drawn_runs(runs: list[CrawlRun]) -> list[CrawlRun]:
    return [run for run in runs[:_MAX_RUNS] if len(run.points) >= _MIN_POINTS]


def _hosts(events: list[Event], now: float) -> list[tuple[str, int]]:
    counts = Counter(
        host_of(event.subject) for event in events if event.kind == "settled" and event.at > now - _JUST_NOW
    )
    return counts.most_common(_MAX_HOSTS)


def _sentence(report: CrawlReport | None, stats: FrontierStats, numbers: WarehouseNumbers) -> str:
    """A summary in one line, also for people who use a screen reader."""
    waiting = f"{counted(stats.queued, 'URL')} due now, {stats.waiting} later"
    if report is None:
        return f"No crawl is running. {counted(numbers.documents_indexed or 0, 'document')} indexed, {waiting}."
    rate = report.rates.get("fetch", 0.0)
    return (
        f"The crawl is {report.state}: {counted(report.pages, 'page')} fetched, {waiting}, {rate:.1f} pages a second "
        f"now, {report.pages_per_second:.1f} on average."
    )


def _counted(counts: dict[str, int], word: str) -> dict[str, int]:
    """The most frequent first."""
    return dict(sorted(counts_of(counts, word).items(), key=lambda item: -item[1]))


def _activity(row: HostRow) -> tuple[int, int]:
    return -row.queued, -row.pages


def _busy(row: HostRow, now: float) -> BusyHost:
    blocked = f"{row.block_reason or 'resting'} for {row.blocked_until - now:.0f} s" if row.blocked_until > now else ""
    return BusyHost(row.host, row.site, row.pages, row.queued, row.delay, blocked)
