"""`/mcp` of a site: the tools over streamable HTTP. The library is imported by the first request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from quadloom.web.server.errors import HttpError, error_body
from quadloom.web.server.state import SiteState

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


class AgentsEndpoint:
    """An ASGI application without sessions: each request is answered by itself, so that nothing is kept for clients
    that do not come back. It has to be `running`."""

    def __init__(self, site: SiteState) -> None:
        self._site = site
        self._manager: StreamableHTTPSessionManager | None = None
        self._wanted, self._started, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        serving = asyncio.create_task(self._serve())
        try:
            yield
        finally:
            self._ended.set()
            self._wanted.set()
            await serving

    async def _serve(self) -> None:
        await self._wanted.wait()
        if self._ended.is_set():
            return
        from quadloom.web.mcp.server import create_server

        server = create_server(self._site, may_control=self._may_control if self._site.may_control else None)
        # The site's gate has checked Host and Origin; a second list of names would refuse those of `web.hosts`.
        server.streamable_http_app(json_response=True, stateless_http=True, host=self._site.settings.web.host or "any")
        self._manager = server.session_manager
        async with self._manager.run():
            self._started.set()
            await self._ended.wait()

    def _may_control(self, context: Context) -> None:
        scheme, _, token = ((context.headers or {}).get("authorization") or "").partition(" ")
        if scheme.lower() != "bearer" or not self._site.tokens.accepts(token.strip()):
            raise HttpError(
                401, "a token is required", hint="send `Authorization: Bearer …`; `quadloom serve` printed it"
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if find_spec("mcp") is None:
            body = error_body(501, "this server has no tools for agents", "pip install 'quadloom[mcp]'")
            await JSONResponse(msgspec.to_builtins(body), 501)(scope, receive, send)
            return
        self._wanted.set()
        await self._started.wait()
        assert self._manager is not None
        await self._manager.handle_request(scope, receive, send)
