"""What a transformation may load from the network: documents that a page refers to, through the guarded client.

They are JSON-LD contexts, GRDDL stylesheets and vocabularies. Pages name them, so the limits of pages apply to them.
"""

from __future__ import annotations

from difflib import get_close_matches

import msgspec

from quadloom.errors import FetchError, SettingsError, SyntaxInvalid
from quadloom.fetching.http.documents import DocumentFetcher
from quadloom.settings import Settings
from quadloom.syntaxes.installed import SYNTAXES
from quadloom.syntaxes.plugins import AssembledSyntaxes, assemble
from quadloom.syntaxes.registry import Loader

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


def all_syntaxes(settings: Settings) -> AssembledSyntaxes:
    """Every syntax of this installation: built-in ones, configured services and plug-ins. Called once per process."""
    return assemble(SYNTAXES, settings)


def check_syntaxes(settings: Settings) -> None:
    """Raises `SettingsError` for a name in `transform.syntaxes` that no syntax of this installation has: at the start
    of a command, since a page cannot show that a syntax was not read."""
    chosen = settings.transform.syntaxes
    if not set(chosen).difference(SYNTAXES.names):
        return  # without a look at plug-ins, which are imported then
    assembled = all_syntaxes(settings)
    broken = {one.syntax for one in assembled.findings}  # reported in its own words, by the workers
    known = assembled.registry.names
    for name in chosen:
        if name not in known and name not in broken:
            near = get_close_matches(name.lower(), known, n=1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise SettingsError(
                f"transform.syntaxes: there is no syntax {name!r}",
                hint=f"{meant}It takes {', '.join(known)}; empty = all",
            )
