"""From the result of a visit to what must be written for it: outcomes, retries, host costs. No I/O.

::

    2xx with new graph or text    NEW, CHANGED        done, or again when the schedule says
    2xx the same, 304             UNCHANGED           done, or again
    3xx                           UNCHANGED           the target is a new discovery of the same depth; a page that has
                                                      moved permanently leaves the indexes
    404, 410                      GONE                dead after `freshness.dead_after` visits in a row
    401, 403, robots, guard       DENIED
    429, 5xx, network             FAILED              again after a growing pause, `politeness.retries` times; a page
                                                      that was never read is tried again for `freshness.dead_span`
"""

from __future__ import annotations

import msgspec

from quadloom.documents.extract import discovery
from quadloom.model.finding import Finding, dated, fixed
from quadloom.model.link import Link
from quadloom.model.outcome import ArchiveRef, FetchedVersion, HostPace, Outcome, PageRow, Settlement
from quadloom.model.page import Failure, Page
from quadloom.model.page_result import PageResult
from quadloom.model.phase import Owed
from quadloom.model.url import resolve
from quadloom.model.visit import Visit
from quadloom.settings import Settings
from quadloom.settings.lengths import seconds

_DENIED_KINDS = {"robots", "guard", "scope", "unwanted"}
_DENIED_STATUS = {401, 403, 451}
_GONE_STATUS = {404, 410}
_MOVED_STATUS = {301, 308}
_SLOW_RETRY, _SLOWEST_RETRY = 3600.0, 86_400.0  # seconds before a page that failed all its quick retries is tried again
_MAX_FINDINGS = 20  # per page in the catalog; transforming the archived page again gives the rest


def settle_failure(
    visit: Visit, failure: Failure, pace: HostPace | None, old: PageRow | None, settings: Settings
) -> Settlement:
    """A visit without a page: denied, gone, or tried again later."""
    if failure.kind in _DENIED_KINDS or failure.status in _DENIED_STATUS:
        return _ended(visit, Outcome.DENIED, failure, pace, old, None)
    if failure.status in _GONE_STATUS:
        return _ended(visit, Outcome.GONE, failure, pace, old, None)  # `RefreshScheduler` may plan further visits
    failures = (old.failures if old else 0) + 1
    at = None
    if failure.transient and failures <= settings.politeness.retries:
        at = _retry_at(failure, failures, pace, settings)
    elif failure.transient and _is_young(failure, old, settings):
        # A server that is away for an hour must not cost pages that nobody has read yet.
        pause = min(_SLOW_RETRY * 2.0 ** (failures - settings.politeness.retries - 1), _SLOWEST_RETRY)
        at = max(failure.fetched_at + pause, pace.blocked_until if pace is not None else 0.0)
    return _ended(visit, Outcome.FAILED, failure, pace, old, at)


def _is_young(failure: Failure, old: PageRow | None, settings: Settings) -> bool:
    """Whether a page was never read, and not given up yet. One that was read has a schedule."""
    if old is not None and old.changed_at:
        return False
    first = old.first_seen if old is not None else failure.fetched_at
    return failure.fetched_at - first < seconds(settings.freshness.dead_span)


def settle_status(
    visit: Visit, page: Page, pace: HostPace | None, old: PageRow | None, settings: Settings
) -> Settlement | None:
    """Settle a response without content of its own; None = the response must be transformed."""
    if page.status == 304:
        return _unchanged(visit, page, pace, old)
    if 300 <= page.status < 400:
        return _redirected(visit, page, pace, old)
    if page.status >= 400:
        transient = page.status in (408, 425, 429) or page.status >= 500
        failure = Failure(
            url=page.url,
            kind="status",
            message=f"HTTP {page.status}",
            transient=transient,
            fetched_at=page.fetched_at,
            seconds=page.seconds,
            status=page.status,
            address=page.address,
            findings=page.findings,
            hops=page.hops,
            headers=page.headers,
            body_bytes=len(page.body),
        )
        return settle_failure(visit, failure, pace, old, settings)
    return None


