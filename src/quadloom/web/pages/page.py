"""`/page`: everything about one page. Its visits, statements, findings and links, and the reasons for its next visit.

The archived body is shown as text that no browser runs.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from starlette.responses import Response

from quadloom.asking.changes.readable_changes import PropertyChange
from quadloom.asking.changes.versions import VersionDifference
from quadloom.asking.entity import Value
from quadloom.asking.report.portrait import part_names
from quadloom.asking.search import moment
from quadloom.asking.things.paths import BLANK, PART_TYPES, RDF_TYPE, canonical, comparable
from quadloom.asking.urls import page_of
from quadloom.crawling.inspect.inspection import inspect
from quadloom.crawling.run.explain import Why
from quadloom.errors import ArchiveDamaged, StoreError
from quadloom.model.outcome import ArchiveRef, PageRow
from quadloom.model.page import Page
from quadloom.model.url import Url
from quadloom.stores.protocols.catalog import VisitRow
from quadloom.warehouse import Warehouse
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.server.security import SANDBOX
from quadloom.web.view.terms import StatementView, is_web, labels, statements

_MAX_STATEMENTS = 500
_MAX_LINKS = 200
_MAX_LISTED = 50  # of the links on the page; the JSON twin has all
_MAX_BODY = 2 * 1024 * 1024


class VisitView(msgspec.Struct, frozen=True, kw_only=True):
    """One visit, and what had changed since the visit before it."""

    at: float
    status: int
    outcome: str
    body_bytes: int
    quads: int
    graph_changed: bool
    text_changed: bool
    archived: bool


class LinkedPage(msgspec.Struct, frozen=True):
    url: str
    relation: str


class PageView(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    page: PageRow
    found_on: str
    visits: list[VisitView]
    statements: list[StatementView]
    statements_total: int
    links_out: list[LinkedPage]
    links_in: list[LinkedPage]
    why: Why | None
    difference: VersionDifference | None = None
    changes: tuple[PropertyChange, ...] = ()  # the same for people
    difference_from: float = 0.0
    difference_to: float = 0.0


def page_view(request: WebRequest) -> ViewResponse:
    warehouse, row = request.warehouse, _row(request)
    graph = row.graph
    lines = warehouse.stores.quads.graph(graph).decode().split("\n")[:-1]
    stated = list(statements(lines[:_MAX_STATEMENTS]))
    visits = _visits(warehouse.stores.catalog.visits.of(row.fingerprint))
    comparison = _comparison(request, row, visits)
    view = PageView(
        url=row.href,
        page=row,
        found_on=_found_on(warehouse, row),
        visits=visits,
        statements=stated,
        statements_total=len(lines),
        links_out=_links_out(stated, graph),
        links_in=_links_in(warehouse, graph),
        why=warehouse.requests.why(row.href),
        difference=comparison.difference,
        changes=warehouse.ask.readable(comparison.difference.added, comparison.difference.removed)
        if comparison.difference
        else (),
        difference_from=comparison.begin,
        difference_to=comparison.end,
    )
    shown = [term.text for statement in stated for term in (statement.subject, statement.object) if term.kind == "iri"]
    read = {link.url for link in view.links_out[:_MAX_LISTED] if page_of(warehouse.stores.catalog, link.url)}
    names = {**part_names(warehouse.stores.quads, shown), **labels(warehouse.stores.quads, shown)}
    extra: dict[str, object] = {
        "names": names,
        "read": read,
        "things": _things(stated, graph, names),
    }
    return ViewResponse("page.html", view, extra)


def _things(stated: list[StatementView], graph: str, names: dict[str, str]) -> list[tuple[Value, list[StatementView]]]:
    """The page's statements by thing: first what the page is about, last the page itself and parts of things."""
    groups: dict[str, list[StatementView]] = {}
    for statement in stated:
        groups.setdefault(statement.subject.text, []).append(statement)

    def place(name: str) -> tuple[int, int]:
        types = {canonical(found.object.text) for found in groups[name] if found.predicate == RDF_TYPE}
        if name.startswith(BLANK) or not types or types <= PART_TYPES:
            return 2 if types and not types <= PART_TYPES else 3, -len(groups[name])
        return int(not name.startswith(graph)), -len(groups[name])

    return [(groups[name][0].subject, _once(groups[name], names)) for name in sorted(groups, key=place)]


def _once(stated: list[StatementView], names: dict[str, str]) -> list[StatementView]:
    """Each value of a property once, though several syntaxes of the page give it in other spellings; the type first."""
    found: dict[tuple[str, str], StatementView] = {}
    for statement in stated:
        text = names.get(statement.object.text, statement.object.text)
        found.setdefault((canonical(statement.predicate), comparable(text)), statement)
    return sorted(found.values(), key=lambda statement: statement.predicate != RDF_TYPE)


