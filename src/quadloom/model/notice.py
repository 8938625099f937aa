"""A notice: something a subscriber wanted to know has changed."""

from __future__ import annotations

from typing import Literal

import msgspec

from quadloom.model.outcome import ArchiveRef

NoticeKind = Literal["new", "changed", "gone", "back", "result"]


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
