"""What is new, changed and gone since a time, without a subscription, grouped by site and template."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec

from quadloom.asking.changes.history import PageHistory, version_of
from quadloom.asking.changes.readable_changes import PropertyChange
from quadloom.asking.changes.timeline import version_changes
from quadloom.asking.changes.versions import VersionReader
from quadloom.asking.report.numbers import counts_of
from quadloom.asking.search import search, search_request
from quadloom.asking.urls import fingerprint_of
from quadloom.errors import ArchiveDamaged, NothingFound, StoreError, UsageError
from quadloom.model.outcome import Outcome, PageRow
from quadloom.model.url import belongs_to, site_of
from quadloom.planning.policy.page_row import gone_since
from quadloom.stores.opened import Stores

MOST_PAGES = 1000
_MOST_COMPARED = 60  # pages whose versions are read: some ten milliseconds each
_MOST_SCANNED = 200_000  # pages among which those that are gone are looked for
_SLICE = 5_000
_NUMBER = re.compile(r"\d+")


class ChangedPage(msgspec.Struct, frozen=True, kw_only=True):
    """`before`: time of the visit that it is compared with. `changes`: what differs, before → after; `reason`: why that
    is not known."""

    url: str
    title: str
    language: str
    site: str
    template: str
    at: float
    before: float = 0.0
    is_new: bool = False
    is_gone: bool = False
    statements: int = 0
    changes: tuple[PropertyChange, ...] = ()
    reason: str = ""


class ChangedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Pages of one site whose addresses have one form."""

    site: str
    template: str
    new: int
    changed: int
    gone: int


class ChangesSince(msgspec.Struct, frozen=True, kw_only=True):
    """`pages`: the newest first, at most `MOST_PAGES`; `more`: there are more. `is_first`: nothing was read before, so
    that all pages are new. `groups`: of all these pages."""

    since: float
    pages: tuple[ChangedPage, ...]
    groups: tuple[ChangedGroup, ...]
    new: int
    changed: int
    gone: int
    more: bool
    is_first: bool


def changes_since(stores: Stores, reader: VersionReader, since: float, *, site: str = "") -> ChangesSince:
    """`site`: only of this site or host."""
    rows = changed_rows(stores, since, MOST_PAGES + 1)
    rows = [row for row in rows if not site or belongs_to(row.host, (site,))]
    compared = 0
    pages = []
    for row in rows[:MOST_PAGES]:
        page = _page(row, since)
        if not page.is_new and not page.is_gone and compared < _MOST_COMPARED:
            page, compared = _compared(stores, reader, row, page, since), compared + 1
        pages.append(page)
    groups: dict[tuple[str, str], list[ChangedPage]] = {}
    for page in pages:
        groups.setdefault((page.site, page.template), []).append(page)
    new, gone = sum(page.is_new for page in pages), sum(page.is_gone for page in pages)
    return ChangesSince(
        since=since,
        pages=tuple(pages),
        groups=tuple(_group(*key, found) for key, found in sorted(groups.items(), key=lambda item: -len(item[1]))),
        new=new,
        changed=len(pages) - new - gone,
        gone=gone,
        more=len(rows) > MOST_PAGES,
        is_first=bool(pages) and new == len(pages) and new >= sum(_read(stores)),
    )


def changed_rows(stores: Stores, since: float, limit: int) -> list[PageRow]:
    """Rows of pages that changed since, were read for the first time or are gone; the newest first."""
    hits = search(stores.text, search_request(since=max(since, 1.0), limit=limit)).hits
    prints = [found for hit in hits if (found := fingerprint_of(hit.id)) is not None]
    known = stores.catalog.pages(prints)
    rows = {number: row for number, row in known.items() if row.changed_at >= since and not gone_since(row)}
    rows |= {row.fingerprint: row for row in _gone_rows(stores) if gone_since(row) and gone_since(row) >= since}
    return sorted(rows.values(), key=lambda row: -(gone_since(row) or row.changed_at))[:limit]


def _read(stores: Stores) -> Iterator[int]:
    """Pages that were ever read, by outcome."""
    counts = counts_of(stores.catalog.counts(), "outcome")
    return (counts.get(str(outcome), 0) for outcome in (Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED))


def _gone_rows(stores: Stores) -> Iterator[PageRow]:
    if not counts_of(stores.catalog.counts(), "outcome").get(str(Outcome.GONE)):
        return
    after = -(1 << 63)
    for _ in range(_MOST_SCANNED // _SLICE):
        rows = stores.catalog.scan(after=after, limit=_SLICE)
        yield from rows
        if len(rows) < _SLICE:
            return
        after = rows[-1].fingerprint


def _page(row: PageRow, since: float) -> ChangedPage:
    gone = gone_since(row)
    return ChangedPage(
        url=row.href,
        title=row.title,
        language=row.language,
        site=site_of(row.host),
        template=template_of(row.href),
        at=gone or row.changed_at,
        is_new=not gone and row.first_seen >= since,
        is_gone=bool(gone),
        statements=row.quads,
    )


def _compared(stores: Stores, reader: VersionReader, row: PageRow, page: ChangedPage, since: float) -> ChangedPage:
    history = PageHistory(row, tuple(stores.catalog.visits.of(row.fingerprint)))
    try:
        before = history.at(since)
        old, new = version_of(reader, row, before), version_of(reader, row, history.at(math.inf))
    except (NothingFound, UsageError, StoreError, ArchiveDamaged) as error:
        return msgspec.structs.replace(page, reason=error.message)
    changes = version_changes(old, new)
    return msgspec.structs.replace(page, before=before.fetched_at, changes=changes, reason=old.failure or new.failure)


def _group(site: str, template: str, pages: list[ChangedPage]) -> ChangedGroup:
    new, gone = sum(page.is_new for page in pages), sum(page.is_gone for page in pages)
    return ChangedGroup(site=site, template=template, new=new, changed=len(pages) - new - gone, gone=gone)


def template_of(url: str) -> str:
    """The part of an address that pages of one kind share: its folders, numbers replaced by `*`."""
    folders = urlsplit(url).path.split("/")[1:-1]
    return "/" + "".join(f"{_NUMBER.sub('*', folder)}/" for folder in folders)
