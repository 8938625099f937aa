"""How a visit ended, and all that must be written for it in one transaction."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from quadloom.model.finding import Finding, FixedFinding, PageAudit
from quadloom.model.link import Discovery
from quadloom.model.phase import Owed
from quadloom.model.visit import Visit


class Outcome(StrEnum):
    NEW = "new"  # first successful visit
    CHANGED = "changed"  # graph or main text differ from the last visit
    UNCHANGED = "unchanged"  # same graph and text, or 304
    FETCHED = "fetched"  # its record is in the archive; what it says is found out by a later phase
    GONE = "gone"  # 404, 410
    DENIED = "denied"  # robots, guard, scope, 401, 403
    FAILED = "failed"  # tried and given up for now


READ_OUTCOMES = frozenset((Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED, Outcome.FETCHED))
"""The outcomes of a visit that read the page: its content is known or archived, whether it changed or not."""


class ArchiveRef(msgspec.Struct, frozen=True, array_like=True):
    """The place of a record: file name relative to the archive, byte offset and length of its gzip member."""

    file: str
    offset: int
    length: int


class FetchedVersion(msgspec.Struct, frozen=True, array_like=True):
    """A version of a page that was fetched at `at` and waits in the archive to be transformed."""

    at: float
    archive: ArchiveRef


class PageRow(msgspec.Struct, frozen=True, kw_only=True):
    """A page as the catalog knows it after its newest visit that was transformed, or that failed.

    `fetched`: a newer version, of which nothing else in the row speaks yet.
    """

    fingerprint: int
    key: str
    href: str
    host: str
    final_url: str = ""
    status: int = 0
    outcome: Outcome = Outcome.NEW
    kind: str = ""
    media_type: str = ""  # as detected
    sent_type: str = ""  # Content-Type, as sent
    sent_language: str = ""  # Content-Language, as sent
    charset: str = ""
    language: str = ""
    title: str = ""
    etag: str = ""
    last_modified: str = ""
    fetched_at: float = 0.0
    first_seen: float = 0.0
    changed_at: float = 0.0
    visits: int = 0
    changes: int = 0
    failures: int = 0  # in a row
    depth: int = 0
    via: int = 0
    link_kind: str = ""
    body_bytes: int = 0
    body_digest: bytes = b""
    quads_digest: bytes = b""
    text_digest: bytes = b""
    indexed_quads: bytes = b""  # quads_digest that the quad store has acknowledged
    indexed_text: bytes = b""  # text_digest that the text index has acknowledged
    quads: int = 0
    links: int = 0
    archive: ArchiveRef | None = None
    findings: tuple[Finding, ...] = ()
    reason: str = ""  # of a failure, denial or quarantine, for people
    visit_bytes: int | None = None  # body of the last response if it was no version of the page, such as a 404's
    schedule: bytes = b""  # state of the refresh schedule, encoded by `quadloom.planning.refresh`
    audit: PageAudit = PageAudit()
    fixed: tuple[FixedFinding, ...] = ()  # defects that an earlier visit found, the latest first
    lines: bytes = b""  # `line_fingerprints` of the graph as settled, empty = unknown
    owed: Owed = Owed.NOTHING  # phases left to other processes or later commands
    fetched: FetchedVersion | None = None
    source_digest: bytes = b""  # of all that the transformation depends on, empty = unknown

    @property
    def graph(self) -> str:
        """The name of the page's graph: its URL after redirects, or as requested if it was never read."""
        return self.final_url or self.href

    @property
    def state(self) -> str:
        """How far the page has come: fetched, detected, transformed, indexed, extracted."""
        if self.owed & Owed.TRANSFORM:
            return "fetched" if self.owed & Owed.DETECT else "detected"
        if self.owed & Owed.INDEX or (self.indexed_quads, self.indexed_text) != (self.quads_digest, self.text_digest):
            return "transformed"
        return "indexed" if self.owed & Owed.EXTRACT else "extracted"


class HostPace(msgspec.Struct, frozen=True, array_like=True):
    """What a visit showed about its host; written with the settlement so that it survives a crash.

    `next_at`: not before this unix time. `blocked_until`: Retry-After or back-off; 0 = not blocked.
    """

    host: str
    address: str
    delay: float
    next_at: float
    blocked_until: float = 0.0
    reason: str = ""
    cost: float = 1.0  # of the host's budget: errors and near-duplicates spend faster


class Settlement(msgspec.Struct, frozen=True):
    """The end of one visit. Everything in here is written in ONE transaction; settling twice is harmless.

    `again_at`: unix time of the next visit (a retry or a refresh), None = not scheduled.
    `pace`: None = the host was not asked (robots, scope), so its clocks are reset to their values before the lease.
    """

    visit: Visit
    outcome: Outcome
    page: PageRow | None
    pace: HostPace | None = None
    discoveries: tuple[Discovery, ...] = ()
    again_at: float | None = None
