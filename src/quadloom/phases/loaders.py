"""What a transformation may load from the network: documents that a page refers to, and configured services.

Both go through the guarded client. Documents (JSON-LD contexts, GRDDL stylesheets, vocabularies) are named by pages, so
the same limits apply to them. Services are named by the user, so they may be on private addresses too.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quadloom.errors import FetchError, SyntaxInvalid
from quadloom.fetching.http.documents import DocumentFetcher
from quadloom.settings import Settings
from quadloom.syntaxes.external import ACCEPT as ACCEPT_SERVICE
from quadloom.syntaxes.external import MAX_ANSWER_BYTES, Send, ServiceReply
from quadloom.syntaxes.installed import SYNTAXES
from quadloom.syntaxes.plugins import AssembledSyntaxes, assemble
from quadloom.syntaxes.registry import Loader

_ACCEPT = "application/ld+json, application/json;q=0.9, application/xslt+xml;q=0.8, */*;q=0.1"
_EVERYWHERE = ["0.0.0.0/0", "::/0"]


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


def all_syntaxes(settings: Settings) -> AssembledSyntaxes:
    """Every syntax of this installation: built-in ones, configured services and plug-ins. Called once per process."""
    return assemble(SYNTAXES, settings, service_sender(settings))


def service_sender(settings: Settings) -> Send:
    """A function that sends bodies to configured services. One client for each timeout, opened on first use."""
    clients: dict[float, DocumentFetcher] = {}

    def send(url: str, body: bytes, headers: Sequence[tuple[str, str]], seconds: float) -> ServiceReply:
        client = clients.get(seconds)
        if client is None:
            client = clients[seconds] = DocumentFetcher(_for_services(settings, seconds))
        further = tuple((name, value) for name, value in headers if name != "accept")
        try:
            page = client.fetch_one(
                url, accept=ACCEPT_SERVICE, method="POST", payload=body, headers=further, max_bytes=MAX_ANSWER_BYTES
            )
        except FetchError as error:
            if error.status:
                return ServiceReply(error.status, "", b"")
            raise
        if page.truncated:
            raise FetchError("too-large", f"{url}: the answer has more than {MAX_ANSWER_BYTES} bytes", transient=False)
        return ServiceReply(page.status, page.content_type, page.body)

    return send


def _for_services(settings: Settings, seconds: float) -> Settings:
    return msgspec.structs.replace(
        settings,
        limits=msgspec.structs.replace(settings.limits, total_seconds=seconds, low_speed_seconds=seconds),
        guard=msgspec.structs.replace(settings.guard, allow=_EVERYWHERE, ports=[]),
        politeness=msgspec.structs.replace(settings.politeness, ip_delay=0.0),
    )
