"""How many visits of each class a lease may hand out: the frontier's side of the bandwidth's shares.

Classes follow from priority and history, so the frontier need not be told about them: explicit requests (priority 0),
refreshes (visited before), first reads of suspects (priority 1 and 2: seeds, publications, suspected data), first reads
of other pages. `anyone` is what classes left over (`open`): whoever comes first may use it.
"""

from __future__ import annotations


class Quota:
    """Counted down by the lease that is given it. Requests are never held back, only counted."""

    __slots__ = ("anyone", "first_reads", "pages", "refresh", "requests", "suspects")

    def __init__(self, *, refresh: int = 0, suspects: int = 0, pages: int = 0, anyone: int = 0) -> None:
        self.refresh, self.suspects, self.pages, self.anyone = refresh, suspects, pages, anyone
        self.requests = 0  # handed out, on top of the rest
        self.first_reads = 0  # handed out

    @property
    def left(self) -> int:
        return self.refresh + self.suspects + self.pages + self.anyone

    def open(self) -> None:
        """What is left belongs to anyone from now on."""
        self.anyone = self.left
        self.refresh = self.suspects = self.pages = 0

    def allows(self, priority: int, known: bool) -> bool:
        if priority == 0 or self.anyone:
            return True
        if known:
            return self.refresh > 0
        return (self.suspects if priority <= 2 else self.pages) > 0

    def take(self, priority: int, known: bool) -> None:
        """A visit is handed out; what its class has no share for comes out of `anyone`."""
        self.first_reads += not known
        if priority == 0:
            self.requests += 1
        elif known and self.refresh:
            self.refresh -= 1
        elif not known and priority <= 2 and self.suspects:
            self.suspects -= 1
        elif not known and priority > 2 and self.pages:
            self.pages -= 1
        else:
            self.anyone -= 1

    def priorities(self) -> tuple[int, ...]:
        """Where to look for what is allowed. Refreshes stand at priority 1 in a queue that is leased by quota."""
        if self.anyone:
            return (0, 1, 2, 3, 4)
        return (
            0,
            *((1,) if self.refresh else ()),
            *((2,) if self.suspects else ()),
            *((3, 4) if self.pages else ()),
        )
