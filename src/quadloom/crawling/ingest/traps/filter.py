"""Which discoveries may enter the frontier: endless URL spaces are refused, and every refusal is counted and reported.

The scope (what the user wants) belongs to the frontier; this is about what no user can want. See
`quadloom.crawling.ingest.traps.shapes` for the shapes. Refusals are stored in the catalog for `quadloom status` and
`sites`. Only the counts by shape are in memory: after a restart each trap gets its allowance again, and the host's
budget, which is durable, is the last limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from quadloom.crawling.ingest.traps.shapes import HostShapes, SubdomainBudget, is_plain, trap
from quadloom.model.link import Discovery
from quadloom.model.lru import LruCache
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog

if TYPE_CHECKING:
    from quadloom.stores.protocols.settlement import SettleBatch

_HOSTS = 10_000  # hosts whose shapes are in memory
_STORED = 1000  # traps in the catalog


class TrapCount(msgspec.Struct):
    """URLs of a host that were refused for one reason; `example` is the first of them."""

    host: str
    reason: str
    example: str
    count: int = 0


TRAPS = NamedValue("traps", list[TrapCount])


def read_traps(catalog: Catalog) -> list[TrapCount]:
    """What the crawls of a warehouse have refused, the largest counts first; of all workers together."""
    found: dict[tuple[str, str], TrapCount] = {}
    for item in (item for items in TRAPS.get_all(catalog) for item in items):
        known = found.get((item.host, item.reason))
        found[item.host, item.reason] = replace(item, count=item.count + (known.count if known is not None else 0))
    return sorted(found.values(), key=lambda item: -item.count)


class TrapFilter:
    """A `SettleHook`. `notice` is called once for each new (host, reason); `trapped` has all counts, including those of
    earlier crawls."""

    def __init__(self, catalog: Catalog, notice: Callable[[str], None]) -> None:
        self._catalog = catalog
        self._notice = notice
        self._shapes: LruCache[str, HostShapes] = LruCache(_HOSTS)
        self._subdomains = SubdomainBudget()
        self.trapped: dict[tuple[str, str], TrapCount] = {
            (item.host, item.reason): item for item in TRAPS.get(catalog) or ()
        }
        self._changed = False

    def prepare(self, batch: SettleBatch) -> None:
        batch.links = self.admit(batch.links)
        batch.settlements = [
            replace(settlement, discoveries=self.admit(settlement.discoveries))
            if item.result is not None and settlement.discoveries
            else settlement  # the target of a redirect is not a link: it always enters
            for item, settlement in zip(batch.visits, batch.settlements, strict=True)
        ]

    def write(self, now: float) -> None:
        if self._changed:
            TRAPS.put_encoded(self._catalog, self.encoded_counts())

    def committed(self) -> None:
        self._changed = False

    def admit(self, discoveries: Sequence[Discovery]) -> tuple[Discovery, ...]:
        """The discoveries that may enter. Requests, seeds and publications (priority 0 and 1) always do."""
        return tuple(item for item in discoveries if item.priority <= 1 or self._refusal(item) is None)

    def encoded_counts(self) -> bytes:
        """The largest counts, encoded for the catalog; `read_traps` reads them."""
        return TRAPS.encode(sorted(self.trapped.values(), key=lambda item: -item.count)[:_STORED])

    def _refusal(self, item: Discovery) -> str | None:
        if is_plain(item.href):
            reason = self._subdomains.admit(item.host)
        else:
            reason = trap(item.href) or self._subdomains.admit(item.host) or self._shape(item.host).admit(item.href)
        if reason is not None:
            self._count(item, reason)
        return reason

    def _shape(self, host: str) -> HostShapes:
        shapes = self._shapes.get(host)
        if shapes is None:
            shapes = HostShapes()
            self._shapes.put(host, shapes)
        return shapes

    def _count(self, item: Discovery, reason: str) -> None:
        key = (item.host, reason)
        count = self.trapped.get(key)
        if count is None:
            if len(self.trapped) >= _HOSTS:
                return
            count = self.trapped[key] = TrapCount(item.host, reason, item.href)
            self._notice(f"{item.host}: {reason}, for example {item.href}")
        count.count += 1
        self._changed = True
