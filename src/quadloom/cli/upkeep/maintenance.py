"""`quadloom verify`, `rebuild`, `recover` and `prune`: check and repair the stores, remove old versions."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
from cyclopts import Parameter

from quadloom.cli.options import Ray, Resume, Workers
from quadloom.cli.progress import Progress, known_pages, waiting
from quadloom.cli.session import session
from quadloom.cli.upkeep.bulk import runner_of
from quadloom.cli.words import counted, size
from quadloom.maintenance.removal import prune as pruning
from quadloom.process.durable import is_writable
from quadloom.stores.backends import exists
from quadloom.warehouse import Warehouse


def verify(*, workers: Workers = 0, ray: Ray = None, resume: Resume = False) -> int:
    """Compare archive, quads, text and links with the catalog, page by page. Exit code 1 if they differ.

    Each process reads a file of the archive at a time, as a whole.
    """
    s = session()
    runner = runner_of(s, workers, ray)
    # Opening brings an older warehouse up to date; reading neither creates one nor writes to a read-only disk.
    owned = exists(s.warehouse, s.settings) and is_writable(s.warehouse)
    opened = s.open() if owned else s.read()
    with opened as warehouse, Progress(s, "verify", total=known_pages(warehouse)) as progress:
        result = warehouse.maintenance.verify(progress=progress.show, runner=runner, resume=resume)
    if s.json:
        s.emit({"ok": result.ok, "pages": result.pages, "drift": list(result.drifts), "advice": result.advice})
    else:
        for drift in result.drifts:
            s.write(f"{drift.what}\t{drift.subject}\t{drift.detail}")
        found = "no differences" if result.ok else counted(len(result.drifts), "difference")
        s.say(f"{counted(result.pages, 'page')} checked, {found}")
        if result.advice:
            s.say(f"hint: {result.advice}")
    return 0 if result.ok else 1


def rebuild(
    *,
    partial: bool = False,
    links: Annotated[bool, Parameter(negative="--no-links")] = True,
    workers: int | None = None,
    ray: Ray = None,
    resume: Resume = False,
) -> int:
    """Rebuild quads, text and links from the archive; new indexes replace the old ones when they are complete.

    Topic scores, and statements of pages that may not be archived, are copied. An index that is too damaged to open is
    kept as quads.damaged or text.damaged. If the database or a file of the archive is missing, nothing is changed. The
    exit code is 1 if records of the archive cannot be read; their pages keep their statements and are visited again. If
    rebuild is killed, the next command finishes or undoes it.

    --workers and --ray need both indexes on servers.

    Parameters
    ----------
    partial
        continue although files of the archive are missing; their pages lose their words until they are visited again
    links
        queue the links of the pages for the next crawl, as far as crawl.strategies and the scope allow
    workers
        processes that do the work; 0 = one per core
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
        s.say(f"{counted(done.pages, 'page')} rebuilt, {counted(quads, 'quad')}")
        if done.unreadable_records:
            s.say(f"{done.unreadable_records} records of the archive cannot be read; their pages will be visited again")
            s.say("hint: restore the files from a backup and rebuild again, or let the next crawl read the pages")
    return 1 if done.unreadable_records else 0


def recover() -> int:
    """Recover a warehouse from its archive if its database (quadloom.db) is lost or damaged.

    Every archived page is read again, in the order in which it was fetched. Pages, their history, links and indexes are
    as before. The queue has the links of the pages, within the scope, and the schedule follows from the history. The
    new seeds are the pages that no earlier page links to, and the first page of each site. Seeds, rules, queue,
    schedule, subscriptions and saved queries that can still be read from a damaged database are used, and the file is
    kept as quadloom.db.damaged. If the database is not damaged, nothing is changed. The exit code is 1 if parts of the
    archive cannot be read. If recover is killed, run it again.
    """
    s = session()
    with Progress(s, "recover", unit="records") as progress:
        done = Warehouse.recover(
            s.warehouse, settings=s.settings, progress=progress.show, notice=lambda _kind, text: s.say(text)
        )
    if s.json:
        s.emit(done)
        return 1 if done.unreadable_bytes else 0
    s.say(f"{done.pages:,} pages recovered from {done.versions:,} archive records; {done.queued:,} URLs queued")
    if done.kept:
        s.say(f"{done.kept:,} URLs and values were taken from the damaged database")
    if not done.seeds_known:
        seeds = ", ".join(done.seeds[:3]) + (" …" if len(done.seeds) > 3 else "")
        s.say(f"the seeds are lost; {len(done.seeds):,} pages replace them, at least one of each site: {seeds}")
        s.say("scope rules, subscriptions and saved queries are lost; to see the scope: `quadloom scope show`")
    if done.unreadable_bytes:
        s.say(f"{done.unreadable_bytes:,} bytes of the archive cannot be read; the next crawl visits their pages again")
    return 1 if done.unreadable_bytes else 0


def prune(*, dry_run: bool = False) -> None:
    """Remove superseded visits older than index.retention from the history, and free their space in the archive.

    The newest version of a page is never removed, nor are versions that notices refer to; notices older than
    subscriptions.keep are removed first. No crawl may run at the same time. If prune is killed, run it again: it
    continues. Nothing else prunes the archive.

    Parameters
    ----------
    dry_run
        only print what would be removed; works during a crawl
    """
    s = session()
    before = pruning.horizon(s.settings.index.retention, time.time())
    result, notices = pruning.PruneReport(), 0
    if before is None:
        text = "nothing to prune: index.retention is `forever`"
    elif dry_run:
        with s.read() as warehouse:
            trimmed = warehouse.subscriptions.trimmed_notices()
            result, notices = pruning.plan(warehouse.stores, before, without=trimmed).expected, len(trimmed)
        text = f"would remove {result.visits:,} visits and {notices:,} notices, and free {size(result.freed_bytes)}"
    else:
        with s.open() as warehouse:
            notices = warehouse.subscriptions.trim_notices().dropped
            with waiting(s, "removing old versions and rewriting archive files …"):
                result = warehouse.maintenance.prune(before)
        for name in result.damaged:
            s.say(f"{name} is damaged and was not changed; to see its pages: `quadloom verify`")
        text = f"removed {result.visits:,} visits and {notices:,} notices, freed {size(result.freed_bytes)}"
    numbers = {**msgspec.structs.asdict(result), "notices": notices}
    s.report({"retention": s.settings.index.retention, "dry_run": dry_run, **numbers}, text)
