"""Recognises a page that a server sent again, byte for byte. It is settled like a 304: not transformed, not archived.

What a page says depends on its body, its final URL, some of its headers, the settings of transform, the scope, and the
version of Quadloom. Their common digest is in the page's row. If a visit gives the same one, transforming the page
would give what the indexes have. Then a page without validators costs its transfer and its part of one transaction;
transforming it would be half of the cost of a new page.

Services and stylesheets may answer differently without a trace in the settings, so pages are always transformed with
them.
"""

from __future__ import annotations

from xxhash import xxh3_128, xxh3_128_digest

from quadloom.model.outcome import READ_OUTCOMES, PageRow
from quadloom.model.page import Page
from quadloom.model.phase import ALL_PHASES, Owed
from quadloom.model.version import __version__
from quadloom.model.visit import Visit
from quadloom.model.wire import encode
from quadloom.settings import Settings
from quadloom.stores.named_values import NamedValue
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import Catalog

JUDGED_SCOPE = NamedValue("scope-judged-by", bytes)  # the scope that was last applied to everything queued

# Headers that say nothing about the content and may differ from one response to the next. All others count.
_OF_THE_TRANSFER = frozenset(
    (
        *("accept-ranges", "age", "alt-svc", "cache-control", "cf-cache-status", "cf-ray", "connection"),
        *("content-encoding", "content-length", "date", "etag", "expires", "keep-alive", "last-modified", "nel"),
        *("report-to", "server", "server-timing", "set-cookie", "strict-transport-security", "transfer-encoding"),
        *("vary", "via", "x-cache", "x-cache-hits", "x-request-id", "x-runtime", "x-served-by", "x-timer"),
    )
)


class PageSources:
    """One thread. `settings_changed` and `scope_changed` must be called when they have."""

    def __init__(self, stores: Stores, settings: Settings) -> None:
        self._catalog: Catalog = stores.catalog
        self._settings = settings
        self._is_whole = stores.phases == ALL_PHASES
        self._mark = self._marked()

    def settings_changed(self, settings: Settings) -> None:
        self._settings = settings
        self._mark = self._marked()

    def scope_changed(self) -> None:
        """Links that were refused before may count now, and an unchanged page offers none."""
        self._mark = self._marked()

    def digest(self, page: Page) -> bytes:
        """Of all that the result of transforming this page depends on; b"" if it cannot be known."""
        if not self._mark or page.truncated:
            return b""
        digest = xxh3_128(self._mark)
        lines = [f"{name}:{value}" for name, value in page.headers if name not in _OF_THE_TRANSFER]
        digest.update("\n".join((str(page.status), page.final_url, *lines)).encode("utf-8", "replace"))
        digest.update(b"\0")
        digest.update(page.body)
        return digest.digest()

    def is_same(self, visit: Visit, page: Page) -> bool:
        """Whether a page that was read before is what its row describes, and the indexes have it."""
        row = self._catalog.page(visit.fingerprint) if self._mark else None
        return row is not None and _is_complete(row) and row.source_digest == self.digest(page)

    def _marked(self) -> bytes:
        settings = self._settings
        if not self._is_whole or settings.service or settings.transform.stylesheets:
            return b""
        parts = (
            __version__,
            settings.transform,
            settings.index,
            settings.limits,
            settings.audit,
            settings.site,
            settings.crawl.strategies,
            settings.subscriptions.websub,
            settings.freshness.vocabulary_links,
            JUDGED_SCOPE.get(self._catalog) or b"",
        )
        return xxh3_128_digest(encode(parts))


def _is_complete(row: PageRow) -> bool:
    """Read, transformed and indexed, with nothing left to do. An error may have a cause outside of the page, such as a
    JSON-LD context that could not be loaded, so it is tried again."""
    return (
        bool(row.source_digest)
        and row.outcome in READ_OUTCOMES
        and row.owed is Owed.NOTHING
        and row.fetched is None
        and all(finding.severity != "error" for finding in row.findings)
        and (row.indexed_quads, row.indexed_text) == (row.quads_digest, row.text_digest)
    )
