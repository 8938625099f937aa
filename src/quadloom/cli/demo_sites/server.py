"""Serve the demo's stored sites on loopback, as ordinary web servers would.

The data file holds every response of the six sites: robots.txt, sitemaps, feeds, pages, RDF and the redirects of the
registry of names. The server adds what depends on the request: the port in URLs, gzip, HEAD, 304 for a reader that has
the current version, and the choice between a page and its data by the Accept header.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Mapping
from email.message import Message
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

import msgspec

SITES = Path(__file__).with_name("sites.json.gz")
_GZIP_FROM = 200  # bytes; shorter bodies are sent as they are
_PACKED = ("image/",)  # gzip would only make these longer


class StoredResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """One response. The body is `text`, or `data` if it is no UTF-8 text. URLs in it have no port."""

    status: int
    headers: dict[str, str]
    text: str = ""
    data: bytes = b""
    alternates: dict[str, str] = {}  # for a 303: media type of the data → Location, preferred over HTML on request


class StoredSites(msgspec.Struct, frozen=True):
    """All sites: host name → request target → response, and the page for targets that do not exist."""

    sites: dict[str, dict[str, StoredResponse]]
    missing: StoredResponse


def load_sites(path: Path = SITES) -> StoredSites:
    return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=StoredSites)


class DemoServer:
    """The stored sites, served by threads of this process until the `with` block ends."""

    def __init__(self, sites: StoredSites | None = None, *, port: int = 0) -> None:
        """`port` 0 = a free one. Raises `OSError` if another program has the port."""
        self._stored = sites or load_sites()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False  # idle keep-alive connections must not delay the end
        self.port: int = self._server.server_address[1]

    @property
    def homes(self) -> list[str]:
        """The home page of each site."""
        return [f"http://{name}:{self.port}/" for name in self._stored.sites]

    def hosts_override(self) -> dict[str, str]:
        """For the setting `guard.hosts`: how the reserved names are reached."""
        return {"*.example": "127.0.0.1"}

    def __enter__(self) -> DemoServer:
        threading.Thread(target=self._server.serve_forever, name="demo-server", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def respond(self, target: str, headers: Message, *, head_only: bool = False) -> bytes:
        """The whole response to a GET or HEAD, as it goes over the wire."""
        name = headers.get("Host", "").partition(":")[0]
        site = self._stored.sites.get(name, {})
        stored = site.get(target) or site.get(target.partition("?")[0]) or self._stored.missing
        fields = {key: self._with_port(value) for key, value in stored.headers.items()}
        if stored.alternates and (media := preferred(headers.get("Accept", ""), stored.alternates)):
            fields["Location"] = self._with_port(stored.alternates[media])
        if stored.status == HTTPStatus.OK and _has_current_version(headers, fields):
            validators = {key: value for key, value in fields.items() if key in ("ETag", "Last-Modified")}
            return _wire(HTTPStatus.NOT_MODIFIED, validators, b"")
        body = stored.data or self._with_port(stored.text).encode()
        if (
            "gzip" in headers.get("Accept-Encoding", "")
            and len(body) > _GZIP_FROM
            and not fields.get("Content-Type", "").startswith(_PACKED)
        ):
            body = gzip.compress(body, 1, mtime=0)
            fields |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        fields["Content-Length"] = str(len(body))
        return _wire(stored.status, fields, b"" if head_only else body)

    def _with_port(self, text: str) -> str:
        for name in self._stored.sites:
            text = text.replace(f"http://{name}", f"http://{name}:{self.port}")
        return text

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        respond = self.respond

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.wfile.write(respond(self.path, self.headers))

            def do_HEAD(self) -> None:
                self.wfile.write(respond(self.path, self.headers, head_only=True))

            def log_message(self, format: str, *args: object) -> None:
                """The demo prints its own progress."""

        return Handler


def preferred(accept: str, offered: Mapping[str, str]) -> str:
    """The offered media type that the Accept header ranks above HTML, or the empty string for the HTML page."""
    best, choice = 0.0, ""
    for part in accept.split(","):
        media, *parameters = [piece.strip() for piece in part.split(";")]
        quality = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                quality = float(value) if value.replace(".", "", 1).isdecimal() else 0.0
        wins = quality > best or (quality == best and not choice)
        if media in offered and quality > best:
            best, choice = quality, media
        elif media in ("text/html", "application/xhtml+xml") and wins and quality > 0:
            best, choice = quality, ""
    return choice


def _has_current_version(headers: Message, fields: Mapping[str, str]) -> bool:
    """RFC 9110, 13.2.2: If-None-Match takes precedence over If-Modified-Since."""
    if (given := headers.get("If-None-Match")) is not None:
        tags = [tag.strip().removeprefix("W/") for tag in given.split(",")]
        return "ETag" in fields and (fields["ETag"] in tags or "*" in tags)
    if (since := headers.get("If-Modified-Since")) is None or "Last-Modified" not in fields:
        return False
    try:
        return parsedate_to_datetime(since) >= parsedate_to_datetime(fields["Last-Modified"])
    except (TypeError, ValueError):
        return False  # RFC 9110, 13.1.3: an invalid date is ignored


def _wire(status: int, fields: Mapping[str, str], body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
