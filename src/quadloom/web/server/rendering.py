"""Handlers' answers as bytes: Jinja templates with escaping on, JSON twins, errors in their one shape."""

from __future__ import annotations

from functools import lru_cache, partial
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import Response

from quadloom import __version__
from quadloom.asking.report.numbers import LABELS
from quadloom.model.finding import named
from quadloom.web.server.errors import ErrorBody
from quadloom.web.server.negotiation import prefers_html
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.server.state import SiteState
from quadloom.web.view import filters, terms
from quadloom.web.view.cards import card_line
from quadloom.web.view.environment import template_environment

MENU = (
    ("/search", "Search"), ("/types", "Things"), ("/ask", "Ask"), ("/sparql", "SPARQL"), ("/changed", "Changes"),
    ("/sites", "Sites"), ("/findings", "Findings"), ("/inspect", "Inspect"), ("/monitor", "Monitor"),
)  # fmt: skip
# In the footer of every page: what is needed less often.
MORE = (
    ("/queries", "Saved queries"), ("/schema", "Schema"), ("/vocabularies", "Vocabularies"),
    ("/subscriptions", "Subscriptions"), ("/topics", "Topics"), ("/about", "About"),
    ("/openapi.json", "API"), ("/.well-known/void", "VoID"),
)  # fmt: skip
_ADDRESSES = frozenset(path for path, _ in MENU + MORE)
_MISSING = "The SPARQL editor is not built: run make web, then restart the server."


class Renderer:
    def __init__(self, site: SiteState) -> None:
        self._site = site
        self._templates = _environment(site)

    def answer(self, request: WebRequest, answer: ViewResponse | Response) -> Response:
        if isinstance(answer, Response):
            return answer
        if request.wants_json:
            return json_response(answer.data, status=answer.status, headers=answer.headers)
        return self._page(request.http, answer)

    def error(self, request: Request, error: ErrorBody, headers: dict[str, str]) -> Response:
        path = request.url.path
        if prefers_html(request.headers.get("accept", "")) and not path.endswith((".json", ".svg")):
            view = ViewResponse("error.html", {"error": error}, status=error.status, headers=headers)
            return self._page(request, view)
        return Response(error.encode(), error.status, media_type="application/json", headers=headers)

    def _page(self, request: Request, view: ViewResponse) -> Response:
        names = view.data if isinstance(view.data, dict) else {"view": view.data}
        html = self._templates.get_template(view.template).render(
            path=request.url.path,
            crawl_state=self._site.crawl.state,
            twin=_twin(request),
            signed_in=bool(request.cookies.get("quadloom_token")),
            **names,
            **view.extra,
        )
        return Response(
            html, view.status, media_type="text/html; charset=utf-8", headers={"Vary": "Accept", **view.headers}
        )


def json_response(
    data: msgspec.Struct | dict[str, object], *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    body = msgspec.json.encode(named(data), enc_hook=_plain)
    body = b'{"ok":true}' if body == b"{}" else b'{"ok":true,' + body[1:]
    return Response(body, status, media_type="application/json", headers=headers)


def _twin(request: Request) -> str:
    path = "/index" if request.url.path == "/" else request.url.path
    return f"{path}.json" + (f"?{request.url.query}" if request.url.query else "")


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else str(value)


def _environment(site: SiteState) -> Environment:
    environment = template_environment()
    environment.globals.update(
        menu=MENU,
        addresses=_ADDRESSES,
        footer_menu=MORE,
        missing="" if site.static.has("yasgui.js") else _MISSING,
        version=__version__,
        labels=LABELS,
        static=site.static.address,
        has=site.static.has,
        may_control=site.may_control,
        entity_link=terms.entity_link,
        page_link=terms.page_link,
        query=_query,
        values_query=terms.values_query,
        facet_link=filters.facet_link,
        type_link=filters.type_link,
        menu_links=filters.menu_links,
        card_line=card_line,
    )
    environment.filters["ago"] = partial(filters.ago, site.clock)
    return environment


@lru_cache(maxsize=8192)
def _query(path: str, **parameters: str | int) -> str:
    return f"{path}?{urlencode(parameters)}"
