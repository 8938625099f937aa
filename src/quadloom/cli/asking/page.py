"""`quadloom show page URL`: what is known of a page, its visits, its graph then and now."""

from __future__ import annotations

from datetime import UTC, datetime

from quadloom.asking.history import PageHistory
from quadloom.cli.session import Session
from quadloom.warehouse import Warehouse


def show_page(s: Session, warehouse: Warehouse, url: str, *, history: bool, at: str, since: str, until: str) -> None:
    """One of: visits, graph at a time, difference between two times, or a summary."""
    if at:
        s.write(warehouse.ask.graph_at(url, at).nquads.decode())
    elif since:
        _print_changes(s, warehouse, url, since, until)
    elif history:
        _print_visits(s, warehouse.ask.history(url))
    else:
        _print_page(s, warehouse.ask.history(url))


def _print_changes(s: Session, warehouse: Warehouse, url: str, since: str, until: str) -> None:
    found = warehouse.ask.changes(url, since, until) if until else warehouse.ask.changes(url, since)
    if s.json:
        s.emit({"url": url, "added": found.added, "removed": found.removed})
        return
    for line in found.removed:
        s.write(f"- {line}")
    for line in found.added:
        s.write(f"+ {line}")
    s.say(f"{len(found.added)} statements added, {len(found.removed)} removed")


def _print_visits(s: Session, found: PageHistory) -> None:
    if s.json:
        for visit in found.visits:
            s.emit(visit)
        return
    s.table(
        ["time", "status", "outcome", "bytes", "quads", "archived"],
        [
            (_time(visit.fetched_at), visit.status, visit.outcome, visit.body_bytes, visit.quads,
             f"{visit.archive.file}:{visit.archive.offset}" if visit.archive else "no")
            for visit in found.visits
        ],
    )  # fmt: skip


def _print_page(s: Session, found: PageHistory) -> None:
    page = found.page
    if s.json:
        s.emit(page)
        return
    lines = {
        "url": page.href, "title": page.title, "status": page.status, "outcome": page.outcome, "kind": page.kind,
        "type": page.media_type, "language": page.language, "first seen": _time(page.first_seen),
        "last visit": _time(page.fetched_at), "last change": _time(page.changed_at), "visits": page.visits,
        "changes": page.changes, "quads": page.quads, "links": page.links, "bytes": page.body_bytes,
        "reason": page.reason,
    }  # fmt: skip
    for name, value in lines.items():
        if value != "":
            s.write(f"{name}\t{value}")
    for finding in page.findings:
        s.write(f"finding\t{finding.code}\t{finding}")


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""
