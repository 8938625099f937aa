"""The seams: what the pipeline demands of a store, and what each return value means to the caller.

One contract suite per Protocol lives in tests/contract/ and runs on every backend. A backend may promise more,
never less. Time is always an argument (`now`, unix seconds), so every schedule can be tested by simulation.

Write order (docs/explanation/durability.md): archive records are fsynced first, then ONE transaction settles
frontier and catalog, then quads and text follow; their digests in the catalog say how far they got.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from quadloom.model.event import Event
from quadloom.model.link import Discovery, LinkKind
from quadloom.model.outcome import ArchiveRef, PageRow, Settlement
from quadloom.model.page import Failure, Page
from quadloom.model.quads import Quads
from quadloom.model.visit import Visit
from quadloom.stores.frontier.quota import Quota
from quadloom.stores.frontier.scoring import Place, Scored
from quadloom.stores.text_records import Hit, SearchAnswer, SearchRequest, TextDocument

__all__ = [
    "AddReport", "Archive", "ArchiveRecord", "Bus", "Catalog", "Difference", "Explanation", "Frontier", "FrontierStats",
    "Hit", "HostRow", "QuadStore", "ScopeRules", "SearchAnswer", "SearchRequest", "TextDocument", "TextIndex",
    "Transport", "VisitRow",
]  # fmt: skip


class Transport(Protocol):
    """Brings one page. Raises only `FetchError`; enforces every limit; never connects to a refused address."""

    def send(self, visit: Visit) -> Page: ...


class AddReport(msgspec.Struct, frozen=True):
    """What became of offered URLs; the three numbers add up to the number offered."""

    new: int = 0
    known: int = 0
    refused: int = 0  # out of scope


class HostRow(msgspec.Struct, frozen=True, kw_only=True):
    """A host as the frontier knows it: pace, blocks, budget and robots, all durable."""

    host: str
    site: str
    address: str = ""
    delay: float = 0.0
    next_at: float = 0.0
    blocked_until: float = 0.0
    block_reason: str = ""
    failures: int = 0  # in a row
    queued: int = 0
    pages: int = 0
    spent: float = 0.0  # of `budget`
    budget: float = 0.0  # 0 = no limit
    crawl_delay: float = 0.0
    robots: bytes = b""  # encoded `quadloom.fetching.robots.RobotsRow`
    robots_expires: float = 0.0


class FrontierStats(msgspec.Struct, frozen=True, kw_only=True):
    queued: int = 0  # could be leased now, were it not for politeness
    waiting: int = 0  # due later
    leased: int = 0
    done: int = 0  # visited, not scheduled again
    dead: int = 0
    parked: int = 0  # out of scope since the scope changed, or over budget; never dropped silently
    hosts: int = 0
    blocked_hosts: int = 0

    @property
    def total(self) -> int:
        return self.queued + self.waiting + self.leased + self.done + self.dead + self.parked


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a URL is where it is: each line a number or state and the rule that made it.

    `kind` of the link through which it was met first, on the page `via` (0 = a seed)."""

    key: str
    state: str
    lines: tuple[tuple[str, str, str], ...] = ()  # (what, value, rule)
    kind: LinkKind = "plain"
    via: int = 0


class ScopeRules(Protocol):
    """Decides whether a URL may be visited; see `quadloom.scheduling.scope.Scope`."""

    def verdict(self, href: str, host: str, depth: int) -> str | None:
        """None = may be visited; else the rule that refuses it, in words."""
        ...


