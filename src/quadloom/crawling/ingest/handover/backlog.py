"""The backlog: pages that owe a phase, left by other processes or earlier commands, leased from the catalog.

A process takes a few pages at a time. What it has done is written in the transaction that ends their leases. If it is
killed, the leases stay, until another process sees that their owner is gone and ends them; so every page is worked on
by one process at a time, and none is forgotten.

A process that owns the whole warehouse looks once: nobody else can leave work behind. Others look again and again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from quadloom.model.outcome import PageRow
from quadloom.model.phase import ALL_PHASES, OWED_BY_PHASE, Owed, PhaseName
from quadloom.process.retry import retry_when_unavailable
from quadloom.stores.opened import Stores

LOOK_SECONDS = 0.25  # between two looks for work, when there was none
_OWNERS_SECONDS = 2.0  # between two looks for owners of leases that are gone
_NEVER = float("inf")


class Backlog:
    """Leases pages of a phase (`take`), and ends the leases with what was done. One thread, the owner's."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._catalog = stores.catalog
        self._owner = stores.state.owner
        self._alone = stores.phases == ALL_PHASES and stores.shards is None
        self.phases: frozenset[PhaseName] = frozenset()
        self._was_open = False
        self._leased: dict[int, Owed] = {}
        self._returned: list[int] = []  # to be given back by the next look
        self._look_at: dict[Owed, float] = {}
        self._owners_at = 0.0

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
        return not self._leased and all(self._look_at.values())

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

    def give_back(self, fingerprints: Sequence[int]) -> None:
        """These were not worked on after all. Others may have them after the next look."""
        self._returned += fingerprints
        self.forget(fingerprints)

    def end_leases(self, fingerprints: Sequence[int]) -> None:
        """Part of a transaction; call `forget` once it is durable."""
        own = [key for key in fingerprints if key in self._leased]
        if own:
            self._catalog.backlog.release(self._owner, own)

    def owes_no_links(self, fingerprint: int) -> bool:
        """Whether a leased page need not be kept for the phase extract."""
        owed = self._leased.get(fingerprint)
        return owed is not None and not owed & Owed.EXTRACT

    def close(self) -> bool:
        """Give back what is leased. True if nothing is owed any more, and nobody else can owe anything."""
        if self._leased or self._returned:
            self._catalog.backlog.release(self._owner)
            self._leased.clear()
            self._returned.clear()
        return self._alone and self._was_open and not self._catalog.backlog.counts()

    def forget(self, fingerprints: Sequence[int]) -> None:
        """The leases of these pages have ended."""
        for fingerprint in fingerprints:
            if self._leased.pop(fingerprint, None) is not None:
                # What was done may have made the page ready for the next phase.
                self._look_at = dict.fromkeys(self._look_at, 0.0)
