"""Work that other processes, or earlier commands, have left: pages that owe a phase, leased from the catalog.

A process takes a few pages at a time. What it has done is written in the transaction that ends their leases. If it is
killed, the leases stay, until another process sees that their owner is gone and ends them; so every page is worked on
by one process at a time, and none is forgotten.

A process that owns the whole warehouse looks once: nobody else can leave work behind. Others look again and again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from quadloom.crawling.ingest.handover.spool import ResultSpool
from quadloom.model.link import Discovery
from quadloom.model.outcome import PageRow
from quadloom.model.phase import ALL_PHASES, OWED_BY_PHASE, Owed, PhaseName
from quadloom.process.retry import retry_when_unavailable
from quadloom.settings import Settings
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import VisitKey

LOOK_SECONDS = 0.25  # between two looks for work, when there was none
_OWNERS_SECONDS = 2.0  # between two looks for owners of leases that are gone
_NEVER = float("inf")


class ExtractedPage(msgspec.Struct, frozen=True):
    """A page whose links are known and not in the frontier yet."""

    row: PageRow
    links: tuple[Discovery, ...]


class Backlog:
    """Leases pages of a phase (`take`), and ends the leases with what was done. One thread, the owner's.

    `extracted`: pages whose links become durable with the next transaction.
    """

    def __init__(self, stores: Stores, settings: Settings) -> None:
        self._stores = stores
        self._catalog = stores.catalog
        self._owner = stores.state.owner
        self._alone = stores.phases == ALL_PHASES and stores.shards is None
        folder = Path(settings.stores.spool) if settings.stores.spool else stores.path / "spool"
        self._folder = folder
        self.spool = ResultSpool(folder, settings.crawl.strategies)
        self.phases: frozenset[PhaseName] = frozenset()
        self._was_open = False
        self._leased: dict[int, Owed] = {}
        self._returned: list[int] = []  # to be given back by the next look
        self._look_at: dict[Owed, float] = {}
        self._owners_at = 0.0
        self.extracted: list[ExtractedPage] = []

    def open(self, phases: frozenset[PhaseName]) -> None:
        """From now on work of these phases is taken; of none = nothing more."""
        self._was_open = self._was_open or bool(phases)
        self.phases = phases - {"fetch"}
        if "transform" in phases:
            self.phases -= {"detect"}  # transform includes it
        self.look_again()

    def look_again(self) -> None:
        """There may be work."""
        self._look_at = {OWED_BY_PHASE[phase]: 0.0 for phase in self.phases}

    @property
    def is_empty(self) -> bool:
        """Nothing is leased, and at the last look there was nothing to lease."""
        return not self._leased and not self.extracted and all(self._look_at.values())

    def take(self, phase: Owed, limit: int) -> list[PageRow]:
        """Lease up to `limit` pages that wait for this phase. Empty = there is none now, or it is too early to ask."""
        now = time.monotonic()
        if limit <= 0 or now < self._look_at.get(phase, _NEVER):
            return []
        return retry_when_unavailable(lambda: self._take(phase, limit, now))

    def _take(self, phase: Owed, limit: int, now: float) -> list[PageRow]:
        if self._returned:
            self._catalog.backlog.release(self._owner, self._returned)
            self._returned.clear()
        if now >= self._owners_at:
            self._end_orphans()
            self._owners_at = now + _OWNERS_SECONDS
        rows = self._catalog.backlog.lease(phase, limit, self._owner)
        self._leased.update((row.fingerprint, row.owed) for row in rows)
        if rows:
            self._look_at[phase] = 0.0
        else:
            self._look_at[phase] = _NEVER if self._alone else now + LOOK_SECONDS
        return rows

    def _end_orphans(self) -> None:
        for owner in self._catalog.backlog.owners():
            if owner != self._owner and not self._stores.state.is_working(owner):
                self._catalog.backlog.release(owner)
            elif owner == self._owner and not self._leased:
                self._catalog.backlog.release(owner)  # of an earlier process with the same number

    def leased(self, phase: Owed) -> int:
        """How many pages of a phase this process has in hand."""
        return sum(1 for owed in self._leased.values() if owed & phase)

    def give_back(self, fingerprints: Sequence[int]) -> None:
        """These were not worked on after all. Others may have them after the next look."""
        self._returned += fingerprints
        self._forget(fingerprints)

    def links(self) -> list[Discovery]:
        return [link for page in self.extracted for link in page.links]

    def write(self, extracted: Sequence[ExtractedPage], indexed: Sequence[int]) -> None:
        """Part of the transaction that writes the links of `extracted` and the marks of `indexed`."""
        if extracted:
            keys = [VisitKey(page.row.fingerprint, page.row.fetched_at) for page in extracted]
            self._catalog.backlog.remove(Owed.EXTRACT, keys)
        if self._leased:
            self.end_leases([*(page.row.fingerprint for page in extracted), *indexed])

    def end_leases(self, fingerprints: Sequence[int]) -> None:
        """Part of a transaction; `committed` follows."""
        own = [key for key in fingerprints if key in self._leased]
        if own:
            self._catalog.backlog.release(self._owner, own)

    def committed(self, extracted: Sequence[ExtractedPage], indexed: Sequence[int]) -> None:
        """What `write` wrote is durable."""
        done = [page.row.fingerprint for page in extracted]
        del self.extracted[: len(extracted)]
        if self._leased:
            done += [key for key in indexed if key in self._leased and not self._leased[key] & Owed.EXTRACT]
            self._forget([*done, *indexed])
        self.spool.remove(done)

    def settled(self, fingerprint: int) -> None:
        """A page that was transformed or detected later is settled, and its lease has ended."""
        self._forget([fingerprint])

    def close(self) -> None:
        """Give back what is leased. Once nothing is owed, no result is needed any more."""
        if self._leased or self._returned:
            self._catalog.backlog.release(self._owner)
            self._leased.clear()
            self._returned.clear()
        if self._alone and self._was_open and self._folder.is_dir() and not self._catalog.backlog.counts():
            shutil.rmtree(self._folder, ignore_errors=True)

    def _forget(self, fingerprints: Sequence[int]) -> None:
        for fingerprint in fingerprints:
            if self._leased.pop(fingerprint, None) is not None:
                # What was done may have made the page ready for the next phase.
                self._look_at = dict.fromkeys(self._look_at, 0.0)
