"""`quadloom verify`, `rebuild`, `recover` and `prune`: check and repair the stores, remove old versions."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
from cyclopts import Parameter

from quadloom.cli.progress import Progress, known_pages, waiting
from quadloom.cli.session import Session, session
from quadloom.cli.upkeep.bulk import runner_of
from quadloom.maintenance import prune as pruning
from quadloom.stores.backends import exists
from quadloom.warehouse import Warehouse


def verify(*, workers: int = 0, ray: str | None = None, resume: bool = False) -> int:
    """Compare archive, quads, text and links with the catalog, page by page. Exit code 1 if they differ.

    Files of the archive are read one after another, each as a whole; several are compared at the same time.

    Parameters
    ----------
    workers
        processes that compare files of the archive; 0 = one per core
    ray
        address of a Ray cluster (auto, local, ray://host:10001) whose machines compare the files
    resume
        go on after an interrupted run: do not read the files again that it has compared
    """
    s = session()
    runner = runner_of(s, workers, ray)
    opened = Warehouse.open if exists(s.warehouse, s.settings) else Warehouse.read  # which refuses what is not there
    with (
        opened(s.warehouse, settings=s.settings) as warehouse,
        Progress(s, "verify", total=known_pages(warehouse)) as progress,
    ):
        result = warehouse.maintenance.verify(progress=progress.show, runner=runner, resume=resume)
    if s.json:
        s.emit({"ok": result.ok, "pages": result.pages, "drift": list(result.drifts), "advice": result.advice})
    else:
        for drift in result.drifts:
            s.write(f"{drift.what}\t{drift.subject}\t{drift.detail}")
        s.say(f"{result.pages:,} pages checked, {'no drift' if result.ok else f'{len(result.drifts):,} differences'}")
        if result.advice:
            s.say(f"hint: {result.advice}")
    return 0 if result.ok else 1


def rebuild(
    *,
    partial: bool = False,
    links: Annotated[bool, Parameter(negative="--no-links")] = True,
    workers: int | None = None,
    ray: str | None = None,
    resume: bool = False,
) -> int:
    """Rebuild quads, text and links from the archive; new indexes replace the old ones when they are complete.

    Topic scores, and statements of pages that may not be archived, are copied. Indexes that are too damaged to open are
    kept as quads.damaged or text.damaged. If the database or files of the archive are missing, nothing is changed.
    Exit code 1 if records of the archive cannot be read; their pages keep their statements and are visited again. If
    rebuild is killed, the next command finishes or undoes it.

    Parameters
    ----------
    partial
        go on although files of the archive are missing; their pages lose their words until they are visited again
    links
        queue the links of the pages for the next crawl, as far as crawl.strategies and the scope allow
    workers
        if both indexes are on servers: processes that read files of the archive and write to the indexes; 0 = one per
        core
    ray
        if both indexes are on servers: address of a Ray cluster (auto, local, ray://host:10001) whose machines do that
    resume
        go on after an interrupted run with --workers or --ray: do not rebuild the files again that it has done
    """
    s = session()
    runner = runner_of(s, workers or 0, ray) if workers is not None or ray is not None or resume else None
    with Warehouse.repair(s.warehouse, settings=s.settings) as warehouse:
        with Progress(s, "rebuild", total=known_pages(warehouse)) as progress:
            done = warehouse.maintenance.rebuild(
                partial=partial, links=links, progress=progress.show, runner=runner, resume=resume
            )
        quads = len(warehouse.stores.quads)
    if s.json:
        s.emit({**msgspec.structs.asdict(done), "quads": quads})
    else:
        for record in done.unreadable:
            s.write(f"unreadable\t{record.url}\t{record.reason}")
        s.say(f"rebuilt {done.pages:,} pages, {quads:,} quads")
        if done.unreadable_records:
            s.say(f"{done.unreadable_records} records of the archive cannot be read; their pages will be visited again")
            s.say("hint: restore the files from a backup and rebuild again, or let the next crawl read the pages")
    return 1 if done.unreadable_records else 0


def recover() -> int:
    """Recover a warehouse whose database (quadloom.db) is lost or damaged, from its archive, in place.

    Every archived page is read again, in the order in which it was fetched. Pages, their history, links and indexes are
    as before. The queue has what the pages link to, within the scope; when a page is due follows from its history.
    Pages to which no earlier page leads are the new seeds, and
    the first page of every site. What can still be read of a damaged database is used, too: its
    seeds, rules, queue, schedule, subscriptions and saved queries; the file is kept as quadloom.db.damaged. If the
    database is not damaged, nothing is changed. Exit code 1 if parts of the archive cannot be read. If recover is
    killed, run it again.
    """
    s = session()
    with Progress(s, "recover", unit="records") as progress:
        done = Warehouse.recover(
            s.warehouse, settings=s.settings, progress=progress.show, notice=lambda _kind, text: s.say(text)
        )
    if s.json:
        s.emit(done)
        return 1 if done.unreadable_bytes else 0
    s.say(f"recovered {done.pages:,} pages from {done.versions:,} records of the archive; {done.queued:,} URLs queued")
    if done.kept:
        s.say(f"{done.kept:,} URLs and values were taken from the damaged database")
    if not done.seeds_known:
        seeds = ", ".join(done.seeds[:3]) + (" …" if len(done.seeds) > 3 else "")
        s.say(f"the seeds are lost; {len(done.seeds):,} pages take their place, at least one of each site: {seeds}")
        s.say("rules of `quadloom scope`, subscriptions and saved queries are lost; to see the scope: `quadloom scope`")
    if done.unreadable_bytes:
        s.say(f"{done.unreadable_bytes:,} bytes of the archive cannot be read; the next crawl visits their pages again")
    return 1 if done.unreadable_bytes else 0


def prune(*, dry_run: bool = False) -> None:
    """Remove superseded visits older than index.retention from the history, and free their space in the archive.

    The newest version of a page always stays, and so do versions that notices refer to; notices older than
    subscriptions.keep are removed first. No crawl may run at the same time. If prune is killed, the next one continues.
    It never runs by itself.

    Parameters
    ----------
    dry_run
        only print what would be removed; works during a crawl
    """
    s = session()
    before = pruning.horizon(s.settings.index.retention, time.time())
    if before is None:
        _print_result(s, pruning.PruneReport(), 0, dry_run, "nothing to prune: index.retention is `forever`")
    elif dry_run:
        with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
            notices = warehouse.subscriptions.trimmed_notices()
            would = pruning.plan(warehouse.stores, before, without=notices).expected
        words = f"would remove {would.visits} visits and {len(notices)} notices, and free {would.freed_bytes} bytes"
        _print_result(s, would, len(notices), dry_run, words)
    else:
        with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
            trimmed = warehouse.subscriptions.trim_notices().dropped
            with waiting(s, "removing old versions and writing archive files again …"):
                done = warehouse.maintenance.prune(before)
        for name in done.damaged:
            s.say(f"{name} is damaged and was not changed; to see its pages: `quadloom verify`")
        words = f"removed {done.visits} visits and {trimmed} notices, freed {done.freed_bytes} bytes"
        _print_result(s, done, trimmed, dry_run, words)


def _print_result(s: Session, result: pruning.PruneReport, notices: int, dry_run: bool, text: str) -> None:
    if s.json:
        numbers = {**msgspec.structs.asdict(result), "notices": notices}
        s.emit({"retention": s.settings.index.retention, "dry_run": dry_run, **numbers})
    else:
        s.say(text)
