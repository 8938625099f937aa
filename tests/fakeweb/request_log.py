"""The server's request log as a judge: what was asked for, how often, how soon after one another."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import msgspec

from quadloom_lab.fakeweb import FakeWeb


class Served(msgspec.Struct, frozen=True):
    """One request as the server saw it. `monotonic` is comparable between processes of one machine."""

    monotonic: float
    wall: float
    host: str
    target: str
    status: int
    method: str
    address: str
    connection: int
    agent: str = ""
    if_none_match: str = ""
    if_modified_since: str = ""

    @property
    def url(self) -> str:
        return f"http://{self.host}{self.target}"

    @property
    def conditional(self) -> bool:
        return bool(self.if_none_match or self.if_modified_since)


class Haste(msgspec.Struct, frozen=True):
    """Two requests that came too close: the second one and the seconds between them."""

    key: str
    second: Served
    gap: float


class RequestLog:
    """The requests so far, in the order of arrival. Read again for later ones."""

    def __init__(self, path: Path) -> None:
        lines = path.read_bytes().splitlines()
        self.requests = sorted(
            (msgspec.json.decode(line, type=Served) for line in lines), key=lambda one: one.monotonic
        )

    def never_earlier_than(self, delay: float, *, tolerance: float = 0.0) -> list[Haste]:
        """Requests that came less than `delay` seconds after the one before to the same host; empty is right."""
        return self._hasty(lambda one: one.host, delay - tolerance)

    def never_earlier_than_by_address(self, delay: float, *, tolerance: float = 0.0) -> list[Haste]:
        """The same per IP address."""
        return self._hasty(lambda one: one.address, delay - tolerance)

    def _hasty(self, key: Callable[[Served], str], delay: float) -> list[Haste]:
        last: dict[str, float] = {}
        found = []
        for one in self.requests:
            before = last.get(key(one))
            if before is not None and one.monotonic - before < delay:
                found.append(Haste(key(one), one, one.monotonic - before))
            last[key(one)] = one.monotonic
        return found

    def disallowed_hits(self, web: FakeWeb, agent: str = "quadloom") -> list[Served]:
        """Requests that robots.txt forbids; empty is right."""
        return [one for one in self.requests if not web.allowed(one.url, agent)]

    def count_by_url(self) -> Counter[str]:
        return Counter(one.url for one in self.requests)

    def count_by_status(self) -> Counter[int]:
        return Counter(one.status for one in self.requests)

    def robots_first(self) -> list[str]:
        """Hosts whose first request was not for robots.txt; empty is right."""
        first: dict[str, str] = {}
        for one in self.requests:
            first.setdefault(one.host, one.target)
        return [host for host, target in first.items() if target != "/robots.txt"]

    def connections_by_host(self) -> dict[str, int]:
        """How many connections the client opened to each host over time."""
        used: defaultdict[str, set[int]] = defaultdict(set)
        for one in self.requests:
            used[one.host].add(one.connection)
        return {host: len(connections) for host, connections in used.items()}
