"""Suspects in the running crawl: which new URLs σ_X's share is for, learned from what first reads bring.

The owner judges, not the worker that found the links: a verdict rests on the record of suffixes, kinds of link and
sites, and there must be one record. Counts are saved with the schedule's checkpoints; a crash costs the evidence of
some minutes, which the next reads bring again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from msgspec.structs import replace

from quadloom.model.link import Discovery
from quadloom.model.outcome import Outcome, Settlement
from quadloom.model.url import site_of
from quadloom.model.visit import Visit
from quadloom.scheduling.suspects import DATA_KINDS, SuspectModel, knows_suffix
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog

_COUNTS = NamedValue("schedule:suspects", dict[str, tuple[float, float]])
_SUSPECT, _ORDINARY = 2, 3  # priorities of `Discovery`
_SOURCES = 20_000  # pages whose kind is remembered: neighbours in a crawl share their source


class DataPredictor:
    """Which new URLs probably lead to structured data. Owned by the crawl's own thread."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.suspects = read_suspects(catalog)
        self._sources: OrderedDict[int, bool] = OrderedDict()  # fingerprint → whether it is data

    def assessed(self, found: tuple[Discovery, ...], from_data: bool) -> tuple[Discovery, ...]:
        """The same URLs, suspects among them marked. Requests, seeds and publications keep their rank."""
        suspects = self.suspects.classify(found, from_data)
        if True not in suspects:
            return found
        return tuple(
            replace(item, priority=_SUSPECT) if suspect and item.priority == _ORDINARY else item
            for item, suspect in zip(found, suspects, strict=True)
        )

    def learn(self, settlements: Sequence[Settlement]) -> None:
        """What first reads brought."""
        for settlement in settlements:
            if settlement.page is not None and settlement.outcome is not Outcome.FAILED:
                self._remember(settlement.page.fingerprint, settlement.page.kind in DATA_KINDS)
        first = [item for item in settlements if item.outcome is Outcome.NEW and item.page is not None]
        asked = [item.visit.via for item in first if self._asks(item.visit)]
        if asked:
            found = self._catalog.pages(asked)
            for via in asked:
                self._remember(via, via in found and found[via].kind in DATA_KINDS)
        for item in first:
            if item.page is not None:
                visit, from_data = item.visit, self._sources.get(item.visit.via, False)
                self.suspects.learn(visit.href, site_of(visit.host), visit.kind, from_data, item.page.kind)

    def save(self) -> None:
        _COUNTS.put(self._catalog, self.suspects.dump())

    def _asks(self, visit: Visit) -> bool:
        """Whether the page's source has to be looked up: only an unknown suffix depends on it."""
        return visit.via != 0 and visit.via not in self._sources and not knows_suffix(visit.href)

    def _remember(self, fingerprint: int, is_data: bool) -> None:
        self._sources[fingerprint] = is_data
        if len(self._sources) > _SOURCES:
            self._sources.popitem(last=False)


def read_suspects(catalog: Catalog) -> SuspectModel:
    """What was learned so far, as of the last save."""
    return SuspectModel(_COUNTS.get(catalog))
