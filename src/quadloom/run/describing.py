"""Where pages were found: fingerprints back to URLs, for descriptions of pages."""

from __future__ import annotations

from collections import OrderedDict

from quadloom.stores.protocols import Catalog

WOVEN_AGAIN = "woven-again-at"  # catalog value: time of the last replay or rebuild
_KEPT = 20_000
_HOPS = 10


class Sources:
    """URLs of source pages. Neighbours in a crawl share their source, so a small memory answers nearly always."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: OrderedDict[int, str] = OrderedDict()

    def learn(self, fingerprint: int, href: str) -> None:
        """A source that the catalog may not have yet: dumps list pages in any order."""
        self._known[fingerprint] = href

    def href(self, fingerprint: int) -> str:
        """The page with the link, also where a redirect lay between. Empty for a seed, and for an unknown source."""
        if not fingerprint:
            return ""
        known = self._known.get(fingerprint)
        if known is None:
            row = self._catalog.page(fingerprint)
            for _ in range(_HOPS):
                if row is None or row.kind != "redirect":
                    break
                row = self._catalog.page(row.via) if row.via else None
            known = row.href if row is not None else ""
            self._known[fingerprint] = known
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return known
