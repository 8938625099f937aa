"""`quadloom demo`: crawl six small sites that come with the program, then answer three questions from the result."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from quadloom.asking.audit.across_pages import audited_pages
from quadloom.asking.audit.groups import DefectGroup
from quadloom.asking.audit.report import audit
from quadloom.asking.report.numbers import labelled
from quadloom.cli.crawling.crawl import follow_crawl
from quadloom.cli.demo_sites import QUESTIONS, DemoServer, Question
from quadloom.cli.session import Session, session
from quadloom.cli.tables import shortened
from quadloom.cli.words import counted
from quadloom.errors import UsageError
from quadloom.settings import GuardSettings, PolitenessSettings, Settings
from quadloom.stores.protocols.text import SearchRequest
from quadloom.warehouse import Warehouse
from quadloom.web.view.filters import date_words

_FOLDER = Path("quadloom-demo")
SITES_PORT = 7273
SITES_CONFIG = """# Written by `quadloom demo --sites`: how to reach the demo's sites, with short pauses.
[crawl]
contact = "demo@quadloom.invalid"
max_wait = 2.0
[politeness]
delay = 0.05
ip_delay = 0.0
max_crawl_delay = 0.2
[guard]
allow = ["127.0.0.0/8"]
hosts = { "*.example" = "127.0.0.1" }
"""


def demo(
    *,
    offline: bool = True,
    keep: bool = False,
    sites: bool = False,
) -> None:
    """Crawl six small sites that come with Quadloom, then answer three questions about them.

    The warehouse is ./quadloom-demo, or a new directory given with -w.

    Parameters
    ----------
    offline
        crawl the sites inside the package, served on loopback; the demo never uses the network
    keep
        continue with the warehouse of an earlier demo
    sites
        only serve the sites, until Ctrl-C, so that you can crawl them yourself; writes ./quadloom.toml for that
    """
    s = session()
    if sites:
        _serve_sites(s)
        return
    if not offline:
        raise UsageError("the demo runs offline only", hint="to read the real web: `quadloom crawl https://your.site`")
    folder = s.named_warehouse or _FOLDER
    if folder.exists() and not keep:
        if s.named_warehouse is not None:  # somebody may need it
            raise UsageError(f"{folder} exists", hint="name a new directory, or add --keep to continue an earlier demo")
        if not (folder / "quadloom.db").exists():
            raise UsageError(f"{folder} exists and is not a warehouse", hint="run the demo in another directory")
        shutil.rmtree(folder)
    started = time.monotonic()
    with DemoServer() as server:
        settings = demo_settings(s.settings, server.hosts_override())
        s.say(f"Crawling {len(server.homes)} small sites on this machine, politely. Data in {folder}")
        with Warehouse.open(folder, settings=settings) as warehouse:
            report, _ = follow_crawl(s, warehouse.crawl(server.homes))
            numbers = warehouse.ask.numbers()
            found = sum(len(page.findings) for page in audited_pages(warehouse.stores))
    phases = "  ".join(f"{name} {count}" for name, count in report.phases.items())
    if s.json:
        s.emit(report)
        return
    s.write(f"✓ done: {phases}   {time.monotonic() - started:.0f} s")
    counts = [*labelled(numbers), ("links", report.links), ("findings", found)]
    for place in range(0, len(counts), 3):
        s.print("  " + " · ".join(f"{count:,} {label}" for label, count in counts[place : place + 3]))
    with Warehouse.read(folder, settings=settings) as warehouse:
        for question in QUESTIONS:
            _ask(s, warehouse, question, folder)
        _audit(s, warehouse, folder)
    s.print("\nNext")
    for command, what in (
        *activation(),
        (f"quadloom -w {folder} serve", "the same in a browser"),
        (f"quadloom -w {folder} report", "all of it in one HTML file"),
        ("quadloom crawl https://your.site", "your own pages"),
        ("quadloom inspect URL", "what one page states, and its defects"),
    ):
        s.print(f"  {command:<34}  {what}")


def activation() -> Iterator[tuple[str, str]]:
    """The command after which the shell finds `quadloom`, if it does not yet: `make demo` runs it by its path."""
    activate = Path(sys.executable).parent / "activate"
    if shutil.which("quadloom") is None and activate.exists():
        yield f". {os.path.relpath(activate)}", "let the shell find quadloom"


def _serve_sites(s: Session) -> None:
    """Serve the sites for the tutorial, always at the same addresses."""
    config = Path("quadloom.toml")
    if config.exists() and config.read_text(encoding="utf-8") != SITES_CONFIG:
        raise UsageError(f"{config} exists", hint="run this in an empty directory")
    try:
        server = DemoServer(port=SITES_PORT)
    except OSError:
        hint = "stop that program; it may be another `quadloom demo --sites`"
        raise UsageError(f"another program uses port {SITES_PORT}", hint=hint) from None
    config.write_text(SITES_CONFIG, encoding="utf-8")
    with server:
        s.say(f"Six sites on this machine, until Ctrl-C. {config} lets `quadloom` find them from this directory:")
        for home in server.homes:
            s.write(home)
        threading.Event().wait()


def demo_settings(settings: Settings, hosts: dict[str, str]) -> Settings:
    """Settings with short pauses that allow loopback. `hosts`: name of the demo → address."""
    return msgspec.structs.replace(
        settings,
        crawl=msgspec.structs.replace(settings.crawl, scope="site", contact="demo@quadloom.invalid", max_wait=5.0),
        politeness=PolitenessSettings(delay=0.05, ip_delay=0.0, per_site=2, adaptive=0.0, max_crawl_delay=0.2),
        guard=GuardSettings(allow=["127.0.0.0/8"], hosts=hosts),
    )


def _audit(s: Session, warehouse: Warehouse, folder: Path) -> None:
    """Print the three worst kinds of defects in the sites' data."""
    s.print(f"\nWhat is wrong with their data?\n  $ quadloom -w {folder} audit")
    by_code: dict[str, DefectGroup] = {}
    for group in audit(audited_pages(warehouse.stores)).groups:
        by_code.setdefault(group.code, group)
    for group in list(by_code.values())[:3]:
        s.print(f"    {group.headline}\n      on {group.site}; fix: {group.fix}")


def _ask(s: Session, warehouse: Warehouse, question: Question, folder: Path) -> None:
    s.print(f"\n{question.title}\n  $ quadloom -w {folder} {question.arguments}")
    if question.command == "search":
        answer = warehouse.stores.text.search(SearchRequest(text=question.query, limit=4))
        for hit in answer.hits:
            s.print(f"    {shortened(hit.title or hit.id, s.out.width - 30)}  ({hit.site})")
        return
    found = warehouse.things(question.query, where=question.where or (), sites=question.sites, limit=4)
    for row in found.table.rows:
        values = [", ".join(value.text for value in cell[:2]) for cell in row.cells[1:3] if cell]
        pages = counted(len(row.sources), "page") if question.sites else ""
        s.print("    " + "  ·  ".join(filter(None, (row.label, *map(date_words, values), pages))))
    if found.total > len(found):
        s.print(f"    and {found.total - len(found)} more")
