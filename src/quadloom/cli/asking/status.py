"""`quadloom status` and `quadloom sites`: what a warehouse holds, and what a running crawl does."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from quadloom.cli.session import Session, session
from quadloom.crawl.balancing import balance_of
from quadloom.crawl.control import Value, ask
from quadloom.crawl.heartbeat import heartbeat
from quadloom.crawl.report import CrawlReport
from quadloom.ingest.traps import TrapCount, read_traps
from quadloom.warehouse import Warehouse


def status(*, watch: Annotated[bool, Parameter(negative="")] = False, interval: float = 2.0) -> None:
    """One screen: running or not, rates, frontier by state, pages by outcome, sizes.

    Parameters
    ----------
    watch
        print again until interrupted
    interval
        seconds between two looks with --watch
    """
    s = session()
    _print(s)
    while watch:
        time.sleep(interval)
        _print(s)


def sites(*, sort: Literal["pages", "queued", "failed", "next"] = "pages", limit: int = 50) -> None:
    """Hosts with pages, queue, pace, blocks, and how many of their URLs were refused as traps.

    Parameters
    ----------
    sort
        which column decides the order
    limit
        how many to print
    """
    s = session()
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
        rows = warehouse.stores.frontier.hosts(limit=100_000)
        traps: dict[str, list[TrapCount]] = {}
        for trapped in read_traps(warehouse.stores.catalog):
            traps.setdefault(trapped.host, []).append(trapped)
    keys = {
        "pages": lambda row: -row.pages,
        "queued": lambda row: -row.queued,
        "failed": lambda row: -row.failures,
        "next": lambda row: row.next_at,
    }
    rows = sorted(rows, key=keys[sort])[:limit]
    if s.json:
        for row in rows:
            s.emit(
                {
                    "host": row.host, "site": row.site, "pages": row.pages, "queued": row.queued, "delay": row.delay,
                    "next_at": row.next_at, "blocked_until": row.blocked_until, "reason": row.block_reason,
                    "failures": row.failures, "spent": row.spent, "budget": row.budget, "address": row.address,
                    "traps": traps.get(row.host, []),
                }
            )  # fmt: skip
        return
    now = time.time()
    s.table(
        ["host", "pages", "queued", "delay s", "failures", "next in s", "blocked", "trapped URLs"],
        [
            (r.host, r.pages, r.queued, r.delay, r.failures, max(0.0, r.next_at - now),
             f"{r.blocked_until - now:.0f} s: {r.block_reason}" if r.blocked_until > now else "",
             "; ".join(f"{trap.count}: {trap.reason}" for trap in traps.get(r.host, [])))
            for r in rows
        ],
    )  # fmt: skip


def _print(s: Session) -> None:
    live = ask(s.warehouse, "status")
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
        summary = warehouse.ask.status()
        traps = read_traps(warehouse.stores.catalog)
    summary["trapped"] = sum(trap.count for trap in traps)
    if isinstance(live, dict):
        # The run counts what it has read, statuses and statements too; this tells what the warehouse holds.
        held = {name: summary[name] for name in ("quads", "statuses")}
        summary = {**summary, **live, **held, "running": True}
    if s.json:
        s.emit(summary)
        return
    if s.is_terminal:
        _print_screen(s, summary)
    else:
        for name, value in summary.items():
            if isinstance(value, dict):
                s.write(f"{name}\t" + "  ".join(f"{key} {inner}" for key, inner in value.items() if inner))
            elif not isinstance(value, list):
                s.write(f"{name}\t{value}")
    if traps:
        first = traps[0]
        s.say(f"{first.host}: {first.count} URLs refused: {first.reason}, for instance {first.example}")
        s.say("`quadloom sites` tells all of them")
    if isinstance(live, dict):
        _print_balance(s, msgspec.convert(live, CrawlReport))


def _print_screen(s: Session, summary: dict[str, Value]) -> None:
    """The same for people: words, thousands and sizes that can be read at a glance."""
    groups = {name: value for name, value in summary.items() if isinstance(value, dict)}
    sizes = {name: _bytes(value) for name, value in groups.get("sizes", {}).items() if isinstance(value, int)}
    frontier = groups.get("frontier", {})
    lines = [
        ("URLs", frontier.get("total"), _counted(frontier, leave_out=("total",))),
        ("pages", sum(_numbers(groups.get("outcomes", {})).values()), _counted(groups.get("outcomes", {}))),
        ("kinds", "", _counted(groups.get("kinds", {}))),
        ("statuses", "", _counted(groups.get("statuses", {}))),
        (
            "quads",
            summary.get("quads"),
            f"{sizes.get('quads', '')}, with what the warehouse itself says of its pages".lstrip(", "),
        ),
        ("documents", summary.get("documents"), sizes.get("text", "")),
        ("archive", "", sizes.get("archive", "")),
        ("database", "", sizes.get("database", "")),
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


def _numbers(group: Mapping[str, Value]) -> dict[str, int]:
    return {name: value for name, value in group.items() if isinstance(value, int)}


def _counted(group: Mapping[str, Value], leave_out: Sequence[str] = ()) -> str:
    """`html 1,204, rss 12`: the largest first."""
    counts = [(name, count) for name, count in _numbers(group).items() if count and name not in leave_out]
    return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in sorted(counts, key=lambda pair: -pair[1]))


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1024:.0f} KiB"


def _print_balance(s: Session, report: CrawlReport) -> None:
    """What each phase can do, which one holds up the others, and every process with the sums below."""
    found = balance_of(report)
    s.table(
        ["phase", "pages", "pages/s now", "pages/s a core", "ratio", "cores busy", "cores due"],
        [(row.phase, row.pages, row.rate, row.per_core, row.ratio, row.busy, row.cores) for row in found.phases],
    )
    s.table(
        ["process", "pid", "MiB", "CPU s", "cores", "in hand"],
        [
            (beat.name, beat.pid or "", beat.memory / 2**20, beat.cpu_seconds, beat.load, beat.in_hand)
            for beat in heartbeat(report.workers, report.seconds)
        ],
    )
    s.write(f"advice\t{found.advice}")
