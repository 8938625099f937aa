"""The public keys of this crawler, with which servers verify signed requests (Web Bot Auth)."""

from __future__ import annotations

from starlette.responses import Response

from quadloom.fetching.http.signatures import DIRECTORY_TYPE, authority_of, key_directory, signing_keys
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import WebRequest


def directory(request: WebRequest) -> Response:
    """All keys that are valid, each with its signature of this answer: whoever publishes them also has them."""
    settings, now = request.site.settings, request.site.clock()
    keys = signing_keys(settings, now) if settings.crawl.sign_keys else []
    if not keys:
        raise HttpError(404, "this crawler does not sign its requests", hint="/about describes it")
    authority = authority_of(settings.web.public_url) or request.http.headers.get("host", "")
    body, headers = key_directory(keys, authority, now)
    return Response(body, media_type=DIRECTORY_TYPE, headers=headers)
