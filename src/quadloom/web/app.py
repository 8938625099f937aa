"""The application: the route table behind the gate, and the one place where exceptions become responses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
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
from quadloom.web.mcp.endpoint import AgentsEndpoint
from quadloom.web.routes import ROUTES, Endpoint
from quadloom.web.server.compression import Compression
from quadloom.web.server.errors import ErrorBody, HttpError, describe_error, error_body
from quadloom.web.server.rendering import Renderer
from quadloom.web.server.requests import WebRequest
from quadloom.web.server.response_cache import DatedResponse, Make, unless_known, with_etag
from quadloom.web.server.security import BODY_BYTES, Gate, HeldBytes, allows_other_sites
from quadloom.web.server.state import SiteState
from quadloom.web.server.warehouse_reader import ViewDate

_log = structlog.get_logger("quadloom.web")
_CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, HEAD, POST, OPTIONS",
    "Access-Control-Allow-Headers": "Accept, Content-Type",
    "Access-Control-Expose-Headers": "X-Truncated, Retry-After, Link",
    "Access-Control-Max-Age": "86400",
}


def create_app(site: SiteState) -> Starlette:
    """The site over one warehouse. The caller closes `site`, or lets the server's lifespan do it."""
    renderer = Renderer(site)
    agents = AgentsEndpoint(site)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with agents.running():
            yield
        with ThreadPoolExecutor(1) as alone:  # nothing that waits in another thread can hold it up
            await asyncio.get_running_loop().run_in_executor(alone, site.close)

    def refuse(request: Request, error: ErrorBody, headers: dict[str, str]) -> ASGIApp:
        return renderer.error(request, error, headers)

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        messages = {404: "there is nothing at this address", 405: f"this address does not take {request.method}"}
        body = error_body(error.status_code, messages.get(error.status_code, error.detail))
        return renderer.error(request, body, dict(error.headers or {}))

    return Starlette(
        routes=[Route("/mcp", agents), *_routes(site, renderer)],
        middleware=[
            Middleware(Compression),
            Middleware(Gate, web=site.settings.web, refuse=refuse, open_paths=_open_posts(site)),
        ],
        exception_handlers={HTTPException: on_http_error},
        lifespan=lifespan,
    )


def _routes(site: SiteState, renderer: Renderer) -> list[Route]:
    """Addresses that share a path (GET page, POST control) share a route, so that 405 names all methods."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ROUTES:
        paths = [endpoint.twin_path, endpoint.path] if endpoint.twin else [endpoint.path]
        for path in paths:
            by_path.setdefault(path, {}).update(dict.fromkeys(endpoint.methods, endpoint))
    # Twins first: `/site/{name}` would swallow `/site/x.json`.
    ordered = sorted(by_path, key=lambda path: not path.endswith(".json"))
    return [
        Route(
            path, _dispatch(by_path[path], site, renderer), methods=[*by_path[path], *_preflight(by_path[path], site)]
        )
        for path in ordered
    ]


def _preflight(methods: dict[str, Endpoint], site: SiteState) -> list[str]:
    is_open = any(endpoint.open for endpoint in methods.values())
    return ["OPTIONS"] if is_open and allows_other_sites(site.settings.web) else []


def _open_posts(site: SiteState) -> frozenset[str]:
    """What may be POSTed from other sites' pages because it only reads: long SPARQL queries."""
    if not allows_other_sites(site.settings.web):
        return frozenset()
    return frozenset(endpoint.path for endpoint in ROUTES if endpoint.open and "POST" in endpoint.methods)


def _dispatch(
    methods: dict[str, Endpoint], site: SiteState, renderer: Renderer
) -> Callable[[Request], asyncio.Future[Response]]:
    cors = allows_other_sites(site.settings.web)

    async def endpoint(request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_CORS)
        found = methods["GET" if request.method == "HEAD" else request.method]
        response = await _respond(found, request, site, renderer)
        if found.open and cors:
            response.headers["Access-Control-Allow-Origin"] = "*"
            response.headers["Access-Control-Expose-Headers"] = _CORS["Access-Control-Expose-Headers"]
        return response

    return endpoint  # type: ignore[return-value]  # a coroutine function; Starlette takes any callable


async def _respond(endpoint: Endpoint, http: Request, site: SiteState, renderer: Renderer) -> Response:
    held = site.bodies.hold()
    try:
        body = await _body(http, held) if http.method not in ("GET", "HEAD") else b""
        if endpoint.token:
            authorise(http, site)

        def handle(warehouse: Warehouse | None) -> Response:
            request = WebRequest(http, site, body, warehouse)
            return renderer.answer(request, endpoint.handler(request))

        if endpoint.cached and http.method == "GET":
            response = await site.cache.get(_cache_key(http, site), _cached_work(endpoint, site, handle))
            return unless_known(response, http.headers.get("if-none-match", ""))
        response = await _run(endpoint, site, handle)
        if endpoint.token:
            site.cache.clear()
        return response
    except QuadloomError as error:
        return renderer.error(http, *describe_error(error))
    except ClientDisconnect:
        return Response(status_code=400)
    except Exception:  # noqa: BLE001  the error boundary: a failed request shows no internals and does not end the server
        _log.exception("request failed", path=http.url.path)
        return renderer.error(http, error_body(500, "the server failed to handle this request"), {})
    finally:
        held.release()


async def _run(endpoint: Endpoint, site: SiteState, handle: Callable[[Warehouse | None], Response]) -> Response:
    match endpoint.runs:
        case "inline":
            return handle(None)
        case "reading":
            return await site.reader.run(handle)
        case "scanning":
            return await site.scanner.run(handle)
        case "querying":
            return await site.querying.run(lambda: handle(None))
        case "fetching":
            return await site.fetching.run(lambda: handle(None))
        case "waiting":
            return await site.waiting.run(lambda: handle(None))


def _cached_work(endpoint: Endpoint, site: SiteState, handle: Callable[[Warehouse | None], Response]) -> Make:
    """For the cache: a response with its date, or the known one again if nothing was committed since."""

    async def make(known: DatedResponse | None) -> DatedResponse:
        if not endpoint.committed:
            response = await _run(endpoint, site, lambda warehouse: with_etag(handle(warehouse)))
            return DatedResponse(response, time.monotonic())

        def work(warehouse: Warehouse, date: ViewDate) -> DatedResponse:
            if known is not None and known.view is not None and known.view.mark == date.mark:
                return known._replace(view=date)
            return DatedResponse(with_etag(handle(warehouse)), time.monotonic(), date)

        return await site.reader.run_dated(work)

    return make


def _cache_key(request: Request, site: SiteState) -> tuple[str, ...]:
    """Everything that the response of a cached address depends on, besides the warehouse."""
    accept = ", ".join(request.headers.getlist("accept"))
    signed_in = "signed in" if request.cookies.get(COOKIE) else ""
    return request.url.path, request.url.query, accept, signed_in, site.crawl.state


async def _body(request: Request, held: HeldBytes) -> bytes:
    """At most BODY_BYTES, counted as they arrive, so leaving out Content-Length does not evade the limit.

    Raises `HttpError` 503 if all requests together hold too much.
    """
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > BODY_BYTES:
            raise HttpError(413, f"the body is longer than {BODY_BYTES} bytes", hint="send less at a time")
        held.grow(len(part))
        parts.append(part)
    return b"".join(parts)
