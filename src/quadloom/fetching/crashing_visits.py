"""Visits that were in the fetch process when it died: which of them killed it?

A response may crash native code (a decoder, TLS, HTTP/2). The process is started again and its visits return to the
queue, so the same response would crash the next process, without end. Most of the visits that were in hand are
innocent. So the more deaths a visit has seen, the fewer others may be in the process beside it; the visit that is alone
when the process dies is given up. A single death, for instance by a person's `kill`, slows nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from quadloom.model.visit import Visit

_ANY = 1 << 30
_CROWDS = (_ANY, _ANY, 16, 4)  # visits in the process at once, by the deaths that one of them has seen; then 1
_GUILTY = 3  # deaths, the last of them alone
_MOST = 10_000  # visits that are remembered; those that return to the queue may never be sent again


class CrashingVisits:
    """Decides which visits may be in the process now; the others wait in their order."""

    def __init__(self) -> None:
        self._deaths: dict[int, int] = {}  # by fingerprint
        self._waiting: deque[Visit] = deque()
        self._inside: set[int] = set()

    def admit(self, visits: Sequence[Visit]) -> list[Visit]:
        """Those that may go out now; the others wait for `ended`."""
        if not self._deaths:
            self._inside.update(visit.fingerprint for visit in visits)
            return list(visits)
        self._waiting.extend(visits)
        return self._next()

    def ended(self, fingerprints: Sequence[int]) -> list[Visit]:
        """Visits came back; returns those that may go out now."""
        self._inside.difference_update(fingerprints)
        if not self._deaths and not self._waiting:
            return []
        for fingerprint in fingerprints:
            self._deaths.pop(fingerprint, None)
        return self._next()

    def died(self, in_hand: Sequence[Visit]) -> list[Visit]:
        """The process died with these in hand; returns those that are given up. The others may be sent again."""
        inside = [visit for visit in in_hand if visit.fingerprint in self._inside]
        self._inside.clear()
        self._waiting.clear()
        for visit in inside:
            self._deaths[visit.fingerprint] = self._deaths.get(visit.fingerprint, 0) + 1
        guilty = [visit for visit in inside if len(inside) == 1 and self._deaths[visit.fingerprint] >= _GUILTY]
        for visit in guilty:
            del self._deaths[visit.fingerprint]
        while len(self._deaths) > _MOST:
            del self._deaths[next(iter(self._deaths))]
        return guilty

    def _next(self) -> list[Visit]:
        out = []
        crowd = min((self._crowd(one) for one in self._inside), default=_ANY)
        while self._waiting:
            crowd = min(crowd, self._crowd(self._waiting[0].fingerprint))
            if len(self._inside) >= crowd:
                break
            visit = self._waiting.popleft()
            self._inside.add(visit.fingerprint)
            out.append(visit)
        return out

    def _crowd(self, fingerprint: int) -> int:
        deaths = self._deaths.get(fingerprint, 0)
        return _CROWDS[deaths] if deaths < len(_CROWDS) else 1
