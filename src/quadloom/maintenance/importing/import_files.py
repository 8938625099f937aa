"""Pages from files instead of the web: transformed, archived, settled and indexed as in a crawl.

The write path is the crawl's own (`quadloom.crawling.ingest`), so an import can be killed and run again: what was
settled is replayed, what was not is read again, and reading a page twice changes nothing. An import visits no site;
links that the strategies choose and the scope allows are queued for the next crawl. A page whose transformation
crashes, hangs or uses too much memory is quarantined as in a crawl, and the rest is imported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from quadloom.crawling.ingest.intake import Ingest
from quadloom.crawling.ingest.link_queries import without_links
from quadloom.maintenance.importing.imported_pages import ImportedPage, read_files, suffix_of
from quadloom.maintenance.importing.lake_pages import is_lake, read_lake
from quadloom.maintenance.links import LinkRecorder
from quadloom.model.event import EventKind
from quadloom.model.finding import Finding
from quadloom.model.outcome import Outcome, Settlement
from quadloom.model.page_result import PageResult
from quadloom.model.url import canonical, fingerprint, host_of
from quadloom.model.visit import Visit
from quadloom.process.clock import unix_time
from quadloom.settings import Settings
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import Catalog

_MOST_FINDINGS = 100  # of one report


class ImportReport(msgspec.Struct, frozen=True):
    """The numbers of pages by outcome. `skipped`: bad records and files; `findings`: up to a hundred of them. `queued`:
    URLs that the next crawl will visit because of this import. `not_taken`: records of archives that hold no page, by
    their kind."""

    pages: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    quarantined: int = 0
    skipped: int = 0
    queued: int = 0
    findings: tuple[Finding, ...] = ()
    not_taken: dict[str, int] = {}

    @property
    def is_complete(self) -> bool:
        """Whether nothing worse happened than a last record that is cut."""
        return not any(finding.severity == "error" for finding in self.findings)


def import_files(
    stores: Stores,
    settings: Settings,
    paths: Sequence[Path],
    graph: str = "",
    progress: Callable[[int], None] = lambda _pages: None,
    notice: Callable[[EventKind, str], None] = lambda _kind, _text: None,
    *,
    links: bool = True,
) -> ImportReport:
    """Import all pages of these files. What cannot be read is skipped, passed to `notice` and in the report. `links`:
    queue those that the strategies choose and the scope allows. Raises `UsageError` for a suffix that is not known,
    before anything is read."""
    for path in paths:
        if not is_lake(path):
            suffix_of(path)
    skipped = 0
    findings: list[Finding] = []

    def skip(finding: Finding) -> None:
        nonlocal skipped
        skipped += 1
        if len(findings) < _MOST_FINDINGS:
            findings.append(finding)
        elif finding.severity == "error":
            findings[-1] = finding  # a report that shows no error must have had none
        notice("finding", f"{finding.severity}: {finding.message}")

    others: Counter[str] = Counter()
    lakes = [path for path in paths if is_lake(path)]
    files = [path for path in paths if path not in lakes]
    pages = read_files(files, settings.limits, default_graph=graph, now=unix_time(), report=skip, not_taken=others)
    every = chain(pages, *map(read_lake, lakes))
    report = import_pages(stores, settings if links else without_links(settings), every, progress, notice)
    return msgspec.structs.replace(report, skipped=skipped, findings=tuple(findings), not_taken=dict(others))


def import_pages(
    stores: Stores,
    settings: Settings,
    pages: Iterable[ImportedPage],
    progress: Callable[[int], None] = lambda _pages: None,
    notice: Callable[[EventKind, str], None] = lambda _kind, _text: None,
    clock: Callable[[], float] = unix_time,
) -> ImportReport:
    """Read all pages into the warehouse; durable and searchable on return. `notice` is called for quarantined
    pages."""
    counts: Counter[Outcome] = Counter()

    def count(settlements: list[Settlement]) -> None:
        if settlements:
            counts.update(settlement.outcome for settlement in settlements)
            progress(counts.total())

    before = stores.frontier.stats(clock()).queued
    recorder = LinkRecorder(stores.places.links)
    ingest = Ingest(stores, settings, hooks=[recorder], links_of=recorder.append, notice=notice, clock=clock)
    try:
        ingest.replay()
        for item in pages:
            count(ingest.wait_for(fingerprint(canonical(item.page.url))))
            visit = _visit(stores.catalog, item)
            if item.source:
                ingest.indexing.jobs.add_source(visit.via, item.source)
            count(ingest.feed(visit, item.page, amend=_amend(item)))
        count(ingest.drain())
    finally:
        ingest.close()
        recorder.close()
    return ImportReport(
        pages=counts.total(),
        new=counts[Outcome.NEW],
        changed=counts[Outcome.CHANGED],
        unchanged=counts[Outcome.UNCHANGED],
        quarantined=counts[Outcome.FAILED],
        queued=max(0, stores.frontier.stats(clock()).queued - before),
    )


def _visit(catalog: Catalog, item: ImportedPage) -> Visit:
    key = canonical(item.page.url)
    number = fingerprint(key)
    known = catalog.page(number)
    via = fingerprint(canonical(item.source)) if item.source else known.via if known else 0
    return Visit(
        item.page.url,
        key,
        host_of(item.page.url),
        number,
        known.depth if known else 0,
        kind="other",
        known=known is not None,
        via=via,
    )


def _amend(item: ImportedPage) -> Callable[[PageResult], PageResult] | None:
    """Use what a dump says about the page. Its digest was computed from the values as the site wrote them (`01.0` for
    `1`), so a later visit that finds the same page recognizes it as unchanged."""
    if not item.kind:
        return None

    def amend(result: PageResult) -> PageResult:
        quads = msgspec.structs.replace(result.quads, digest=item.digest) if item.digest else result.quads
        facts = msgspec.structs.replace(result.facts, kind=item.kind, title=item.title, language=item.language)
        return msgspec.structs.replace(result, facts=facts, quads=quads)

    return amend
