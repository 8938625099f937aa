"""Where pages were found: fingerprints back to URLs, for descriptions of pages."""

from __future__ import annotations

from collections import OrderedDict

from quadloom.stores.protocols import Catalog

_KEPT = 20_000


class Sources:
    """URLs of source pages. Neighbours in a crawl share their source, so a small memory answers nearly always."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: OrderedDict[int, str] = OrderedDict()

    def href(self, fingerprint: int) -> str:
        """Empty for a seed, and for a source the catalog does not know."""
        if not fingerprint:
            return ""
        known = self._known.get(fingerprint)
        if known is None:
            row = self._catalog.page(fingerprint)
            known = row.href if row is not None else ""
            self._known[fingerprint] = known
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return known
