"""`/static/…`: one file out of those read at the start."""

from __future__ import annotations

from starlette.responses import Response

from quadloom.web.server.errors import RequestRefused
from quadloom.web.server.requests import WebRequest


def static_file(ask: WebRequest) -> Response:
    name = ask.path("name")
    file = ask.desk.static.files.get(name)
    if file is None:
        raise RequestRefused(
            404, f"there is no file {name[:100]}", hint="`make web` builds what comes from other projects"
        )
    if ask.request.headers.get("if-none-match") == f'"{file.digest}"':
        return Response(status_code=304)
    keep = "public, max-age=31536000, immutable" if ask.text("v") == file.digest else "no-cache"
    return Response(file.body, media_type=file.media_type, headers={"Cache-Control": keep, "ETag": f'"{file.digest}"'})
