"""Which discoveries may enter the frontier: endless URL spaces are kept out, and every refusal is counted and told.

The scope (what the user wants) is the frontier's own business; this is about what nobody can want. See
`quadloom.ingest.trap_shapes` for the shapes. What was refused is kept in the catalog for `quadloom status` and `sites`.
Only the counts by shape live in memory: after a restart a trap gets its allowance once more, and the host's budget,
which is durable, is the last line.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from quadloom.ingest.hooks import SettleBatch
from quadloom.ingest.trap_shapes import HostShapes, SubdomainBudget, trap
from quadloom.model.link import Discovery
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog

_HOSTS = 10_000  # hosts whose shapes are remembered
_KEPT = 1000  # traps in the catalog


class TrapCount(msgspec.Struct):
    """URLs of a host that were refused for one reason; `example` is the first of them."""

    host: str
    reason: str
    example: str
    count: int = 0


TRAPS = NamedValue("traps", list[TrapCount])


def read_traps(catalog: Catalog) -> list[TrapCount]:
    """What the crawls of a warehouse have refused, the most counted first."""
    return TRAPS.get(catalog) or []


class TrapFilter:
    """A `SettleHook`. `notice` is called once for each new (host, reason); `trapped` has all counts, those of earlier
    crawls too."""

    def __init__(self, catalog: Catalog, notice: Callable[[str], None]) -> None:
        self._catalog = catalog
        self._notice = notice
        self._shapes: OrderedDict[str, HostShapes] = OrderedDict()
        self._subdomains = SubdomainBudget()
        self.trapped: dict[tuple[str, str], TrapCount] = {
            (item.host, item.reason): item for item in read_traps(catalog)
        }
        self._changed = False

    def prepare(self, batch: SettleBatch) -> None:
        batch.links = self.admit(batch.links)
        batch.settlements = [
            replace(settlement, discoveries=self.admit(settlement.discoveries))
            if item.result is not None and settlement.discoveries
            else settlement  # the target of a redirect is no link: it always enters
            for item, settlement in zip(batch.visits, batch.settlements, strict=True)
        ]

    def write(self, now: float) -> None:
        if self._changed:
            TRAPS.put_encoded(self._catalog, self.report())

    def committed(self) -> None:
        self._changed = False

    def admit(self, discoveries: Sequence[Discovery]) -> tuple[Discovery, ...]:
        """Those that may enter. Explicit wishes (priority 0 and 1) always do."""
        return tuple(item for item in discoveries if item.priority <= 1 or self._refusal(item) is None)

    def report(self) -> bytes:
        """The most counted, for the catalog; `read_traps` gives them back."""
        return TRAPS.encode(sorted(self.trapped.values(), key=lambda item: -item.count)[:_KEPT])

    def _refusal(self, item: Discovery) -> str | None:
        reason = trap(item.href) or self._subdomains.admit(item.host) or self._shape(item.host).admit(item.href)
        if reason is not None:
            self._count(item, reason)
        return reason

    def _shape(self, host: str) -> HostShapes:
        shapes = self._shapes.get(host)
        if shapes is None:
            shapes = self._shapes[host] = HostShapes()
            if len(self._shapes) > _HOSTS:
                self._shapes.popitem(last=False)
        return shapes

    def _count(self, item: Discovery, reason: str) -> None:
        key = (item.host, reason)
        known = self.trapped.get(key)
        if known is None:
            if len(self.trapped) >= _HOSTS:
                return
            known = self.trapped[key] = TrapCount(item.host, reason, item.href)
            self._notice(f"{item.host}: {reason}, for instance {item.href}")
        known.count += 1
        self._changed = True
