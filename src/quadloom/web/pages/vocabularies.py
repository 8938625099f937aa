"""`/vocabularies`: which classes and properties are used, and how often."""

from __future__ import annotations

from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.view.usage import usage


def vocabularies_page(ask: WebRequest) -> ViewResponse:
    return ViewResponse("vocabularies.html", {"vocabularies": usage(ask.desk).vocabularies()})
