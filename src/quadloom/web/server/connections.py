"""The HTTP server's connections: how many there may be, how long a client may take to send, and how slowly to read.

uvicorn can limit all connections together (`limit_concurrency`), but then answers 503 to everybody, even if nothing was
ever sent on those that are open; and it has no time limit for the head or the body of a request, nor for a client that
does not read its response. So a thousand silent connections shut everybody out. Here its protocol is extended:

* Waiting connections, on which no request is complete, are expendable: if there are too many, the one that has waited
  longest is closed. A client that sends its request at once is served, however many silent connections there are.
* Heads, bodies and reading have time limits. A timer checks all connections, so a request costs nothing more.
* If too many requests are in progress, others get 503, but a few connections are left for health checks.
* A client has a limit of its own. Loopback is exempt: a reverse proxy there speaks for many.
"""

from __future__ import annotations

import asyncio
from typing import Literal

import h11
import structlog
import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from quadloom.errors import QuadloomError
from quadloom.settings import WebSettings
from quadloom.web.server.errors import ErrorBody, error_body
from quadloom.web.server.security import HEADERS, is_loopback

_log = structlog.get_logger("quadloom.web")
BACKLOG = 2048  # connections that wait to be accepted; the system's own limit may be lower
_HEALTH = "/health/"
_SPARE_CONNECTIONS = 50  # connections for health checks and refusals while all others are busy; at most a tenth of all
_CHECK_SECONDS = 1.0
_MIN_READ = 16 * 1024  # bytes that a client has to take within `web.send_seconds`

Phase = Literal["head", "body", "response"]


class ServerConfig(uvicorn.Config):
    """uvicorn with the limits of `web`. `connections`: fewer than `web.connections` if the system has fewer files."""

    def __init__(self, app: ASGIApp, web: WebSettings, *, connections: int = 0, verbose: bool = False) -> None:
        self.limits = ConnectionLimits(web, connections or web.connections)
        super().__init__(
            app,
            log_level="info" if verbose else "warning",
            access_log=verbose,
            timeout_graceful_shutdown=3,
            server_header=False,
            backlog=BACKLOG,
            # Not httptools, even if it is installed: it saves 0.1 ms per request, but reads heads without a limit.
            http=LimitedProtocol,
            h11_max_incomplete_event_size=256 * 1024,
            # There are none, and an upgraded connection would have no limits.
            ws="none",
        )


class LimitedProtocol(H11Protocol):
    """One connection. Everything is called on the event loop."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        assert isinstance(config, ServerConfig)
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self._handler: ASGIApp = config.loaded_app
        self.app = self._serve
        self.refused = False  # this client has too many connections
        self._checked_phase: tuple[Phase, object] = ("head", None)
        self._phase_since = 0.0
        self._send_since = 0.0
        self._send_size = 0

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def phase(self) -> Phase:
        """What the connection waits for: a request's head, its body, or the end of the response."""
        if self.conn.their_state is h11.SEND_BODY:
            return "body"
        is_idle = self.cycle is None or self.cycle.response_complete
        return "head" if is_idle and self.conn.their_state is h11.IDLE else "response"

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._phase_since = self._send_since = self.loop.time()
        self._limits.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._limits.update(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._limits.update(self)

    def resume_writing(self) -> None:
        self._send_since, self._send_size = self.loop.time(), 0
        super().resume_writing()

    def is_too_slow(self, now: float, web: WebSettings) -> bool:
        """Called about once a second."""
        phase = (self.phase, self.cycle)
        if phase[0] != self._checked_phase[0] or phase[1] is not self._checked_phase[1]:
            self._checked_phase, self._phase_since = phase, now
        most = {"head": web.head_seconds, "body": web.body_seconds}.get(phase[0])
        if most is not None and now - self._phase_since > most:
            return True
        size = self.transport.get_write_buffer_size()
        if size == 0 or size <= self._send_size - _MIN_READ:
            self._send_since, self._send_size = now, size
        self._send_size = max(self._send_size, size)
        return size > 0 and now - self._send_since > web.send_seconds

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._handler
        if self.refused:
            app = _refusal(error_body(429, "too many connections from this address", "close some, or use them again"))
        elif self._limits.is_full and not scope["path"].startswith(_HEALTH):
            app = _refusal(error_body(503, "the server has too many requests right now", "try again in 5 s"))
        try:
            await app(scope, receive, send)
        except QuadloomError as error:
            # A limit of a query, for instance, in the middle of its answer. The client sees that the end is missing;
            # the log gets a line, not sixty of a traceback that any visitor could cause.
            _log.warning("a response was cut", path=scope["path"], reason=str(error))
            self.cycle.disconnected = True
            self.transport.close()


class ConnectionLimits:
    """All connections of a server. `most`: how many there may be, those for health checks included."""

    def __init__(self, web: WebSettings, most: int) -> None:
        self._web = web
        self._most = most
        self._most_busy = most - min(_SPARE_CONNECTIONS, most // 10)
        self._by_client: dict[str, dict[LimitedProtocol, None]] = {}
        self._waiting: dict[LimitedProtocol, None] = {}  # for the rest of a request; the longest waiting first
        self._total = 0
        self._check_every = min(_CHECK_SECONDS, web.head_seconds / 2, web.body_seconds / 2, web.send_seconds / 2)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_full(self) -> bool:
        """Whether more complete requests are in progress than there may be, the one that asks included."""
        return self._total - len(self._waiting) > self._most_busy

    def add(self, connection: LimitedProtocol) -> None:
        own = self._by_client.setdefault(connection.address, {})
        own[connection] = None
        self._total += 1
        if 0 < self._web.client_connections < len(own) and not _is_local(connection.address):
            idle = next((other for other in own if other in self._waiting), None)
            if idle is not None:
                self._drop(idle)
            else:
                connection.refused = True
        if self._total > self._most:
            self._drop(next(iter(self._waiting), connection))
        if connection in own:
            self._waiting[connection] = None
        if self._timer is None:
            self._timer = connection.loop.call_later(self._check_every, self._check, connection.loop)

    def update(self, connection: LimitedProtocol) -> None:
        """The connection has received a part of a request, or ended a response."""
        if connection.phase == "response":
            self._waiting.pop(connection, None)
        elif connection in self._by_client.get(connection.address, ()):
            self._waiting.setdefault(connection)

    def remove(self, connection: LimitedProtocol) -> None:
        own = self._by_client.get(connection.address, {})
        if connection in own:
            del own[connection]
            self._total -= 1
            if not own:
                del self._by_client[connection.address]
        self._waiting.pop(connection, None)

    def _drop(self, connection: LimitedProtocol) -> None:
        self.remove(connection)
        connection.transport.abort()

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        connections = [connection for own in self._by_client.values() for connection in own]
        for connection in connections:
            if connection.is_too_slow(now, self._web):
                self._drop(connection)
        self._timer = loop.call_later(self._check_every, self._check, loop) if self._total else None


def _is_local(address: str) -> bool:
    return not address or is_loopback(address)


def _refusal(error: ErrorBody) -> ASGIApp:
    headers = {**HEADERS, "Retry-After": "5", "Connection": "close"}
    return Response(error.encode(), error.status, media_type="application/json", headers=headers)
