"""The pages of an export: by site, by type of the things they describe, by time of their last change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec

from quadloom.documents.descriptions import PAGES
from quadloom.documents.syntaxes.terms import TYPE
from quadloom.model.outcome import ArchiveRef, Outcome, PageRow
from quadloom.model.url import site_of
from quadloom.stores.archive.warc_record import record_fields
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.quads import QuadStore

_BATCH = 500
_LOWEST = -(1 << 63)  # of all fingerprints


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Empty = all. `types` are IRIs; times are unix seconds, 0 = no limit."""

    sites: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    since: float = 0.0
    until: float = 0.0


class PageGraph(msgspec.Struct, frozen=True, array_like=True):
    """The statements of a page; `about` describes it in the graph `urn:quadloom:pages`. Both are sorted N-Quads."""

    nquads: bytes
    about: bytes


class ConfirmedVersion(msgspec.Struct, frozen=True, array_like=True):
    """A visit that found a page as an archived record has it. `refers_to`: when that record was fetched."""

    url: str
    at: float
    digest: str
    refers_to: float


class PageRecords(msgspec.Struct, frozen=True, array_like=True):
    """All archived versions of a page, oldest first, each as a member of a .warc.gz file. `confirmed`: visits without a
    record of their own, because the page had not changed."""

    members: tuple[bytes, ...]
    title: str = ""
    confirmed: tuple[ConfirmedVersion, ...] = ()


class PageSource(Protocol):
    """Where an export gets its pages from, in the order of their fingerprints: equal warehouses give equal exports."""

    def graphs(self, selection: Selection) -> Iterator[PageGraph]: ...

    def records(self, selection: Selection) -> Iterator[PageRecords]:
        """`types` select nothing here."""
        ...


class StoredPages:
    """A `PageSource`: the pages of these stores from fingerprint `first` up to, but not including, `end`."""

    def __init__(
        self, catalog: Catalog, quads: QuadStore, archive: Archive, first: int = _LOWEST, end: int = -_LOWEST
    ) -> None:
        self._catalog = catalog
        self._quads = quads
        self._archive = archive
        self._first, self._end = first, end

    def rows(self, selection: Selection) -> Iterator[PageRow]:
        """Indexed pages by site and time."""
        after = self._first - 1 if self._first > _LOWEST else _LOWEST
        while rows := self._catalog.scan(after=after, limit=_BATCH):
            after = rows[-1].fingerprint
            for row in rows:
                if row.fingerprint >= self._end:
                    return
                if (row.quads_digest or row.text_digest) and _is_wanted(row, selection):
                    yield row

    def selected(self, selection: Selection) -> Iterator[PageRow]:
        """The same pages, selected by type too."""
        for row in self.rows(selection):
            if not selection.types or _has_type(self._quads, row.graph, selection.types):
                yield row

    def graphs(self, selection: Selection) -> Iterator[PageGraph]:
        """The same pages with their statements."""
        for row in self.selected(selection):
            graph = row.graph
            about = sorted(self._quads.match(f"<{graph}>", None, None, f"<{PAGES}>"))
            yield PageGraph(self._quads.graph(graph), "".join(f"{line}\n" for line in about).encode())

    def records(self, selection: Selection) -> Iterator[PageRecords]:
        for row in self.rows(selection):
            members: dict[ArchiveRef, bytes] = {}
            confirmed: list[ConfirmedVersion] = []
            last: ConfirmedVersion | None = None
            body = b""
            for visit in reversed(self._catalog.visits.of(row.fingerprint)):
                if visit.archive is not None and visit.archive not in members:
                    # Byte for byte, under the record's own id.
                    members[visit.archive] = member = self._archive.record(visit.archive).member
                    fields = record_fields(member)
                    url, digest = fields.get("warc-target-uri", ""), fields.get("warc-payload-digest", "")
                    last = ConfirmedVersion(url, 0.0, digest, visit.fetched_at) if digest else None
                    body = visit.body_digest
                elif last is not None and visit.outcome == Outcome.UNCHANGED and body and visit.body_digest == body:
                    confirmed.append(msgspec.structs.replace(last, at=visit.fetched_at))
            yield PageRecords(tuple(members.values()), row.title, tuple(confirmed))


def _is_wanted(row: PageRow, selection: Selection) -> bool:
    if selection.sites and site_of(row.host) not in selection.sites:
        return False
    if selection.since and row.changed_at < selection.since:
        return False
    return not (selection.until and row.changed_at > selection.until)


def _has_type(quads: QuadStore, graph: str, types: tuple[str, ...]) -> bool:
    return any(next(iter(quads.match(None, TYPE, f"<{name}>", f"<{graph}>", 1)), None) is not None for name in types)
