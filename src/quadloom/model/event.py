"""What happened: events for listeners (progress lines, the monitor), notices for subscribers."""

from __future__ import annotations

from typing import Literal

import msgspec

from quadloom.model.outcome import ArchiveRef

EventKind = Literal[
    "page", "finding", "settled", "paused", "resumed", "stopped", "worker-started", "worker-killed", "quarantined",
    "blocked", "trap", "notice", "scope", "heartbeat", "worker",
]  # fmt: skip
NoticeKind = Literal["new", "changed", "gone", "back", "result"]


class Event(msgspec.Struct, frozen=True):
    """`id` grows within one warehouse, so that a listener can resume where it left off."""

    id: int
    kind: EventKind
    at: float
    subject: str  # URL, host or worker
    data: dict[str, str | int | float | bool | list[str]] = {}


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """`id` grows within one warehouse and is never used twice, so a receiver can recognise a repetition.

    A page's notice carries no statements but the places of its two versions (`before`, `after`): both are in the
    archive as long as the notice is, so what was added and removed can be worked out at any delivery, and always the
    same. The notice of a standing query (`result`) carries its rows; `more` counts those left out.
    """

    id: int = 0  # 0 = not written yet
    at: float
    subscription: str
    kind: NoticeKind
    url: str = ""
    title: str = ""
    before: ArchiveRef | None = None
    after: ArchiveRef | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    more: int = 0
