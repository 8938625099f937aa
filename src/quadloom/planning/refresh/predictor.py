"""Suspects in a running crawl: which new URLs belong to σ_X's share, learned from what first reads find.

The crawl's own thread classifies URLs, not the worker that found the links: a prediction depends on counts per suffix,
kind of link and site, and there must be one set of counts. They are saved at the checkpoints of the schedule. A crash
loses the evidence of a few minutes, which later reads replace.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from quadloom.model.link import Discovery
from quadloom.model.lru import LruCache
from quadloom.model.outcome import Outcome, Settlement
from quadloom.model.url import site_of
from quadloom.planning.policy.suspects import DATA_KINDS, FirstRead, SuspectModel, knows_suffix
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog

_COUNTS = NamedValue("schedule:suspects", dict[str, tuple[float, float]])
_SUSPECT, _ORDINARY = 2, 3  # priorities of `Discovery`
_SOURCES = 20_000  # pages whose kind is cached: pages read one after another often share their source


class DataPredictor:
    """Predicts which new URLs lead to structured data. Owned by the crawl's own thread."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.suspects = read_suspects(catalog)
        self._sources: LruCache[int, bool] = LruCache(_SOURCES)  # fingerprint → whether the page is structured data

    def prioritize(self, found: tuple[Discovery, ...], from_data: bool) -> tuple[Discovery, ...]:
        """The same URLs with suspects marked. Requests, seeds and publications keep their priority.

        `from_data`: whether the page that links to them is structured data.
        """
        suspects = self.suspects.classify(found, from_data)
        if True not in suspects:
            return found
        return tuple(
            replace(item, priority=_SUSPECT) if suspect and item.priority == _ORDINARY else item
            for item, suspect in zip(found, suspects, strict=True)
        )

    def learn(self, settlements: Sequence[Settlement]) -> None:
        """Count what first reads found."""
        for settlement in settlements:
            if settlement.page is not None and settlement.outcome is not Outcome.FAILED:
                self._sources.put(settlement.page.fingerprint, settlement.page.kind in DATA_KINDS)
        first = [item for item in settlements if item.outcome is Outcome.NEW and item.page is not None]
        # The kind of the page that linked to a URL matters only if the URL has no known suffix.
        vias = [item.visit for item in first if item.visit.via and item.visit.via not in self._sources]
        unknown = [visit.via for visit in vias if not knows_suffix(visit.href)]
        if unknown:
            pages = self._catalog.pages(unknown)
            for via in unknown:
                self._sources.put(via, via in pages and pages[via].kind in DATA_KINDS)
        self.suspects.learn(
            [
                FirstRead(
                    item.visit.href,
                    site_of(item.visit.host),
                    item.visit.kind,
                    self._sources.get(item.visit.via) or False,
                    item.page.kind,
                )
                for item in first
                if item.page is not None
            ]
        )

    def save(self) -> None:
        _COUNTS.put(self._catalog, self.suspects.dump())


def read_suspects(catalog: Catalog) -> SuspectModel:
    """The model as of the last save."""
    return SuspectModel(_COUNTS.get(catalog))
