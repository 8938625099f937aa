"""`quadloom verify`, `quadloom rebuild` and `quadloom prune`."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
from cyclopts import Parameter

from quadloom.cli.session import Session, session
from quadloom.maintenance import prune as pruning
from quadloom.warehouse import Warehouse


def verify() -> int:
    """Compare archive, quads and text with the catalog, page by page. Exit code 1 where they differ."""
    s = session()
    with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
        result = warehouse.maintenance.verify()
    if s.json:
        s.emit({"ok": result.ok, "pages": result.pages, "drift": list(result.drifts)})
    else:
        for drift in result.drifts:
            s.write(f"{drift.what}\t{drift.subject}\t{drift.detail}")
        s.say(f"{result.pages} pages checked, {'no drift' if result.ok else f'{len(result.drifts)} differences'}")
        if not result.ok:
            s.say("hint: `quadloom rebuild` makes quads and text anew from the archive")
    return 0 if result.ok else 1


def rebuild() -> None:
    """Make quads and text anew from the archive; the old ones are replaced when the new ones are complete.

    Scores of topics, and statements of pages that were not to be archived, are taken over. Indexes too damaged to be
    opened are left beside the new ones as quads.damaged or text.damaged.
    """
    s = session()
    with Warehouse.repair(s.warehouse, settings=s.settings) as warehouse:
        pages = warehouse.maintenance.rebuild(progress=lambda done: s.say(f"{done} pages"))
        quads = len(warehouse.stores.quads)
    if s.json:
        s.emit({"pages": pages, "quads": quads})
    else:
        s.say(f"rebuilt {pages} pages, {quads} quads")


def prune(*, dry_run: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Drop superseded visits older than index.retention from the history, and free their bytes in the archive.

    A page's newest version always stays, and so do versions that notices name; notices older than subscriptions.keep
    are dropped first. No crawl may run meanwhile. Killed at any moment, the next prune goes on. It never happens by
    itself.

    Parameters
    ----------
    dry_run
        only tell what would go; works beside a crawl
    """
    s = session()
    before = pruning.horizon(s.settings.index.retention, time.time())
    if before is None:
        _told(s, pruning.PruneReport(), 0, dry_run, "index.retention is `forever`: every visit stays, nothing to prune")
    elif dry_run:
        with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
            notices = warehouse.subscriptions.trimmed_notices()
            would = pruning.plan(warehouse.stores, before, without=notices).expected
        words = f"would drop {would.visits} visits and {len(notices)} notices, and free {would.freed_bytes} bytes"
        _told(s, would, len(notices), dry_run, words)
    else:
        with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
            trimmed = warehouse.subscriptions.trim_notices().dropped
            done = pruning.prune(warehouse.stores, before)
        for name in done.damaged:
            s.say(f"{name} is damaged and was left as it is; `quadloom verify` names the pages")
        words = f"dropped {done.visits} visits and {trimmed} notices, freed {done.freed_bytes} bytes"
        _told(s, done, trimmed, dry_run, words)


def _told(s: Session, result: pruning.PruneReport, notices: int, dry_run: bool, text: str) -> None:
    if s.json:
        numbers = {**msgspec.structs.asdict(result), "notices": notices}
        s.emit({"retention": s.settings.index.retention, "dry_run": dry_run, **numbers})
    else:
        s.say(text)
