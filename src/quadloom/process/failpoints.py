"""Named points between two writes, at which tests end the process without warning.

`crawl.failpoint = "after-archive"` ends it at the first pass, `"after-archive:3"` at the third. In a normal run a point
costs one comparison. os._exit ends the process like kill -9: no flush, no atexit, no finally.
"""

from __future__ import annotations

import os

POINTS = ("after-archive", "after-catalog", "after-quads", "after-text", "after-marks")
# Phases that run apart also reach "after-spool" and "after-extract".
REBUILD_POINTS = (  # in the order of `quadloom.maintenance.swap`
    "rebuild-filled",
    "rebuild-journal",
    "rebuild-old-away",
    "rebuild-new-in",
    "rebuild-marks",
    "rebuild-old-removed",
    "rebuild-done",
)
RECOVERY_POINTS = (
    "recovery-filled",
    "recovery-old-away",
    "recovery-new-in",
)  # of `quadloom.maintenance.recovery.recover`
EXIT_CODE = 86


class Failpoints:
    """`spec`: the value of `crawl.failpoint`; empty = none."""

    def __init__(self, spec: str = "") -> None:
        name, _, count = spec.partition(":")
        self._name = name
        self._left = int(count or 1) if name else 0

    def reach(self, name: str) -> None:
        if name == self._name:
            self._left -= 1
            if self._left <= 0:
                os._exit(EXIT_CODE)
