"""`quadloom verify` and `quadloom rebuild`."""

from __future__ import annotations

from quadloom.cli.session import session
from quadloom.warehouse import Warehouse


def verify() -> int:
    """Compare archive, quads and text with the catalog, page by page. Exit code 1 where they differ."""
    s = session()
    with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
        result = warehouse.verify()
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
    """Make quads and text anew from the archive; the old ones are replaced when the new ones are complete."""
    s = session()
    with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
        pages = warehouse.rebuild(progress=lambda done: s.say(f"{done} pages"))
        quads = len(warehouse.quads)
    if s.json:
        s.emit({"pages": pages, "quads": quads})
    else:
        s.say(f"rebuilt {pages} pages, {quads} quads")
