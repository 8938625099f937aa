"""`quadloom status`, `sites` and `why`: the state of a warehouse and its crawl, of its hosts, and of one URL."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from quadloom.asking.report.numbers import LABELS
from quadloom.cli.crawling.live import print_problems
from quadloom.cli.session import Session, session
from quadloom.cli.words import counted, minute, size
from quadloom.crawling.cluster.beat import clock_words
from quadloom.crawling.cluster.view import ClusterView, WorkerView, cluster_view, merged_report
from quadloom.crawling.ingest.traps.filter import TrapCount, read_traps
from quadloom.crawling.run.balance import Balance, Machines, balance_of
from quadloom.crawling.run.control import Value, ask
from quadloom.crawling.run.monitor import heartbeat
from quadloom.crawling.run.report import CrawlReport
from quadloom.crawling.run.run_history import balance_of_run, runs_of
from quadloom.maintenance.removal.requests import pending
from quadloom.model.phase import PHASES
from quadloom.settings import without_password
from quadloom.stores.protocols.frontier import HostRow

OUTDATED = (
    "The text index was made by an older version of Quadloom, so searches miss pages, most of all in scripts without "
    "spaces. To rebuild it: `quadloom upgrade`"
)

_STATES = {
    "queued": "left to read", "leased": "in progress", "waiting": "to be read again later", "done": "done",
    "dead": "given up", "parked": "out of scope",
}  # fmt: skip
_WORKER_COLUMNS: dict[str, Callable[[WorkerView], object]] = {
    "worker": lambda worker: worker.name,
    "state": lambda worker: f"silent for {worker.silent_seconds:.0f} s" if worker.state == "silent" else worker.state,
    "host": lambda worker: worker.host,
    "version": lambda worker: worker.version,
    "phases": lambda worker: "" if len(worker.phases) == len(PHASES) else " ".join(worker.phases),
    "shards": lambda worker: worker.shards,
    "pages/s": lambda worker: worker.rate,
    "pages": lambda worker: worker.pages,
    "failed": lambda worker: worker.failed,
    "queued": lambda worker: worker.queued,
    "cores busy": lambda worker: worker.cores_busy,
    "load": lambda worker: worker.load,
    "MiB used": lambda worker: worker.memory_used // 2**20,
    "MiB free": lambda worker: worker.memory_free // 2**20,
    "disk GiB free": lambda worker: worker.disk_free / 2**30,
    "silent s": lambda worker: worker.silent_seconds,
    "waits for": lambda worker: "; ".join(worker.waits_for),
}


def status(*, watch: bool = False, interval: float = 2.0) -> None:
    """Show whether a crawl runs, its rates, URLs by state, pages by outcome, and sizes.

    Parameters
    ----------
    watch
        print again until interrupted
    interval
        seconds between two prints with --watch
    """
    s = session()
    _print(s)
    while watch:
        time.sleep(interval)
        _print(s)


def sites(*, sort: Literal["pages", "queued", "failed", "next"] = "pages", limit: int = 50) -> None:
    """List hosts with their pages, queue, pace and blocks, and how many of their URLs were refused as traps.

    Parameters
    ----------
    sort
        column to sort by
    limit
        number of hosts to print
    """
    s = session()
    with s.read() as warehouse:
        rows = warehouse.stores.frontier.hosts.rows(limit=100_000)
        traps: dict[str, list[TrapCount]] = {}
        for trapped in read_traps(warehouse.stores.catalog):
            traps.setdefault(trapped.host, []).append(trapped)
    rows, now = sorted(rows, key=_SITE_ORDERS[sort])[:limit], time.time()

    def record(row: HostRow) -> dict[str, object]:
        found = {name: value for name, value in msgspec.structs.asdict(row).items() if name not in _HIDDEN_FIELDS}
        return {**found, "reason": row.block_reason, "traps": traps.get(row.host, [])}

    def cells(row: HostRow) -> list[object]:
        blocked = f"{row.blocked_until - now:.0f} s: {row.block_reason}" if row.blocked_until > now else ""
        trapped = "; ".join(f"{trap.count}: {trap.reason}" for trap in traps.get(row.host, []))
        waits = max(0.0, row.next_at - now)
        return [row.host, row.pages, row.queued, row.delay, row.failures, waits, blocked, trapped]

    columns = ["host", "pages", "queued", "delay s", "failures", "next in s", "blocked", "trapped URLs"]
    s.records(rows, columns, cells, as_json=record)
    if not rows and not s.json:
        s.say("no host was visited yet\nhint: begin with `quadloom crawl URL`")


_HIDDEN_FIELDS = ("block_reason", "crawl_delay", "robots", "robots_expires")  # of a host: renamed, or not for people
_SITE_ORDERS: dict[str, Callable[[HostRow], float]] = {
    "pages": lambda row: -row.pages,
    "queued": lambda row: -row.queued,
    "failed": lambda row: -row.failures,
    "next": lambda row: row.next_at,
}


def why(url: str) -> None:
    """Explain when a URL is read: scope, robots.txt, place in the queue, change rate, weight, price, next visit.

    Parameters
    ----------
    url
        the page to explain
    """
    from quadloom.crawling.run.explain import Why

    s = session()
    answer = ask(s.warehouse, "why", url=url)
    if answer is not None:
        explained = msgspec.convert(answer, Why)
    else:
        with s.read() as warehouse:
            explained = warehouse.requests.why(url)
    if s.json:
        s.emit(explained)
        return
    s.say(f"{explained.url} is {explained.state}")
    if explained.summary:
        s.say(explained.summary)
    s.table(
        ["part", "what", "value", "rule"],
        [(reason.part, reason.what, reason.value, reason.rule) for reason in explained.reasons],
    )


def _print(s: Session) -> None:
    from quadloom.planning.refresh.state import schedule_of

    live = ask(s.warehouse, "status")
    with s.read() as warehouse:
        summary = warehouse.ask.status()
        rows = warehouse.stores.state.workers()
        on_the_way = warehouse.stores.state.links_on_the_way()
        traps = read_traps(warehouse.stores.catalog)
        expected = schedule_of(warehouse.stores.catalog, s.settings).planner.expected()
        runs = runs_of(warehouse.stores.catalog, 1)
        unfinished = pending(warehouse.stores.catalog)
    summary["forgetting"] = len(unfinished)
    summary["expected"] = msgspec.to_builtins(expected)
    summary["trapped"] = sum(trap.count for trap in traps)
    cluster = cluster_view(rows)
    if s.settings.stores.is_shared:
        summary["cluster"] = msgspec.to_builtins(cluster)
        summary["links_on_the_way"] = on_the_way
        whole = merged_report(rows)
        # The sum of all workers; the processes shown below are those of this machine.
        live = msgspec.to_builtins(whole) if whole is not None else None
    if isinstance(live, dict):
        # A crawl counts what its run has read; these must count what the warehouse holds.
        held = {name: summary[name] for name in ("quads", "statuses", *(["frontier"] if cluster.workers else []))}
        summary = {**summary, **live, **held, "running": True}
    if s.json:
        s.emit(summary)
        return
    if s.is_terminal:
        _print_screen(s, summary)
    else:
        for name, value in summary.items():
            if name == "cluster":
                continue
            if isinstance(value, dict):
                s.write(f"{name}\t" + "  ".join(f"{key} {inner}" for key, inner in value.items() if inner))
            elif not isinstance(value, list):
                s.write(f"{name}\t{value}")
    _print_away(s, summary.get("away"), cluster)
    if cluster.workers:
        print_workers(s, cluster)
    if on_the_way and not cluster.alive:
        s.say(f"{on_the_way} batches of seeds and links wait for a worker; to start one: `quadloom worker`")
    if summary.get("text_index") == "outdated":
        s.say(OUTDATED)
    if unfinished:
        s.say("a request to forget pages was interrupted; to finish it: `quadloom forget`")
    if traps:
        first = traps[0]
        s.say(f"{first.host}: {first.count} URLs refused: {first.reason}, for example {first.example}")
        s.say("to list all of them: `quadloom sites`")
    if isinstance(live, dict):
        _print_crawl(s, msgspec.convert(live, CrawlReport), cluster.machines)
    elif runs and runs[0].phases:
        run = runs[0]
        s.say(
            f"the last crawl: {counted(run.pages, 'page')}, {run.failed:,} failed, {run.gone:,} gone, from "
            f"{minute(run.started_at)} to {minute(run.ended_at)}; its phases:"
        )
        _print_balance(s, balance_of_run(runs[0], os.cpu_count() or 1))


def print_workers(s: Session, cluster: ClusterView) -> None:
    """Print all workers with totals; dead ones in red."""
    dead = len(cluster.workers) - len(cluster.alive)
    rows = [*cluster.workers, msgspec.structs.replace(cluster.totals, name=f"all {len(cluster.alive)} alive")]
    s.table(
        list(_WORKER_COLUMNS),
        [[cell(worker) for cell in _WORKER_COLUMNS.values()] for worker in rows],
        styles=[{"dead": "red", "silent": "yellow"}.get(worker.state, "") for worker in rows],
    )
    if dead:
        s.say(f"{dead} of {len(cluster.workers)} workers {'is' if dead == 1 else 'are'} dead; others took their shards")
    for worker in cluster.alive:
        if worker.clock_error:
            s.say(f"warning: {worker.host or worker.name}: {clock_words(worker.clock_error)}")


def _print_away(s: Session, away: object, cluster: ClusterView) -> None:
    """Print which stores do not answer, and since when the workers wait for them."""
    for name, reason in away.items() if isinstance(away, dict) else ():
        s.write(f"away\t{name}: {reason}")
    since: dict[str, float] = {}
    for worker in cluster.alive:
        for reason, at in worker.waits_for.items():
            since[reason] = min(at, since.get(reason, at))
    for reason, at in since.items():
        s.write(f"away since {minute(at)}\tworkers wait for {reason}")


def _print_screen(s: Session, summary: dict[str, Value]) -> None:
    """Print the summary for a terminal, with thousands separators and readable sizes."""
    groups = {name: value for name, value in summary.items() if isinstance(value, dict)}
    sizes = {name: size(value) for name, value in groups.get("sizes", {}).items() if isinstance(value, int)}
    frontier = groups.get("frontier", {})
    lines = [
        ("URLs known", frontier.get("total"), _queue(frontier)),
        *_vocabulary(groups, sizes),
        ("kinds", "", _counted(groups.get("kinds", {}))),
        ("statuses", "", _counted(groups.get("statuses", {}))),
        ("pages wait for", "", _counted(groups.get("owed", {}))),
        ("archive", "", sizes.get("archive", "")),
        ("database", "", sizes.get("database", "")),
        ("freshness", "", _freshness(groups.get("expected", {}))),
        ("trapped", summary.get("trapped") or "", "URLs refused as traps" if summary.get("trapped") else ""),
    ]
    s.say(f"{summary['warehouse']}: {summary['state']}")
    s.table(
        ["", "", ""],
        [
            (name, f"{count:,}" if isinstance(count, int) else "", words)
            for name, count, words in lines
            if count or words
        ],
    )


def _vocabulary(groups: Mapping[str, Mapping[str, Value]], sizes: Mapping[str, str]) -> list[tuple[str, Value, str]]:
    """The five numbers by their names, each with further details."""
    more = {
        "pages_visited": _counted(groups.get("outcomes", {})),
        "documents_indexed": sizes.get("text", ""),
        "statements_by_pages": sizes.get("quads", ""),
    }
    return [(LABELS[name], count, more.get(name, "")) for name, count in groups.get("numbers", {}).items()]


def _numbers(group: Mapping[str, Value]) -> dict[str, int]:
    return {name: value for name, value in group.items() if isinstance(value, int)}


def _counted(group: Mapping[str, Value]) -> str:
    """`html 1,204, rss 12`, largest first."""
    counts = [(name, count) for name, count in _numbers(group).items() if count]
    return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in sorted(counts, key=lambda pair: -pair[1]))


def _queue(frontier: Mapping[str, Value]) -> str:
    """The states of URLs, in the words that a crawl prints at its end."""
    counts = _numbers(frontier)
    parts = [
        f"{counts.get(name, 0):,} {text}" for name, text in _STATES.items() if counts.get(name) or name == "queued"
    ]
    if hosts := counts.get("hosts"):
        blocked = f", {counts['blocked_hosts']:,} blocked" if counts.get("blocked_hosts") else ""
        parts.append(f"{counted(hosts, 'host')}{blocked}")
    return ", ".join(parts)


def _freshness(expected: Mapping[str, Value]) -> str:
    if not expected:
        return ""
    return (
        f"expected in a continuous crawl: copies up to date {expected['freshness']:.1%} of the time, "
        f"with {expected['reads']:.3g} reads/s for {expected['pages']:,} pages"
    )


def _print_balance(s: Session, found: Balance) -> None:
    """Print the capacity of each phase, and which one is the bottleneck."""
    s.table(
        ["phase", "pages", "waiting", "pages/s", "by a core", "ratio", "busy", "due"],  # all of it within 80 columns
        [
            (row.phase, row.pages, row.queue, row.rate, row.per_core, row.ratio, row.busy, row.cores)
            for row in found.phases
        ],
    )
    if s.is_terminal:
        s.say("by a core: pages/s that one core can do; busy: cores in use; due: cores that would be right")
        s.print(f"advice: {found.advice}")
    else:
        s.write(f"advice\t{found.advice}")


def _print_crawl(s: Session, report: CrawlReport, machines: Machines) -> None:
    """Print the phases of a running crawl, and every process with totals."""
    if not s.settings.stores.is_shared:  # there the workers have said it
        for text, at in report.waits_for.items():
            s.write(f"waits for\t{text} (since {minute(at)})")
    _print_balance(s, balance_of(report, machines))
    print_problems(s, report.problems)
    s.table(
        ["process", "pid", "MiB", "CPU s", "cores", "in flight"],
        [
            (beat.name, beat.pid or "", beat.memory / 2**20, beat.cpu_seconds, beat.load, beat.in_hand)
            for beat in heartbeat(report.workers, report.seconds)
        ],
    )
    if report.services:
        s.table(
            ["service", "requests", "in progress", "at most", "mean s", "failures", "pages waiting", "back-off s"],
            [
                (
                    without_password(load.url),
                    load.requests,
                    load.in_progress,
                    load.parallel,
                    load.mean_seconds,
                    load.failures,
                    load.waiting,
                    load.resting_seconds,
                )
                for load in report.services
            ],
        )
    for disk in report.disks:
        if disk.problem:
            s.write(f"left out\tarchive directory {disk.directory}: {disk.problem}")
