"""Judging time by a server's log on a machine that is not ours alone.

A stamp that is late makes the request after it look early. Such noise differs from one attempt to the next; a client
that is early is early every time. So a strict judgement may be repeated, and one clean attempt acquits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

ATTEMPTS = 4


def acquitted(attempt: Callable[[], Sequence[object]]) -> None:
    """Run `attempt` until it has nothing to complain about; fails with the last complaints."""
    complaints: Sequence[object] = ()
    for _ in range(ATTEMPTS):
        complaints = attempt()
        if not complaints:
            return
    raise AssertionError(f"in each of {ATTEMPTS} attempts, lastly: {complaints}")