def archived_body(request: WebRequest) -> Response:
    """What the server sent, as plain text in a sandbox, decoded with the detected charset."""
    row = _row(request)
    page = _visited(request, row)
    try:
        text = page.body[:_MAX_BODY].decode(row.charset or "utf-8", "replace")
    except LookupError:
        text = page.body[:_MAX_BODY].decode("utf-8", "replace")
    return Response(
        text.encode("utf-8", "replace"),
        media_type="text/plain; charset=utf-8",
        headers={"Content-Security-Policy": SANDBOX, "Content-Disposition": "inline", "Cache-Control": "no-store"},
    )


def as_markdown(request: WebRequest) -> Response:
    """The main part of an archived page. It is read in a process of its own, with limits."""
    page = _visited(request, _row(request))
    sent = page.header("content-type") or None
    found = inspect(page.body, settings=request.site.settings, url=page.final_url, content_type=sent)
    if found.failure:
        raise HttpError(500, found.failure, hint="/page/body shows what the server sent")
    return Response(
        found.markdown.encode("utf-8", "replace"),
        media_type="text/markdown; charset=utf-8",
        headers={"Content-Security-Policy": SANDBOX, "Content-Disposition": "inline", "Cache-Control": "no-store"},
    )


def _visited(request: WebRequest, row: PageRow) -> Page:
    """The archived page of the visit that the request names with `at`, else of the newest."""
    ref, at = row.archive, request.text("at")
    if at:
        history = request.warehouse.stores.catalog.visits.of(row.fingerprint)
        ref = next((visit.archive for visit in history if str(visit.fetched_at) == at), None)
    return _archived(request.warehouse, ref)


def _row(request: WebRequest) -> PageRow:
    url = Url.parse(request.required("url", "https://example.org/"))
    row = request.warehouse.stores.catalog.page(url.fingerprint)
    if row is None:
        state = request.warehouse.stores.frontier.explain(url.key, request.site.clock())
        queued = f"; its state in the queue is {state.state!r}" if state else ""
        raise HttpError(
            404, f"{url.href} has not been fetched yet{queued}", hint="/search lists the pages that have been fetched"
        )
    return row


def _archived(warehouse: Warehouse, ref: ArchiveRef | None) -> Page:
    if ref is None:
        raise HttpError(
            404, "this visit has no archived body", hint="unchanged, denied and failed visits have none; choose another"
        )
    try:
        page = warehouse.stores.archive.get(ref)
    except (ArchiveDamaged, StoreError) as error:
        raise HttpError(503, error.message, hint=error.hint or "run `quadloom verify`") from error
    if not isinstance(page, Page):
        raise HttpError(404, "this visit failed, so it has no body", hint="choose another visit")
    return page


def _found_on(warehouse: Warehouse, row: PageRow) -> str:
    parent = warehouse.stores.catalog.page(row.via) if row.via else None
    return parent.href if parent else ""


def _visits(history: list[VisitRow]) -> list[VisitView]:
    """Newest first, as the catalog gives them; each is compared with the one after it in the list."""
    older = [*history[1:], None]
    return [
        VisitView(
            at=visit.fetched_at,
            status=visit.status,
            outcome=visit.outcome,
            body_bytes=visit.body_bytes,
            quads=visit.quads,
            graph_changed=before is not None and visit.quads_digest != before.quads_digest,
            text_changed=before is not None and visit.text_digest != before.text_digest,
            archived=visit.archive is not None,
        )
        for visit, before in zip(history, older, strict=True)
    ]


class _Comparison(NamedTuple):
    difference: VersionDifference | None
    begin: float
    end: float


def _comparison(request: WebRequest, row: PageRow, visits: list[VisitView]) -> _Comparison:
    """The difference between the two chosen visits; without a choice, only the times of the newest change."""
    newest = next((place for place, visit in enumerate(visits) if visit.graph_changed), 0)
    end = visits[newest].at if visits else 0.0
    begin = visits[newest + 1].at if newest + 1 < len(visits) else end
    if not request.text("from"):
        return _Comparison(None, begin, end)
    begin, end = moment(request.text("from")), moment(request.text("to") or end)
    return _Comparison(request.warehouse.ask.changes(row.href, min(begin, end), max(begin, end)), begin, end)


def _links_out(stated: list[StatementView], graph: str) -> list[LinkedPage]:
    found = {
        statement.object.text: LinkedPage(statement.object.text, statement.predicate)
        for statement in stated
        if statement.object.kind == "iri"
        and statement.object.text != graph
        and is_web(statement.object.text)
        and not statement.predicate.endswith("#type")
    }
    return list(found.values())[:_MAX_LINKS]


def _links_in(warehouse: Warehouse, graph: str) -> list[LinkedPage]:
    """Pages that name this one in their statements."""
    lines = warehouse.stores.quads.match(None, None, f"<{graph}>", None, limit=2 * _MAX_LINKS)
    found = {
        (statement.graph, statement.predicate): LinkedPage(statement.graph, statement.predicate)
        for statement in statements(lines)
        if statement.graph != graph and is_web(statement.graph)
    }
    return list(found.values())[:_MAX_LINKS]
