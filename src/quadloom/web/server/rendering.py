"""Views to bytes: Jinja templates with escaping on, JSON twins, refusals in their one shape."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from quadloom import __version__
from quadloom.asking.sparql.prefixes import shorten
from quadloom.web.server.errors import Refusal
from quadloom.web.server.negotiation import prefers_html
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.server.state import SiteState
from quadloom.web.server.static_files import StaticFiles
from quadloom.web.view import terms

_FOLDER = Path(__file__).parents[1]
MENU = (
    ("/search", "Search"), ("/sparql", "SPARQL"), ("/inspect", "Inspect"), ("/monitor", "Monitor"),
    ("/sites", "Sites"), ("/vocabularies", "Vocabularies"), ("/about", "About"),
)  # fmt: skip


class Renderer:
    def __init__(self, desk: SiteState) -> None:
        self._desk = desk
        self._templates = _environment(desk, desk.static)

    def answer(self, ask: WebRequest, answer: ViewResponse | Response) -> Response:
        if isinstance(answer, Response):
            return answer
        if ask.wants_json:
            return json_response(answer.data, status=answer.status, headers=answer.headers)
        return self._page(ask.request, answer)

    def refusal(self, request: Request, refusal: Refusal, headers: dict[str, str]) -> Response:
        path = request.url.path
        if prefers_html(request.headers.get("accept", "")) and not path.endswith((".json", ".svg")):
            view = ViewResponse("error.html", {"refusal": refusal}, status=refusal.status, headers=headers)
            return self._page(request, view)
        return Response(refusal.encode(), refusal.status, media_type="application/json", headers=headers)

    def _page(self, request: Request, view: ViewResponse) -> Response:
        names = view.data if isinstance(view.data, dict) else {"view": view.data}
        path = request.url.path
        html = self._templates.get_template(view.template).render(
            path=path,
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
    tree = msgspec.to_builtins(data, enc_hook=_plain, builtin_types=(bytes,))
    body = msgspec.json.encode({"ok": True, **tree}, enc_hook=_plain)
    return Response(body, status, media_type="application/json", headers=headers)


def _twin(request: Request) -> str:
    path = "/index" if request.url.path == "/" else request.url.path
    return f"{path}.json" + (f"?{request.url.query}" if request.url.query else "")


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else str(value)


def _environment(desk: SiteState, static: StaticFiles) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        menu=MENU, version=__version__, static=static.address, has=static.has, may_control=desk.may_control,
        entity_link=terms.entity_link, page_link=terms.page_link, query=_query,
        values_query=terms.values_query,
    )  # fmt: skip
    environment.filters.update(
        short=shorten, datatype=terms.shown_datatype, dir=terms.direction, is_web=terms.is_web,
        when=_when, instant=_instant, moment=_moment,
        ago=partial(_ago, desk), number=_number, counted=counted, size=_size, percent=_percent, snippet=_snippet,
        seconds=_seconds,
    )  # fmt: skip
    return environment


@lru_cache(maxsize=8192)
def _query(path: str, **parameters: str | int) -> str:
    return f"{path}?{urlencode(parameters)}"


def _when(at: float) -> Markup:
    if not at:
        return Markup("–")
    moment = datetime.fromtimestamp(at, UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        moment.isoformat(timespec="seconds"), moment.strftime("%Y-%m-%d %H:%M\u00a0UTC")
    )


def _instant(at: float) -> Markup:
    """To the second, for what happens now."""
    iso = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    return Markup('<time datetime="{}">{}</time>').format(iso, f"{iso[:10]} {iso[11:19]}\u00a0UTC")


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _ago(desk: SiteState, at: float) -> Markup:
    """The age in words; the moment itself, with its zone, is in the element and shown on pointing at it."""
    if not at:
        return Markup("–")
    iso = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    words = _age(desk.clock() - at)
    return Markup(f'<time datetime="{iso}" title="{iso[:10]} {iso[11:19]} UTC">{words}</time>')


def _age(age: float) -> str:
    if age <= -60.0:  # less is two clocks that differ
        return "in the future"
    for unit, length in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0)):
        if age >= length:
            return counted(int(age // length), unit) + " ago"
    return "just now"


def _number(value: float | int) -> str:
    """Groups of three by a narrow no-break space, as ISO 80000 writes them."""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.1f}".replace(",", "\u202f")
    return f"{int(value):,}".replace(",", "\u202f")


def counted(value: int, noun: str, ending: str = "s") -> str:
    """`1 page`, `2 pages`."""
    return f"{_number(value)} {noun}{'' if value == 1 else ending}"


def _size(value: int) -> str:
    number = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 10 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def _percent(value: float) -> str:
    return f"{100 * value:.0f}\u00a0%" if value >= 0.1 or value == 0 else f"{100 * value:.1f}\u00a0%"


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def _snippet(text: str) -> Markup:
    """Escaped first; only then do the index's two marks become elements."""
    return Markup(str(escape(text)).replace("\x02", "<mark>").replace("\x03", "</mark>"))
