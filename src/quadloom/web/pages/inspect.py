"""`/inspect`: one page through the five phases, without storing anything. Markup can be pasted instead of an address.

Inspecting an address makes this server send requests. On a server that others can reach this needs a token, and another
site's page can never cause it. The transformation runs in a process of its own with limits.
"""

from __future__ import annotations

import msgspec

from quadloom.crawling.inspect.inspection import Inspection, inspect
from quadloom.model.url import Url
from quadloom.web.api.control import authorise
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.server.security import is_loopback
from quadloom.web.view.filters import counted
from quadloom.web.view.terms import StatementView, statements

_PASTED_URL = "https://example.org/pasted"
_MAX_STATEMENTS = 300
_MAX_LINKS = 300
_MAX_LINES = 5000


class InspectView(msgspec.Struct, frozen=True, kw_only=True):
    verdict: str
    inspection: Inspection | None
    statements: list[StatementView]


def inspect_page(request: WebRequest) -> ViewResponse:
    url, markup = request.text("url").strip(), request.text("markup")
    content_type = "text/html"
    if request.content_type == "application/json":
        document = request.document()
        url, markup = str(document.get("url") or ""), str(document.get("markup") or "")
    elif request.http.method == "POST" and request.content_type not in ("application/x-www-form-urlencoded", ""):
        markup, content_type = request.body.decode("utf-8", "replace"), request.content_type
    elif request.text("content_type"):
        content_type = request.text("content_type")
    form: dict[str, object] = {"url": url, "markup": markup}
    if markup:
        base = Url.parse(url).href if url else _PASTED_URL
        found = inspect(
            markup.encode("utf-8", "replace"), settings=request.site.settings, url=base, content_type=content_type
        )
    elif url:
        _check_may_fetch(request)
        found = inspect(Url.parse(url).href, settings=request.site.settings)
    elif request.http.method == "POST":
        raise HttpError(400, "nothing to inspect", hint='send {"url": "https://example.org/"}, or the markup itself')
    else:
        return ViewResponse("inspect.html", InspectView(verdict="", inspection=None, statements=[]), form)
    stated = list(statements(found.nquads.decode().split("\n")[:_MAX_STATEMENTS]))
    shown = msgspec.structs.replace(found, links=found.links[:_MAX_LINKS])
    form["source_lines"] = found.source.splitlines()[:_MAX_LINES]
    form["marked"] = {finding.line for finding in found.findings}
    return ViewResponse("inspect.html", InspectView(verdict=_verdict(found), inspection=shown, statements=stated), form)


def _check_may_fetch(request: WebRequest) -> None:
    if request.http.headers.get("sec-fetch-site", "none") == "cross-site":
        raise HttpError(
            403, "another site's page may not make this server fetch pages", hint="use the form at /inspect"
        )
    if not is_loopback(request.site.settings.web.host):
        authorise(request.http, request.site)


def _verdict(found: Inspection) -> str:
    if found.failure:
        return f"✗ not fetched: {found.failure}"
    syntaxes = len({item.syntax for item in found.items})
    errors = sum(finding.severity == "error" for finding in found.findings)
    warnings = sum(finding.severity == "warning" for finding in found.findings)
    return (
        f"{'✗' if errors else '!' if warnings else '✓'} {counted(len(found.items), 'item')} in "
        f"{counted(syntaxes, 'syntax', 'es')} · {counted(found.quads, 'statement')} · "
        f"{counted(len(found.links), 'link')} · {counted(errors, 'error')} · {counted(warnings, 'warning')}"
    )
