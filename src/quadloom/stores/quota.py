"""How many visits of each class a lease may hand out: the frontier's side of the bandwidth's shares.

Classes follow from priority and history, so the frontier need not be told about them: explicit requests (priority 0),
refreshes (visited before), first reads of suspects (priority 1 and 2: seeds, publications, suspected data), first reads
of other pages.
"""

from __future__ import annotations


class Quota:
    """Counted down by the lease that is given it. Requests are never held back, only counted."""

    __slots__ = ("first_reads", "pages", "refresh", "requests", "suspects")

    def __init__(self, *, refresh: int = 0, suspects: int = 0, pages: int = 0, requests: int = 0) -> None:
        self.refresh, self.suspects, self.pages = refresh, suspects, pages
        self.requests = requests  # handed out, on top of the rest, those of earlier quotas not made up for included
        self.first_reads = 0  # handed out

    @property
    def left(self) -> int:
        return self.refresh + self.suspects + self.pages

    def allows(self, priority: int, known: bool) -> bool:
        if priority == 0:
            return True
        if known:
            return self.refresh > 0
        return (self.suspects if priority <= 2 else self.pages) > 0

    def take(self, priority: int, known: bool) -> None:
        """A visit is handed out."""
        self.first_reads += not known
        if priority == 0:
            self.requests += 1
        elif known:
            self.refresh -= 1
        elif priority <= 2:
            self.suspects -= 1
        else:
            self.pages -= 1

    def priorities(self) -> tuple[int, ...]:
        """Where to look for what is allowed. Refreshes stand at priority 1 in a queue that is leased by quota."""
        return (
            0,
            *((1,) if self.refresh else ()),
            *((2,) if self.suspects else ()),
            *((3, 4) if self.pages else ()),
        )