class Frontier(Protocol):
    """All URLs ever met, and which may be visited now.

    Guarantees: a URL is leased to one worker at a time; a lease writes nothing, so a crash returns it; `add` and
    `settle` are idempotent and durable on return (or with the enclosing `Catalog.transaction()`); no host and no
    address is handed out before its clock allows, also after a restart; sites take turns, and within a site
    the order is priority, then depth, then score, then a hash of the URL, so never the order of a listing.
    """

    def add(self, discoveries: Sequence[Discovery], now: float) -> AddReport:
        """Offer URLs. Known ones are not queued again, but a higher priority or smaller depth is taken over."""
        ...

    def lease(self, limit: int, now: float, *, duration: float = 600.0, quota: Quota | None = None) -> list[Visit]:
        """Up to `limit` visits whose hosts and addresses are free. Empty = nothing may be fetched at `now`. With a
        `quota` only what it allows, counted off; a host serves its classes in turns, refreshes as they fell due."""
        ...

    def settle(self, settlements: Sequence[Settlement], now: float) -> None:
        """End visits: next state, host clock, new links, in one transaction."""
        ...

    def release(self, visits: Sequence[Visit], now: float) -> None:
        """Give back leases that were not used (a drain, a full queue). Writes nothing."""
        ...

    def next_due(self, now: float) -> float | None:
        """Earliest time at which a lease could succeed; None = nothing left to visit but what is leased now."""
        ...

    def block(self, host: str, until: float, reason: str) -> None:
        """Visit `host` not before `until`. Durable on return."""
        ...

    def hosts(self, *, limit: int = 1000, offset: int = 0) -> list[HostRow]: ...

    def host(self, host: str) -> HostRow | None: ...

    def put_host(self, row: HostRow) -> None:
        """Write robots, delay or budget of a host; counters and clocks in `row` are ignored."""
        ...

    def request(self, urls: Sequence[Discovery], now: float) -> int:
        """Visit these as soon as politeness allows, known or not, before anything else. Returns how many."""
        ...

    def set_scope(self, scope: ScopeRules) -> int:
        """Apply new rules to all that is queued: what fell out is parked, what came back in is queued again.
        Returns the number of URLs that moved."""
        ...

    def reschedule(self, times: Sequence[tuple[int, str, float]], now: float) -> None:
        """Set the next visit of known pages: (fingerprint, host, unix time)."""
        ...

    def rescore(self, after: Place, limit: int, scored: Scored) -> Place | None:
        """Give the next URLs that wait for a first read new scores, where `scored` has one. Returns where to go on;
        None = that was the end. Begin with `FIRST_PLACE`."""
        ...

    def soonest(self, limit: int) -> list[tuple[int, str, float]]:
        """Refreshes, the soonest due first: (fingerprint, host, unix time). None of hosts that are behind already."""
        ...

    def explain(self, key: str, now: float) -> Explanation | None:
        """None = never met."""
        ...

    def stats(self, now: float) -> FrontierStats: ...

    def close(self) -> None: ...


class VisitRow(msgspec.Struct, frozen=True, kw_only=True):
    """One visit in a page's history."""

    fingerprint: int
    fetched_at: float
    status: int
    outcome: str
    body_digest: bytes = b""
    quads_digest: bytes = b""
    text_digest: bytes = b""
    body_bytes: int = 0
    quads: int = 0
    archive: ArchiveRef | None = None


class Catalog(Protocol):
    """What is known of pages, visits and the warehouse itself. Settled means durable.

    Frontier and Catalog of one warehouse share a database: what is done inside `transaction()` is one commit.
    """

    def transaction(self) -> AbstractContextManager[None]:
        """Everything on this catalog and its frontier inside the block becomes durable together, or not at all."""
        ...

    def record(self, settlements: Sequence[Settlement], now: float) -> None:
        """Write page rows and append to history. Idempotent by (page, fetched_at)."""
        ...

    def page(self, fingerprint: int) -> PageRow | None: ...

    def pages(self, fingerprints: Sequence[int]) -> dict[int, PageRow]: ...

    def scan(self, *, after: int = -(1 << 63), limit: int = 1000, host: str = "") -> list[PageRow]:
        """Pages in fingerprint order, for verify, export and rebuild. Empty = the end."""
        ...

    def history(self, fingerprint: int) -> list[VisitRow]:
        """Visits, newest first."""
        ...

    def forget(self, visits: Sequence[tuple[int, float]]) -> None:
        """Drop visits, (fingerprint, fetched_at), from history; pages stay. Unknown ones are no error."""
        ...

    def amend(self, pages: Sequence[PageRow]) -> None:
        """Write rows changed between visits (the schedule), not history. A page visited since, or unknown, stays."""
        ...

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef], fingerprints: Sequence[int]) -> None:
        """Archive records were copied (old → new place): make these pages and their visits name the copies."""
        ...

    def unindexed(self, limit: int, after: tuple[float, int] = (-1.0, 0)) -> list[PageRow]:
        """Pages whose quads or text in the indexes are older than what was settled: the replay list, by
        (fetched_at, fingerprint). Empty = the end."""
        ...

    def mark_indexed(self, marks: Sequence[tuple[int, bytes, bytes]]) -> None:
        """(fingerprint, quads_digest, text_digest) that the indexes have acknowledged."""
        ...

    def get(self, name: str) -> bytes | None:
        """A named value: control words, statistics, robots, subscriptions … small things that must survive."""
        ...

    def put(self, name: str, value: bytes | None) -> None:
        """Write a named value, None removes it. Durable on return."""
        ...

    def names(self, prefix: str) -> list[str]: ...

    def counts(self) -> dict[str, int]:
        """Pages by outcome, kind and status, as `outcome:new`, `kind:html`, `status:200` …"""
        ...

    def close(self) -> None: ...