def settle_same(visit: Visit, page: Page, pace: HostPace | None, old: PageRow | None) -> Settlement:
    """Settle a page that is byte for byte what it was: like a 304, with the validators of the new response."""
    settlement = _unchanged(visit, page, pace, old)
    if settlement.page is None or settlement.again_at is not None or settlement.outcome is not Outcome.UNCHANGED:
        return settlement
    etag, last_modified = page.header("etag"), page.header("last-modified")
    return msgspec.structs.replace(
        settlement, page=msgspec.structs.replace(settlement.page, etag=etag, last_modified=last_modified)
    )


def size_price(result: PageResult, settings: Settings) -> float:
    """How many pages of its host's budget (`crawl.max_pages_per_host`) a page uses up by its size."""
    limits, pages = settings.limits, settings.crawl.max_pages_per_host
    by_count = result.quads.count * pages / limits.quads_per_host if limits.quads_per_host else 0.0
    by_bytes = result.quads.size * pages / limits.quad_bytes_per_host if limits.quad_bytes_per_host else 0.0
    return max(by_count, by_bytes)


def settle_page(
    visit: Visit,
    page: Page,
    result: PageResult,
    pace: HostPace | None,
    old: PageRow | None,
    archive: ArchiveRef | None,
    source_digest: bytes = b"",
) -> Settlement:
    """Settle a page with content. `source_digest`: see `quadloom.crawling.ingest.sources`."""
    if old is None or not old.changed_at:
        outcome = Outcome.NEW
    elif (old.quads_digest, old.text_digest) != (result.quads.digest, result.text_digest):
        outcome = Outcome.CHANGED
    else:
        outcome = Outcome.UNCHANGED
    changed = outcome is not Outcome.UNCHANGED
    row = PageRow(
        fingerprint=visit.fingerprint,
        key=visit.key,
        href=visit.href,
        host=visit.host,
        final_url=page.final_url,
        status=page.status,
        outcome=outcome,
        kind=result.kind,
        media_type=result.media_type,
        sent_type=page.content_type[:200],
        sent_language=page.header("content-language")[:100],
        charset=result.charset,
        language=result.language,
        title=result.title[:500],
        etag=page.header("etag"),
        last_modified=page.header("last-modified"),
        fetched_at=page.fetched_at,
        first_seen=old.first_seen if old and old.first_seen else page.fetched_at,
        changed_at=page.fetched_at if changed or old is None else old.changed_at,
        visits=(old.visits if old else 0) + 1,
        changes=(old.changes if old else 0) + (outcome is Outcome.CHANGED),
        failures=0,
        depth=visit.depth,
        via=visit.via,
        link_kind=visit.kind,
        body_bytes=len(page.body),
        body_digest=result.body_digest,
        quads_digest=result.quads.digest,
        text_digest=result.text_digest,
        indexed_quads=old.indexed_quads if old else b"",
        indexed_text=old.indexed_text if old else b"",
        quads=result.quads.count,
        links=result.links,
        archive=archive,  # None if the site forbids it: an older record would pass for this version
        findings=dated(result.findings, old.findings if old else (), page.fetched_at)[:_MAX_FINDINGS],
        fixed=fixed(result.findings, old.findings if old else (), old.fixed if old else (), page.fetched_at),
        audit=result.audit,
        lines=result.lines,
        source_digest=source_digest,
        schedule=old.schedule if old else b"",
    )
    return Settlement(visit, outcome, row, pace, result.discoveries)


def settle_quarantine(
    visit: Visit, page: Page, reason: str, pace: HostPace | None, old: PageRow | None, archive: ArchiveRef | None
) -> Settlement:
    """Settle a page that killed two workers: it stays in the archive and is not transformed again unless requested. Its
    host received a request, so the pace counts."""
    finding = Finding(
        "quarantined", reason, "error", "transform", advice="`quadloom inspect` runs it under the same limits"
    )
    row = _row(visit, old, Outcome.FAILED, page.status, page.fetched_at, reason)
    row = msgspec.structs.replace(
        row, archive=archive, findings=(finding,), final_url=page.final_url, kind="quarantined"
    )
    return Settlement(visit, Outcome.FAILED, row, pace)


