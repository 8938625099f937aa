"""What happened, for listeners: progress lines, the monitor, subscriptions."""

from __future__ import annotations

from typing import Literal

import msgspec

EventKind = Literal[
    "page", "finding", "settled", "paused", "resumed", "stopped", "worker-started", "worker-killed", "quarantined",
    "blocked", "trap", "notice", "scope", "heartbeat", "worker",
]  # fmt: skip


class Event(msgspec.Struct, frozen=True):
    """`id` grows within one warehouse, so that a listener can resume where it left off."""

    id: int
    kind: EventKind
    at: float
    subject: str  # URL, host or worker
    data: dict[str, str | int | float | bool | list[str]] = {}
