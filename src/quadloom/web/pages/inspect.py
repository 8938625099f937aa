"""`/inspect`: one page through the five phases, without storing anything. Markup can be pasted instead of an address.

Reading an address makes this server send requests, so on a server that others can reach it needs the token, and never
happens because another site's page says so. The transformation runs in a process of its own with limits.
"""

from __future__ import annotations

import msgspec

from quadloom.asking.inspect.inspect import Inspection, inspect
from quadloom.model.url import Url
from quadloom.web.api.control import authorise
from quadloom.web.server.errors import RequestRefused
from quadloom.web.server.rendering import counted
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.server.security import is_loopback
from quadloom.web.view.terms import StatementView, statements

_PASTED = "https://example.org/pasted"
_STATEMENTS = 300
_LINKS = 300


class InspectView(msgspec.Struct, frozen=True, kw_only=True):
    verdict: str
    inspection: Inspection | None
    statements: list[StatementView]


def inspect_page(ask: WebRequest) -> ViewResponse:
    url, markup = ask.text("url").strip(), ask.text("markup")
    content_type = "text/html"
    if ask.content_type == "application/json":
        document = ask.document()
        url, markup = str(document.get("url") or ""), str(document.get("markup") or "")
    elif ask.request.method == "POST" and ask.content_type not in ("application/x-www-form-urlencoded", ""):
        markup, content_type = ask.body.decode("utf-8", "replace"), ask.content_type
    elif ask.text("content_type"):
        content_type = ask.text("content_type")
    state: dict[str, object] = {"url": url, "markup": markup}
    if markup:
        base = Url.parse(url).href if url else _PASTED
        found = inspect(markup.encode("utf-8", "replace"), settings=ask.desk.settings, url=base,
                        content_type=content_type)  # fmt: skip
    elif url:
        _may_visit(ask)
        found = inspect(Url.parse(url).href, settings=ask.desk.settings)
    elif ask.request.method == "POST":
        raise RequestRefused(
            400, "nothing to inspect", hint='send {"url": "https://example.org/"}, or the markup itself'
        )
    else:
        return ViewResponse("inspect.html", InspectView(verdict="", inspection=None, statements=[]), state)
    stated = list(statements(found.nquads.decode().split("\n")[:_STATEMENTS]))
    shown = msgspec.structs.replace(found, links=found.links[:_LINKS])
    return ViewResponse(
        "inspect.html", InspectView(verdict=_verdict(found), inspection=shown, statements=stated), state
    )


def _may_visit(ask: WebRequest) -> None:
    if ask.request.headers.get("sec-fetch-site", "none") == "cross-site":
        raise RequestRefused(
            403, "another site's page may not make this server visit pages", hint="ask from /inspect itself"
        )
    if not is_loopback(ask.desk.settings.web.host):
        authorise(ask.request, ask.desk)


def _verdict(found: Inspection) -> str:
    if found.failure:
        return f"✗ not read: {found.failure}"
    syntaxes = len({item.syntax for item in found.items})
    bad = sum(finding.severity != "info" for finding in found.findings)
    return (
        f"{'✓' if not bad else '!'} {counted(len(found.items), 'item')} in {counted(syntaxes, 'syntax', 'es')} · "
        f"{counted(found.quads, 'statement')} · {counted(len(found.links), 'link')} · {counted(bad, 'warning')}"
    )
