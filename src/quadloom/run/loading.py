"""How a worker reads what a document refers to: JSON-LD contexts and transformations, through the guarded client."""

from __future__ import annotations

import msgspec

from quadloom.errors import FetchError, SyntaxInvalid
from quadloom.fetching.transport import HttpTransport
from quadloom.settings import Settings
from quadloom.syntaxes.registry import Loader

ACCEPT = "application/ld+json, application/json;q=0.9, application/xslt+xml;q=0.8, */*;q=0.1"


def document_loader(settings: Settings) -> Loader | None:
    """A loader with its own connections, or None where `transform.contexts` allows only the well-known ones.

    A load must leave the page time to be finished: it may take a third of the transformation's deadline.
    """
    if settings.transform.contexts == "known":
        return None
    seconds = min(settings.limits.total_seconds, settings.limits.transform_seconds / 3)
    limits = msgspec.structs.replace(settings.limits, total_seconds=seconds, connections=2)
    transport: list[HttpTransport] = []  # opened by the first load; most workers never need one

    def load(url: str) -> bytes:
        if not transport:
            transport.append(HttpTransport(msgspec.structs.replace(settings, limits=limits)))
        try:
            page = transport[0].fetch_one(url, accept=ACCEPT, max_bytes=limits.context_bytes)
        except FetchError as error:
            raise SyntaxInvalid(error.message, code="loading remote context failed") from None
        if page.status != 200 or page.truncated:
            raise SyntaxInvalid(f"{url} answered with status {page.status}", code="loading remote context failed")
        return page.body

    return load