class ArchiveRecord(msgspec.Struct, frozen=True):
    """A record ready to be appended: one gzip member, already compressed (`warc_record.encode` makes it)."""

    key: str
    member: bytes


class Archive(Protocol):
    """Append-only record of everything that servers said. Only whole files ever go (`quadloom.maintenance.prune`)."""

    def put(self, records: Sequence[ArchiveRecord]) -> list[ArchiveRef]:
        """Append a batch. The references become readable after `sync`."""
        ...

    def sync(self) -> None:
        """Return when all that was put is durable for all who share the catalog: on disk and synced, or in a bucket."""
        ...

    def get(self, ref: ArchiveRef) -> Page | Failure:
        """The page as it was fetched. Raises `ArchiveDamaged` with the place where it cannot be read."""
        ...

    def scan(self) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        """All records in order of writing. A torn last record (crash before sync) ends the scan silently."""
        ...

    def record(self, ref: ArchiveRef) -> ArchiveRecord:
        """The record byte for byte, ready to be put again. Raises `ArchiveDamaged` where `get` would."""
        ...

    def seal(self) -> None:
        """End the file being written, durably; what is put next begins another one."""
        ...

    def files(self) -> dict[str, int]:
        """Ended files in order of writing → bytes of their records, what describes the file itself not counted."""
        ...

    def remove(self, file: str) -> None:
        """Delete an ended file; durable on return, no error where it is gone. `StoreError` for one being written."""
        ...

    def size(self) -> int: ...

    def close(self) -> None: ...


class Difference(msgspec.Struct, frozen=True):
    """What a replacement changed, as sorted N-Quads lines."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


class QuadStore(Protocol):
    """Named graphs of quads, all sixteen access patterns served by index."""

    def replace(self, quads: Quads, known: bytes = b"") -> Difference:
        """Make the graph hold exactly these quads. Atomic per graph; writes only the difference; returns it.

        `known`: `line_fingerprints` of what the graph holds now, which may spare reading it; empty = not known."""
        ...

    def difference(self, quads: Quads) -> Difference:
        """What `replace` would change, without changing it. Statements count by value: `1.0` and `1.00` are one."""
        ...

    def insert_new(self, batch: Sequence[Quads], about: bytes = b"") -> None:
        """Fill graphs that hold nothing yet, in one large write. Not atomic: a crash may leave a part, which the
        replay replaces. `about`: N-Quads about these graphs in the graph of descriptions, written with them."""
        ...

    def describe(self, graph: str, descriptions: Sequence[tuple[str, bytes]]) -> None:
        """Make `graph` say of each subject IRI exactly these N-Quads (none = nothing), in one atomic write."""
        ...

    def remove(self, graph: str) -> Difference: ...

    def graph(self, graph: str) -> bytes:
        """Sorted N-Quads of one graph; empty = there is no such graph."""
        ...

    def match(
        self, subject: str | None, predicate: str | None, object: str | None, graph: str | None, limit: int = 0
    ) -> Iterator[str]:
        """N-Quads lines matching a pattern; terms in N-Triples syntax, None = any."""
        ...

    def query(self, sparql: str) -> bytes:
        """A trusted query, union default graph; results as SPARQL JSON, or N-Triples for graphs.
        User queries go through `quadloom.asking.sparql.service`, which can be killed."""
        ...

    def graphs(self) -> Iterator[str]: ...

    def dump(self) -> Iterator[bytes]:
        """All quads as N-Quads, in chunks."""
        ...

    def __len__(self) -> int: ...

    def flush(self) -> None: ...

    def optimize(self) -> None: ...

    def close(self) -> None: ...


class TextIndex(Protocol):
    """Words to pages. Changes become visible, and durable, at `commit`."""

    def put(self, documents: Sequence[TextDocument]) -> None:
        """Replace by id."""
        ...

    def remove(self, ids: Sequence[str]) -> None: ...

    def commit(self) -> None: ...

    def search(self, request: SearchRequest) -> SearchAnswer: ...

    def ids(self) -> Iterator[str]:
        """All ids, for verify."""
        ...

    def __len__(self) -> int: ...

    def close(self) -> None: ...


class Bus(Protocol):
    """Tells listeners what happens. `publish` never blocks and never fails; a slow listener loses the oldest."""

    def publish(self, event: Event) -> None: ...

    def follow(self, after: int = 0) -> Iterator[Event]:
        """Events with id > `after` that are still kept, then new ones as they come."""
        ...

    def recent(self, after: int = 0, limit: int = 1000) -> list[Event]:
        """The newest events with id > `after` that are still kept, oldest first; returns at once."""
        ...
