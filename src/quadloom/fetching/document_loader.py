"""What a transformation may load from the network: documents that a page refers to, through the guarded client.

They are JSON-LD contexts, GRDDL stylesheets and vocabularies. Pages name them, so the limits of pages apply to them.
"""

from __future__ import annotations

import msgspec

from quadloom.documents.syntaxes.registry import Loader
from quadloom.errors import FetchError, SyntaxInvalid
from quadloom.fetching.http.documents import DocumentFetcher
from quadloom.settings import Settings

_ACCEPT = "application/ld+json, application/json;q=0.9, application/xslt+xml;q=0.8, */*;q=0.1"


def document_loader(settings: Settings) -> Loader | None:
    """A function that loads documents by URL, or None if no setting allows any. It connects with the first load.

    One load may take a third of the transformation's time, so that the page can still be finished.
    """
    wanted = settings.transform
    if wanted.contexts == "known" and wanted.grddl != "allow" and not wanted.vocabulary_expansion:
        return None
    seconds = min(settings.limits.total_seconds, settings.limits.transform_seconds / 3)
    limits = msgspec.structs.replace(settings.limits, total_seconds=seconds, connections=2)
    opened: list[DocumentFetcher] = []

    def load(url: str) -> bytes:
        if not opened:
            opened.append(DocumentFetcher(msgspec.structs.replace(settings, limits=limits)))
        try:
            page = opened[0].fetch_one(url, accept=_ACCEPT, max_bytes=limits.context_bytes)
        except FetchError as error:
            raise SyntaxInvalid(error.message, code="loading-failed") from None
        if page.status != 200 or page.truncated:
            raise SyntaxInvalid(f"{url} answered with status {page.status}", code="loading-failed")
        return page.body

    return load
