"""The application: the route table behind the gate, and the one place where errors become answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from quadloom.errors import QuadloomError
from quadloom.warehouse import Warehouse
from quadloom.web.api.control import COOKIE, authorise
from quadloom.web.routes import ROUTES, Endpoint
from quadloom.web.server.errors import Refusal, RequestRefused, plain_refusal, refusal_of
from quadloom.web.server.rendering import Renderer
from quadloom.web.server.requests import WebRequest
from quadloom.web.server.security import BODY_BYTES, Gate
from quadloom.web.server.state import SiteState

_log = structlog.get_logger("quadloom.web")
_CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, HEAD, POST, OPTIONS",
    "Access-Control-Allow-Headers": "Accept, Content-Type",
    "Access-Control-Expose-Headers": "X-Truncated, Retry-After, Link",
    "Access-Control-Max-Age": "86400",
}


def create_app(desk: SiteState) -> Starlette:
    """The site over one warehouse. The caller closes `desk`, or lets the server's lifespan do it."""
    rendering = Renderer(desk)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.get_running_loop().run_in_executor(None, desk.close)

    def refuse(request: Request, refusal: Refusal, headers: dict[str, str]) -> ASGIApp:
        return rendering.refusal(request, refusal, headers)

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        words = {404: "there is nothing at this address", 405: f"{request.method} is not possible here"}
        refusal = plain_refusal(error.status_code, words.get(error.status_code, error.detail))
        return rendering.refusal(request, refusal, dict(error.headers or {}))

    return Starlette(
        routes=_routes(desk, rendering),
        middleware=[Middleware(Gate, web=desk.settings.web, refuse=refuse, open_paths=_open_posts())],
        exception_handlers={HTTPException: on_http_error},
        lifespan=lifespan,
    )


def _routes(desk: SiteState, rendering: Renderer) -> list[Route]:
    """Addresses that share a path (GET page, POST control) share a route, so that 405 names all methods."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ROUTES:
        paths = [endpoint.twin_path, endpoint.path] if endpoint.twin else [endpoint.path]
        for path in paths:
            by_path.setdefault(path, {}).update(dict.fromkeys(endpoint.methods, endpoint))
    # Twins first: `/site/{name}` would swallow `/site/x.json`.
    ordered = sorted(by_path, key=lambda path: not path.endswith(".json"))
    return [
        Route(path, _dispatch(by_path[path], desk, rendering), methods=[*by_path[path], *_preflight(by_path[path])])
        for path in ordered
    ]


def _preflight(methods: dict[str, Endpoint]) -> list[str]:
    return ["OPTIONS"] if any(endpoint.open for endpoint in methods.values()) else []


def _open_posts() -> frozenset[str]:
    """What may be POSTed from other sites' pages because it only reads: long SPARQL queries."""
    return frozenset(endpoint.path for endpoint in ROUTES if endpoint.open and "POST" in endpoint.methods)


def _dispatch(
    methods: dict[str, Endpoint], desk: SiteState, rendering: Renderer
) -> Callable[[Request], asyncio.Future[Response]]:
    async def endpoint(request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_CORS)
        found = methods["GET" if request.method == "HEAD" else request.method]
        response = await _answer(found, request, desk, rendering)
        if found.open:
            response.headers["Access-Control-Allow-Origin"] = "*"
            response.headers["Access-Control-Expose-Headers"] = _CORS["Access-Control-Expose-Headers"]
        return response

    return endpoint  # type: ignore[return-value]  # a coroutine function; Starlette takes any callable


async def _answer(endpoint: Endpoint, request: Request, desk: SiteState, rendering: Renderer) -> Response:
    try:
        body = await _body(request) if request.method not in ("GET", "HEAD") else b""
        if endpoint.token:
            authorise(request, desk)

        def work(warehouse: Warehouse | None) -> Response:
            ask = WebRequest(request, desk, body, warehouse)
            return rendering.answer(ask, endpoint.handler(ask))

        if endpoint.kept and request.method == "GET":
            return await desk.kept.answer(_question(request), lambda: _worked(endpoint, desk, work))
        response = await _worked(endpoint, desk, work)
        if endpoint.token:
            desk.kept.forget()
        return response
    except QuadloomError as error:
        return rendering.refusal(request, *refusal_of(error))
    except ClientDisconnect:
        return Response(status_code=400)
    except Exception:  # noqa: BLE001  the error boundary: one request must not show its insides, nor end the server
        _log.exception("request failed", path=request.url.path)
        return rendering.refusal(request, plain_refusal(500, "this request met a defect of the server"), {})


async def _worked(endpoint: Endpoint, desk: SiteState, work: Callable[[Warehouse | None], Response]) -> Response:
    match endpoint.runs:
        case "here":
            return work(None)
        case "reading":
            return await desk.reader.run(work)
        case "scanning":
            return await desk.scanner.run(work)
        case "asking":
            return await desk.asking.run(lambda: work(None))
        case "visiting":
            return await desk.visiting.run(lambda: work(None))
        case "waiting":
            return await desk.waiting.run(lambda: work(None))


def _question(request: Request) -> tuple[str, ...]:
    """All that the answer of a kept address depends on."""
    accept = ", ".join(request.headers.getlist("accept"))
    return request.url.path, request.url.query, accept, "signed in" if request.cookies.get(COOKIE) else ""


async def _body(request: Request) -> bytes:
    """At most BODY_BYTES, counted as they come: a length that was not announced is no way around the limit."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > BODY_BYTES:
            raise RequestRefused(413, f"the body is longer than {BODY_BYTES} bytes", hint="send less at a time")
        parts.append(part)
    return b"".join(parts)
