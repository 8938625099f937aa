"""A page's offer to be pushed: its hub will tell of changes (WebSub)."""

from __future__ import annotations

import msgspec


class PushOffer(msgspec.Struct, frozen=True, array_like=True):
    """`topic`: the page's own name for itself, which the hub knows it by. Both are absolute."""

    topic: str
    hub: str