def _unchanged(visit: Visit, page: Page, pace: HostPace | None, old: PageRow | None) -> Settlement:
    if old is not None and old.fetched is not None:  # the version that waits is still the newest
        row = msgspec.structs.replace(old, fetched=FetchedVersion(page.fetched_at, old.fetched.archive))
        return Settlement(visit, Outcome.FETCHED, row, pace)
    row = _row(visit, old, Outcome.UNCHANGED, old.status if old else 304, page.fetched_at, "")
    row = msgspec.structs.replace(row, failures=0)
    behind = old is None or (old.quads_digest, old.text_digest) != (old.indexed_quads, old.indexed_text)
    if behind and not (old is not None and old.owed & Owed.INDEX):
        # A crash came before it was indexed, and the archive has no copy. Request it again, without validators.
        row = msgspec.structs.replace(row, etag="", last_modified="")
        return Settlement(visit, Outcome.UNCHANGED, row, pace, (), page.fetched_at)
    return Settlement(visit, Outcome.UNCHANGED, row, pace)


def _redirected(visit: Visit, page: Page, pace: HostPace | None, old: PageRow | None) -> Settlement:
    """If there was a page before, the row keeps that page's graph: the target has its own. After a temporary redirect
    (a login, a closed shop) the page stays in the indexes as it was last read."""
    target = resolve(page.header("location"), page.final_url)
    row = _row(visit, old, Outcome.UNCHANGED, page.status, page.fetched_at, f"redirects to {target or 'nowhere'}")
    if old is None or not old.changed_at:
        row = msgspec.structs.replace(row, kind="redirect", final_url=target or "")
    elif page.status in _MOVED_STATUS and target is not None:
        row = msgspec.structs.replace(
            row, kind="redirect", quads_digest=b"", text_digest=b"", quads=0, fetched=None, owed=Owed.NOTHING
        )
    if target is None:
        return Settlement(visit, Outcome.FAILED, row, pace)
    link = Link(target, visit.href, "redirect", visit.anchor)
    return Settlement(visit, Outcome.UNCHANGED, row, pace, (discovery(link, visit),))


def _ended(
    visit: Visit, outcome: Outcome, failure: Failure, pace: HostPace | None, old: PageRow | None, again_at: float | None
) -> Settlement:
    row = _row(visit, old, outcome, failure.status, failure.fetched_at, f"{failure.kind}: {failure.message}")
    failures = (old.failures if old else 0) + 1
    row = msgspec.structs.replace(
        row, failures=failures, findings=failure.findings[:_MAX_FINDINGS], visit_bytes=failure.body_bytes
    )
    return Settlement(visit, outcome, row, pace, (), again_at)


def _row(visit: Visit, old: PageRow | None, outcome: Outcome, status: int, fetched_at: float, reason: str) -> PageRow:
    if old is not None:
        return msgspec.structs.replace(
            old,
            outcome=outcome,
            status=status,
            fetched_at=fetched_at,
            visits=old.visits + 1,
            reason=reason,
            visit_bytes=None,
        )
    return PageRow(
        fingerprint=visit.fingerprint,
        key=visit.key,
        href=visit.href,
        host=visit.host,
        status=status,
        outcome=outcome,
        fetched_at=fetched_at,
        first_seen=fetched_at,
        visits=1,
        depth=visit.depth,
        via=visit.via,
        link_kind=visit.kind,
        reason=reason,
    )


def _retry_at(failure: Failure, failures: int, pace: HostPace | None, settings: Settings) -> float:
    if failure.retry_after is not None:
        return failure.fetched_at + failure.retry_after
    if pace is not None and pace.blocked_until > failure.fetched_at:
        return pace.blocked_until
    pause = min(settings.politeness.backoff * 2.0 ** (failures - 1), settings.politeness.max_backoff)
    return failure.fetched_at + failure.seconds + pause
