"""A visit: work that the frontier has leased to a fetcher."""

from __future__ import annotations

import msgspec

from quadloom.model.link import LinkKind


class Visit(msgspec.Struct, frozen=True, array_like=True):
    """Fetch `href` not before `not_before` and settle before `deadline`, or the lease returns to the queue.

    Only the owner of the frontier makes visits, so politeness has one clock: a visit in hand means that
    the host may be asked now (at `not_before`), once.
    """

    href: str
    key: str
    host: str
    fingerprint: int
    depth: int = 0
    priority: int = 3
    kind: LinkKind = "plain"
    attempt: int = 1
    not_before: float = 0.0
    deadline: float = 0.0
    etag: str = ""
    last_modified: str = ""
    known: bool = False  # visited before: this is a refresh
    via: int = 0
    anchor: str = ""
    score: float = 0.0
    start_before: float = 0.0  # no request may begin later: another worker may own the host by then; 0 = any time
