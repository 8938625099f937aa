"""Settlements of pages that are not fetched and transformed at once. No I/O. See `quadloom.crawling.ingest.settle`.

::

    2xx, transformed later        FETCHED             done; what the page says is settled by the transform phase
    detected or transformed       as if it had been   done, unless the page was read again meanwhile
    record cannot be read         as before           read again
"""

from __future__ import annotations

import msgspec

from quadloom.crawling.ingest.settle import settle_page, settle_quarantine
from quadloom.model.document import PageFacts
from quadloom.model.outcome import ArchiveRef, FetchedVersion, HostPace, Outcome, PageRow, Settlement
from quadloom.model.page import Failure, Page
from quadloom.model.page_result import PageResult
from quadloom.model.phase import Owed
from quadloom.model.visit import Visit


def settle_fetched(
    visit: Visit,
    page: Page,
    facts: PageFacts | None,
    pace: HostPace | None,
    old: PageRow | None,
    archive: ArchiveRef,
    owed: Owed,
) -> Settlement:
    """Settle a page with content that is transformed later. What the row says of the last complete version stays; the
    new one waits beside it. `facts`: if it was detected."""
    row = old or PageRow(
        fingerprint=visit.fingerprint,
        key=visit.key,
        href=visit.href,
        host=visit.host,
        outcome=Outcome.FETCHED,
        depth=visit.depth,
        via=visit.via,
        link_kind=visit.kind,
    )
    if max(row.fetched_at, row.fetched.at if row.fetched is not None else 0.0) < page.fetched_at:  # else it came late
        row = msgspec.structs.replace(
            row,
            etag=page.header("etag"),
            last_modified=page.header("last-modified"),
            owed=row.owed | owed,
            fetched=FetchedVersion(page.fetched_at, archive),
        )
        if not row.visits:
            row = msgspec.structs.replace(
                row, status=page.status, final_url=page.final_url, body_bytes=len(page.body), kind="", reason=""
            )
        row = _detected(row, facts)
    return Settlement(visit, Outcome.FETCHED, row, pace)


def settle_detected(visit: Visit, page: Page, facts: PageFacts, old: PageRow | None) -> Settlement:
    """A page that was fetched before is now known to be of a kind."""
    if old is None or old.fetched is None or old.fetched.at != page.fetched_at:
        return Settlement(visit, Outcome.FETCHED, None)  # it was read again meanwhile
    return Settlement(visit, Outcome.FETCHED, _detected(old, facts))


def _detected(row: PageRow, facts: PageFacts | None) -> PageRow:
    if facts is None:
        return row
    owed = row.owed & ~Owed.DETECT
    if row.visits:
        return msgspec.structs.replace(row, owed=owed)  # the kind is that of the complete version
    return msgspec.structs.replace(row, owed=owed, kind=facts.kind, media_type=facts.media_type, charset=facts.charset)


def settle_later(
    visit: Visit, page: Page, result: PageResult | None, reason: str, old: PageRow | None, only_data: bool
) -> Settlement:
    """Settle the content of a page that was fetched before. Nothing, if it was read again meanwhile."""
    if old is None or old.fetched is None or old.fetched.at != page.fetched_at:
        return Settlement(visit, Outcome.FETCHED, None)
    archive = old.fetched.archive
    before = msgspec.structs.replace(old, fetched=None, owed=Owed.NOTHING)
    if result is None:
        settlement = settle_quarantine(visit, page, reason, None, before, archive)
    else:
        keep = not result.noarchive and (result.has_data or not only_data)
        settlement = settle_page(visit, page, result, None, before, archive if keep else None)
    if old.fetched_at <= page.fetched_at or settlement.page is None:
        return settlement
    if old.outcome is Outcome.GONE or old.kind == "redirect":
        return Settlement(visit, old.outcome, before)  # it has left since
    # A later visit failed, say: its outcome stands, with what the page was when it was last read.
    row = msgspec.structs.replace(
        settlement.page,
        fetched_at=old.fetched_at,
        status=old.status,
        outcome=old.outcome,
        reason=old.reason,
        failures=old.failures,
    )
    return msgspec.structs.replace(settlement, page=row)


def settle_lost(visit: Visit, page: Page | Failure, old: PageRow | None) -> Settlement:
    """The record of a fetched page cannot be read: the row stays as it was before that visit."""
    if old is None or old.fetched is None or old.fetched.at != page.fetched_at:
        return Settlement(visit, Outcome.FETCHED, None)
    row = msgspec.structs.replace(old, fetched=None, owed=Owed.NOTHING, etag="", last_modified="")
    return Settlement(visit, Outcome.FETCHED, row)
