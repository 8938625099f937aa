"""`quadloom show`: an entity with the pages that describe it, or a page with its history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import msgspec
from cyclopts import Parameter

from quadloom.asking.changes.history import PageHistory
from quadloom.asking.changes.readable_changes import StoredNames
from quadloom.asking.changes.timeline import Timeline, entity_timeline, page_timeline
from quadloom.asking.changes.versions import VersionDifference
from quadloom.asking.entity import Entity, Property
from quadloom.asking.report.portrait import part_names
from quadloom.asking.search import moment
from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.things.paths import comparable, type_name, words
from quadloom.cli.session import Session, session
from quadloom.cli.words import cut
from quadloom.errors import UsageError
from quadloom.model.timestamps import iso_time
from quadloom.stores.protocols.catalog import VisitRow
from quadloom.warehouse import Warehouse

_MOST_CHANGES = 200


def show(
    *names: str,
    history: bool = False,
    at: str = "",
    since: str = "",
    until: str = "",
    consolidate: Annotated[bool | None, Parameter(negative="--no-consolidate")] = None,
    limit: int = 200,
    raw: bool = False,
) -> None:
    """Show all statements about an entity with their pages, or with `show page URL` a page and its history.

    Parameters
    ----------
    names
        an IRI or a prefixed name such as dbr:Vienna; or `page` and a URL
    history
        what changed in time, before → after; of a page, its visits too, newest first
    at
        print the graph of a page as it was at this time
    since
        what changed since this time: 2026-01-31, or 7d; of an entity, on the pages that describe it
    until
        end of the period that starts with --since [default: the last visit]
    consolidate
        merge names linked by owl:sameAs or a shared identifier
    limit
        number of lines to print
    raw
        with --since and a page: print the statements as N-Quads, with + and -
    """
    s = session()
    if len(names) == 2 and names[0] == "page":
        with s.read() as warehouse:
            _show_page(s, warehouse, names[1], history=history, at=at, since=since, until=until, raw=raw)
        return
    if len(names) != 1 or names[0] == "page":
        hint = "for example: `quadloom show https://example.org/#me` or `quadloom show page https://example.org/`"
        raise UsageError("show takes one IRI, or `page` and a URL", hint=hint)
    if at or until or raw:
        raise UsageError("--at, --until and --raw are for pages", hint=f"write: `quadloom show page {names[0]} …`")
    with s.read() as warehouse:
        entity = warehouse.ask.entity(names[0], consolidate=consolidate)
        if history or since:
            timeline = entity_timeline(warehouse.stores.catalog, warehouse.ask.versions, entity)
            _print_timeline(s, timeline, moment(since), limit)
            return
        quads = warehouse.stores.quads
        parts = part_names(
            quads,
            [one.value.text for found in entity.properties for one in found.statements if one.value.kind == "iri"],
        )
        stored = StoredNames(quads)
        if s.json:
            s.emit(entity)
        elif s.is_terminal:
            _print_entity(s, entity, lambda iri: parts.get(iri) or stored(iri), limit)
        else:
            _write_entity(s, entity, parts, limit)


def _write_entity(s: Session, entity: Entity, parts: Mapping[str, str], limit: int) -> None:
    """For a pipe: a line for each statement. A part is written as what it says, since nobody can follow its address."""
    s.write(f"{entity.label or entity.iri}\t{' '.join(shorten(name) for name in entity.types)}")
    lines = 0
    for found in entity.properties:
        for statement in found.statements:
            if lines < limit:
                mark = "≠" if found.contradicted else " "
                text = parts.get(statement.value.text, statement.value.text)
                value = text + (f"@{statement.value.language}" if statement.value.language else "")
                s.write(f"{mark} {shorten(found.iri)}\t{_one_line(value)}\t{' '.join(statement.sources)}")
            lines += 1
    for inverse in entity.inverse[: max(0, limit - lines)]:
        s.write(f"← {shorten(inverse.predicate)}\t{inverse.subject}\t{' '.join(inverse.sources)}")
    for source in entity.gone:
        s.say(f"{source}:{_gone_mark(entity, source)}")
    if lines + len(entity.inverse) > limit:
        s.say(f"{lines + len(entity.inverse)} lines; to see more, raise --limit")


def _print_timeline(s: Session, found: Timeline, since: float, limit: int) -> None:
    rows = [one for one in found.changes if one.at >= since][:limit]
    if s.json:
        s.emit(msgspec.structs.replace(found, changes=tuple(rows)))
        return
    s.table(
        ["seen", "thing", "property", "before", "after", "page"],
        [
            (
                _time(one.at),
                one.thing,
                one.property,
                _one_line(", ".join(one.before)),
                _one_line(", ".join(one.after)),
                one.page,
            )
            for one in rows
        ],
    )
    if not rows:
        s.say("nothing changed" + (f" since the first visit, {_time(found.first_seen)}" if found.first_seen else ""))
    if found.partial:
        s.say("not all pages and versions are in it")


def _print_entity(s: Session, entity: Entity, names: Callable[[str], str], limit: int) -> None:
    """For a terminal: statements with the numbers of their sources, which are listed below."""
    s.write(f"{entity.label or entity.iri}  {', '.join(type_name(name) for name in entity.types)}\n{entity.iri}\n")
    numbers: dict[str, int] = {}

    def cited(sources: Sequence[str]) -> str:
        cited = {numbers.setdefault(source, len(numbers) + 1) for source in sources}
        return " ".join(f"[{number}]" for number in sorted(cited))

    rows = [
        (("≠ " if found.contradicted else "") + words(found.iri), value, cited(sources))
        for found in entity.properties
        for value, sources in _values(found, names).items()
    ]
    rows += [(f"← {words(one.predicate)}", _name(one.subject, names), cited(one.sources)) for one in entity.inverse]
    s.table(["property", "value", "sources"], rows[:limit])
    s.write("\nSources")
    for source, number in numbers.items():
        s.write(f"  [{number}] {source}{_gone_mark(entity, source)}")
    if len(rows) > limit:
        s.say(f"{len(rows)} lines; to see more, raise --limit")


def _gone_mark(entity: Entity, source: str) -> str:
    return f" not found since {_time(entity.gone[source])}" if source in entity.gone else ""


def _values(found: Property, names: Callable[[str], str]) -> dict[str, list[str]]:
    """Each value once, with all its sources, though pages may write it with and without a language."""
    merged: dict[str, tuple[str, list[str]]] = {}
    for statement in found.statements:
        value = statement.value
        text = _name(value.text, names) if value.kind == "iri" else _one_line(value.text)
        merged.setdefault(comparable(text), (text, []))[1].extend(statement.sources)
    return dict(merged.values())


def _name(iri: str, names: Callable[[str], str]) -> str:
    return names(iri) or shorten(iri)


def _show_page(
    s: Session, warehouse: Warehouse, url: str, *, history: bool, at: str, since: str, until: str, raw: bool
) -> None:
    """Print the visits, the graph at a time, the difference between two times, or a summary."""
    if at:
        s.write(warehouse.ask.graph_at(url, at).nquads.decode())
    elif since:
        _print_changes(s, warehouse, url, since, until, raw)
    elif history:
        found = warehouse.ask.history(url)
        _print_visits(s, found)
        if not s.json:
            s.write("")
            timeline = page_timeline(warehouse.stores.catalog, warehouse.ask.versions, found.page)
            _print_timeline(s, timeline, 0.0, _MOST_CHANGES)
    else:
        _print_page(s, warehouse.ask.history(url))


def _print_changes(s: Session, warehouse: Warehouse, url: str, since: str, until: str, raw: bool) -> None:
    found = warehouse.ask.changes(url, since, until) if until else warehouse.ask.changes(url, since)
    if s.json:
        s.emit({"url": url, **msgspec.structs.asdict(found)})
        return
    if raw:
        for line in found.removed:
            s.write(f"- {line}")
        for line in found.added:
            s.write(f"+ {line}")
    else:
        _print_readable(s, warehouse, found)
    s.say(f"statements: {len(found.added)} added, {len(found.removed)} removed")


def _print_readable(s: Session, warehouse: Warehouse, found: VersionDifference) -> None:
    s.table(
        ["thing", "property", "before", "after"],
        [
            (change.thing, change.property, ", ".join(change.before), ", ".join(change.after))
            for change in warehouse.ask.readable(found.added, found.removed)
        ],
    )
    for sign, lines in (("-", found.text_removed), ("+", found.text_added)):
        for line in lines:
            s.write(f"{sign} {_one_line(line)}")


def _print_visits(s: Session, found: PageHistory) -> None:
    def cells(visit: VisitRow) -> list[object]:
        archived = f"{visit.archive.file}:{visit.archive.offset}" if visit.archive else "no"
        return [_time(visit.fetched_at), visit.status, visit.outcome, visit.body_bytes, visit.quads, archived]

    s.records(found.visits, ["time", "status", "outcome", "bytes", "quads", "archived"], cells)


def _print_page(s: Session, found: PageHistory) -> None:
    page = found.page
    if s.json:
        s.emit(page)
        return
    lines = {
        "url": page.href,
        "title": page.title,
        "status": page.status,
        "outcome": page.outcome,
        "state": page.state,
        "kind": page.kind,
        "type": page.media_type,
        "language": page.language,
        "first seen": _time(page.first_seen),
        "last visit": _time(page.fetched_at),
        "last change": _time(page.changed_at),
        "visits": page.visits,
        "changes": page.changes,
        "quads": page.quads,
        "links": page.links,
        "bytes": page.body_bytes,
        "reason": page.reason,
    }
    s.table(["", ""], [(name, str(value)) for name, value in lines.items() if value != ""])
    for finding in page.findings:
        if s.is_terminal:
            s.print(f"{finding.code}  {finding}")
        else:
            s.write(f"finding\t{finding.code}\t{finding}")


def _time(at: float) -> str:
    return iso_time(at) if at else ""


def _one_line(text: str) -> str:
    return cut(" ".join(text.split()), 200)
