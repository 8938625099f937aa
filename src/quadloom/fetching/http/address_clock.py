"""The pace of IP addresses, which only the fetcher can keep: many hosts turn out to share one when they are resolved.

The frontier spaces the visits of a host, and of addresses it has seen. On first contact it knows no address, so
200 hosts of one hoster would be asked at once. Every request, robots.txt included, therefore takes a turn
here after resolution. Turns are counted from start to start. A new clock treats every address as if it had just
been asked, so a restart is never early.
"""

from __future__ import annotations

_KEEP = 65536


class AddressClock:
    """Hands out turns `delay` seconds apart per address; `delay` 0 switches it off."""

    def __init__(self, delay: float, now: float) -> None:
        self._delay = delay
        self._floor = now + delay
        self._free: dict[str, float] = {}

    def reserve(self, address: str, now: float) -> float:
        """The time at which one request to `address` may start; each call is one turn."""
        if self._delay <= 0:
            return now
        at = max(now, self._free.get(address, self._floor))
        self._free[address] = at + self._delay
        if len(self._free) > _KEEP:
            self._free = {key: free for key, free in self._free.items() if free > now}
            self._floor = max(self._floor, now)
        return at
