"""What a thread waits for, as other threads see it: a thread that waits cannot say so itself."""

from __future__ import annotations

from quadloom.process.clock import unix_time


class Waiting:
    """One thread calls `on` and `off`; any thread may ask. `after`: seconds for which a wait is not worth a word."""

    def __init__(self, after: float = 0.0) -> None:
        self._after = after
        self._now: tuple[str, float] | None = None

    @property
    def reason(self) -> str:
        """Empty = the thread does not wait."""
        now = self._now
        return now[0] if now is not None else ""

    def on(self, reason: str) -> None:
        """It waits, or goes on waiting, with this reason."""
        self._now = (reason, self._now[1] if self._now is not None else unix_time())

    def off(self) -> None:
        self._now = None

    def known(self) -> dict[str, float]:
        """The reason with the unix time since which it holds; empty = the thread does not wait, or not for long."""
        now = self._now
        return {now[0]: now[1]} if now is not None and unix_time() - now[1] >= self._after else {}
