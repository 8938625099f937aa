"""What takes part in a settlement besides the page itself: trap filter, schedule, notices, hubs.

A hook sees every batch three times: `prepare` before anything is written, `write` inside the one transaction, and
`committed` once it is durable. It never opens a transaction of its own for a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from quadloom.model.document import PageFacts
from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace, PageRow, Settlement
from quadloom.model.page import Failure, Page
from quadloom.model.page_result import PageResult
from quadloom.model.visit import Visit
from quadloom.stores.protocols.archive import ArchiveRecord
from quadloom.stores.protocols.catalog import IndexedPage, VisitKey

VisitStep = Literal[
    "whole",  # fetched, and transformed if it has content
    "same",  # fetched, and byte for byte what it was
    "fetched",  # fetched; transformed by another process or later
    "detected",  # fetched before; now it is known what kind of document it is
    "later",  # fetched before, now transformed
    "lost",  # fetched before, and its record cannot be read
]
_PER_LINK = 600  # bytes of a discovery and its strings
_UNPACKED = 4  # times as large as encoded
LATER_STEPS: frozenset[VisitStep] = frozenset(("detected", "later", "lost"))  # the frontier has settled these


class FinishedVisit(msgspec.Struct, frozen=True):
    """A visit that has come back, or a step of one that came back earlier. `result` is None if there was nothing to
    transform, or in quarantine (`reason`). `facts`: what detect alone has found."""

    visit: Visit
    response: Page | Failure
    pace: HostPace | None
    result: PageResult | None = None
    record: ArchiveRecord | None = None
    reason: str = ""
    step: VisitStep = "whole"
    facts: PageFacts | None = None
    links: bytes = b""  # discoveries of `result`, if a worker has packed them
    original: Page | None = None  # as the server sent it, if `response` was rendered from it

    @property
    def is_later(self) -> bool:
        """Whether the frontier settled the visit when the page was fetched."""
        return self.step in LATER_STEPS

    @property
    def weight(self) -> int:
        """About how many bytes it takes in memory until it is written and indexed."""
        size = len(self.response.body) if isinstance(self.response, Page) else 0
        if self.record is not None:
            size += len(self.record.member)
        if self.result is not None:
            size += self.result.quads.size + len(self.result.edges)
            size += _UNPACKED * len(self.links) + _PER_LINK * len(self.result.discoveries)
        return size


class SettleBatch(msgspec.Struct, kw_only=True):
    """One batch on its way into the catalog. Hooks may replace `settlements` and `links`, and nothing else.

    `settlements[i]` belongs to `visits[i]`. `known`: rows of the pages as they were before, by fingerprint. `links`:
    discoveries of the user's own link queries and of a separate extract phase, which arrive after their pages were
    settled. `extracted`: the pages that these links belong to, if they are of the phase extract. `marks`: pages that
    the transaction marks as indexed. `indexed`: how many they are, with those that have nothing to be indexed: nothing
    reads them again after a crash."""

    visits: Sequence[FinishedVisit]
    settlements: list[Settlement]
    known: Mapping[int, PageRow]
    links: Sequence[Discovery]
    now: float
    extracted: Sequence[VisitKey] = ()
    marks: Sequence[IndexedPage] = ()
    indexed: int = 0


class SettleHook(Protocol):
    """All three are called in the owner's thread, for every batch, in the order of the hooks."""

    def prepare(self, batch: SettleBatch) -> None:
        """Decide what belongs to this batch. May read stores; writes nothing."""
        ...

    def write(self, now: float) -> None:
        """Write it, inside the transaction that settles the batch. May be called again after the transaction failed,
        so it changes nothing in memory that a second call would miss."""
        ...

    def committed(self) -> None:
        """The batch is durable: forget what was prepared."""
        ...
