"""`/static/…`: styles and scripts, read once at the start. Each has its digest in its address, so browsers may cache it
for ever.

`vendor/` is built by `web-assets/build.mjs`; without it every page still works, as plain HTML.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from quadloom.web.server.errors import HttpError

if TYPE_CHECKING:
    from quadloom.web.server.requests import WebRequest

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


class StaticFile(msgspec.Struct, frozen=True):
    body: bytes
    media_type: str
    digest: str


class StaticFiles:
    """Only files that were there at the start are served: no path of a request ever reaches the disk."""

    def __init__(self, files: dict[str, StaticFile], names: dict[str, str]) -> None:
        self.files = files
        self._names = names  # `htmx.js` → `vendor/htmx-1a2b3c4d.js`

    @classmethod
    def load(cls, folder: Path) -> StaticFiles:
        files = {}
        for path in sorted(folder.rglob("*")):
            if path.suffix in _TYPES and path.is_file():
                body = path.read_bytes()
                files[path.relative_to(folder).as_posix()] = StaticFile(body, _TYPES[path.suffix], _digest(body))
        manifest = folder / "vendor" / "manifest.json"
        names = msgspec.json.decode(manifest.read_bytes(), type=dict[str, str]) if manifest.is_file() else {}
        return cls(files, {name: f"vendor/{place}" for name, place in names.items() if f"vendor/{place}" in files})

    def has(self, name: str) -> bool:
        return name in self._names or name in self.files

    def address(self, name: str) -> str:
        place = self._names.get(name, name)
        return f"/static/{place}?v={self.files[place].digest}"


def static_file(request: WebRequest) -> Response:
    name = request.path("name")
    file = request.site.static.files.get(name)
    if file is None:
        raise HttpError(
            404, f"there is no file {name[:100]}", hint="`make web` builds the files that come from other projects"
        )
    if request.http.headers.get("if-none-match") == f'"{file.digest}"':
        return Response(status_code=304)
    cache = "public, max-age=31536000, immutable" if request.text("v") == file.digest else "no-cache"
    return Response(file.body, media_type=file.media_type, headers={"Cache-Control": cache, "ETag": f'"{file.digest}"'})


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:12]
