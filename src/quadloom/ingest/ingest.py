"""The write order, the heart of crash safety.

1. archive records of a batch are appended and fsynced,
2. ONE transaction settles frontier and catalog: pages, hosts, links, queue, archive offsets,
3. quads and text follow in the indexer; their digests are marked in a later transaction of kind 2.

A crash after 1 leaves an archive record nobody points to; after 2, a page that is replayed from the archive;
in 3, the same. Nothing that was acknowledged (2) depends on anything that is not on disk yet.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

import msgspec

from quadloom.asking.statistics import STATISTICS
from quadloom.fetching.fetcher import RobotsUpdate
from quadloom.fetching.politeness import cost_of
from quadloom.ingest.describe import REPROCESSED_AT, SourceUrls, description
from quadloom.ingest.failpoints import Failpoints
from quadloom.ingest.indexer import IndexAcks, Indexer, IndexJob
from quadloom.ingest.pending import PendingIndex
from quadloom.ingest.settle import settle_failure, settle_page, settle_quarantine, settle_status
from quadloom.ingest.traps import TRAPS, TrapFilter
from quadloom.model.link import Discovery
from quadloom.model.notice import Notice
from quadloom.model.outcome import ArchiveRef, HostPace, Outcome, PageRow, Settlement
from quadloom.model.page import Failure, Page
from quadloom.model.quads import Quads
from quadloom.model.url import site_of
from quadloom.model.visit import Visit
from quadloom.phases.seeds import sitemap_discoveries
from quadloom.pipeline import PageResult
from quadloom.refresh.scheduler import RefreshScheduler
from quadloom.settings import Settings
from quadloom.stores.archive.warc_record import encode as encode_record
from quadloom.stores.frontier.policy import SUCCESSES
from quadloom.stores.protocols.archive import Archive, ArchiveRecord
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier, HostRow
from quadloom.stores.retry import retry_when_unavailable
from quadloom.subscriptions.notify import ChangeNotifier
from quadloom.subscriptions.websub import HubSubscriptions

_TEXTS = 100_000  # texts remembered to tell duplicates


class FinishedVisit(msgspec.Struct, frozen=True):
    """A visit that has come back. `woven` is None where there was nothing to transform, or in quarantine (`reason`)."""

    visit: Visit
    result: Page | Failure
    pace: HostPace | None
    woven: PageResult | None = None
    record: ArchiveRecord | None = None
    reason: str = ""


class VisitWriter:
    """Writes batches of `FinishedVisit` visits in the order above."""

    def __init__(
        self,
        frontier: Frontier,
        catalog: Catalog,
        archive: Archive,
        indexer: Indexer,
        settings: Settings,
        failpoints: Failpoints,
        admission: TrapFilter,
        refreshing: RefreshScheduler | None = None,
        notifying: ChangeNotifier | None = None,
        hubs: HubSubscriptions | None = None,
    ) -> None:
        self._admission = admission
        self._texts: OrderedDict[tuple[str, bytes], int] = OrderedDict()
        self._frontier = frontier
        self._catalog = catalog
        self._archive = archive
        self._indexer = indexer
        self._settings = settings
        self._failpoints = failpoints
        self._refreshing = refreshing
        self._notifying = notifying
        self._hubs = hubs
        self.sources = SourceUrls(catalog)
        self._marks: list[tuple[int, bytes, bytes]] = []
        self._statistics = b""
        self._woven_again_at = float(catalog.get(REPROCESSED_AT) or 0)
        self._found: list[Discovery] = []
        self.unmarked = PendingIndex()
        self._learned: list[RobotsUpdate] = []

    def learn(self, learned: RobotsUpdate) -> None:
        """A host's robots.txt and sitemaps, written with the next batch."""
        self._learned.append(learned)

    def index(self, entries: Sequence[IndexJob], now: float) -> None:
        """Have pages indexed that somebody else settled; their transform may have been another one than ours."""
        self._woven_again_at = now
        self._pass_on(list(entries))

    def drop_learned(self, unwanted: Callable[[str], bool]) -> None:
        """Hosts that are another worker's by now: what was learned of them is theirs to learn."""
        self._learned = [item for item in self._learned if not unwanted(item.host)]

    def _pass_on(self, entries: list[IndexJob]) -> None:
        self.unmarked.put(entries)
        self._indexer.put(entries)

    @property
    def has_news(self) -> bool:
        """Marks or links of the indexer wait to be written."""
        return bool(self._marks or self._found)

    def acknowledge(self, marks: IndexAcks) -> None:
        self._marks.extend(marks.marks)
        self._statistics = marks.statistics
        self._found.extend(marks.discoveries)

    def write(self, batch: Sequence[FinishedVisit], now: float) -> list[Settlement]:
        """Make a batch durable; returns what was settled, in order."""
        if not batch and not self._marks and not self._learned:
            return []
        known = self._catalog.pages(
            [ready.visit.fingerprint for ready in batch if ready.visit.known or ready.visit.attempt > 1]
        )
        refs = self._archived(batch)
        self._failpoints.reach("after-archive")
        settlements = [
            self._settled(ready, known.get(ready.visit.fingerprint), ref)
            for ready, ref in zip(batch, refs, strict=True)
        ]
        settlements, notices = self._planned(batch, settlements, known, now)
        marks, learned = list(self._marks), list(self._learned)
        found = self._judged(self._admission.admit(self._found))
        retry_when_unavailable(lambda: self._settle(batch, settlements, notices, marks, found, learned, now))
        del self._marks[: len(marks)], self._learned[: len(learned)]
        self._found = []
        self._admission.changed = False
        self.unmarked.marked(marks)
        if self._refreshing is not None:
            self._refreshing.committed()
        if marks:
            self._failpoints.reach("after-marks")
        self._failpoints.reach("after-catalog")
        entries = [
            entry
            for ready, settlement in zip(batch, settlements, strict=True)
            if (entry := self._entry(ready, settlement, known.get(ready.visit.fingerprint))) is not None
        ]
        if entries:
            self._pass_on(entries)
        self.describe([s.page for s in settlements if s.page is not None and s.outcome is Outcome.UNCHANGED])
        return settlements

    def _settle(
        self,
        batch: Sequence[FinishedVisit],
        settlements: Sequence[Settlement],
        notices: Sequence[Notice],
        marks: Sequence[tuple[int, bytes, bytes]],
        found: Sequence[Discovery],
        learned: Sequence[RobotsUpdate],
        now: float,
    ) -> None:
        """The one transaction. Changes nothing in memory that a second try would miss."""
        with self._catalog.transaction():
            self._frontier.settle(settlements, now)
            self._catalog.record(settlements, now)
            self._catalog.mark_indexed(marks)
            if found:
                self._frontier.add(found, now)
            if marks and self._statistics:
                self._catalog.put(STATISTICS, self._statistics)
            self._write_learned(learned, now)
            if self._refreshing is not None:
                self._refreshing.write(self._frontier, now)
            if self._notifying is not None:
                self._notifying.write(notices)
            if self._hubs is not None:
                self._hubs.settle(zip(settlements, (ready.woven for ready in batch), strict=True), now)
            if self._admission.changed:
                self._catalog.put(TRAPS, self._admission.report())

    def _planned(
        self, batch: Sequence[FinishedVisit], settlements: list[Settlement], known: Mapping[int, PageRow], now: float
    ) -> tuple[list[Settlement], list[Notice]]:
        """Next visits and notices. An import has neither: nobody visited anything."""
        if self._refreshing is not None:
            settlements = self._refreshing.plan(settlements, known, now)
        if self._notifying is None:
            return settlements, []
        return settlements, self._notifying.notices(settlements, lambda i: _statements(batch[i]), known, now)

    def _judged(self, found: tuple[Discovery, ...]) -> tuple[Discovery, ...]:
        """Links of the user's own strategies come after their pages were settled, so they are judged apart."""
        return found if self._refreshing is None else self._refreshing.suspecting.judged(found, from_data=False)

    def _write_learned(self, learned: Sequence[RobotsUpdate], now: float) -> None:
        for item in learned:
            row = self._frontier.host(item.host) or HostRow(host=item.host, site=site_of(item.host))
            self._frontier.put_host(
                msgspec.structs.replace(
                    row, robots=item.robots, robots_expires=item.expires, crawl_delay=item.crawl_delay
                )
            )
        sitemaps = [url for item in learned for url in item.sitemaps] if self._settings.crawl.sitemaps else []
        if sitemaps:
            self._frontier.add(sitemap_discoveries(sitemaps), now)

    def _archived(self, batch: Sequence[FinishedVisit]) -> list[ArchiveRef | None]:
        records = [self._record(ready) for ready in batch]
        written = [record for record in records if record is not None]
        if not self._settings.index.only_data:
            written += [encode_record(item.response) for item in self._learned if item.response is not None]
        refs = iter(self._archive.put(written) if written else [])
        if written:
            self._archive.sync()
        return [next(refs) if record is not None else None for record in records]

    def _record(self, ready: FinishedVisit) -> ArchiveRecord | None:
        """Workers have already packed what they transformed; other responses are small and packed here."""
        if ready.record is not None or ready.woven is not None:
            return ready.record
        if self._settings.index.only_data or isinstance(ready.result, Failure) or ready.result.status == 304:
            return None
        return encode_record(ready.result)

    def _settled(self, ready: FinishedVisit, old: PageRow | None, ref: ArchiveRef | None) -> Settlement:
        if isinstance(ready.result, Failure):
            return settle_failure(ready.visit, ready.result, ready.pace, old, self._settings)
        if ready.woven is not None:
            woven = msgspec.structs.replace(ready.woven, discoveries=self._admission.admit(ready.woven.discoveries))
            return settle_page(ready.visit, ready.result, woven, self._priced(ready), old, ref)
        if ready.reason:
            return settle_quarantine(ready.visit, ready.result, ready.reason, ready.pace, old, ref)
        settlement = settle_status(ready.visit, ready.result, ready.pace, old, self._settings)
        if settlement is None:
            raise AssertionError("a page with content came back without being transformed")
        return settlement

    def _priced(self, ready: FinishedVisit) -> HostPace | None:
        """A page whose text another page of its host has costs the host's budget more: traps starve themselves."""
        if ready.woven is None or ready.pace is None or not ready.woven.text_digest:
            return ready.pace
        key = (ready.visit.host, ready.woven.text_digest)
        first = self._texts.setdefault(key, ready.visit.fingerprint)
        if len(self._texts) > _TEXTS:
            self._texts.popitem(last=False)
        if first == ready.visit.fingerprint:
            return ready.pace
        return msgspec.structs.replace(ready.pace, cost=cost_of(ready.result, duplicate=True))

    def _entry(self, ready: FinishedVisit, settlement: Settlement, old: PageRow | None) -> IndexJob | None:
        """What the indexer has to do: nothing for an unchanged page whose last version is indexed. While an earlier
        version is on its way there, what the catalog has marked will not be what the indexes hold."""
        row = settlement.page
        if row is None or ready.woven is None:
            return self._removal(settlement, old)
        overtaken = row.fingerprint in self.unmarked
        quads = overtaken or row.quads_digest != row.indexed_quads
        text = overtaken or row.text_digest != row.indexed_text
        if not quads and not text:
            return None
        fresh = old is None and not ready.visit.known and ready.visit.attempt <= 1
        about = self._about(row, ready.result.status)
        woven = ready.woven
        return IndexJob(
            row.fingerprint, woven.quads, woven.text, row.text_digest, fresh, quads, text, about, woven.link_quads,
            row.depth, b"" if overtaken else self._known_lines(old, woven.quads.graph), row.host,
        )  # fmt: skip

    def _about(self, row: PageRow, status: int) -> bytes:
        return description(row, status, self.sources.href(row.via), schedule=self._settings.index.schedule)

    def describe(self, rows: Sequence[PageRow]) -> None:
        """Pages that stay as they are, but stand elsewhere or are read at another time than the indexes say."""
        if self._settings.index.schedule:
            known = [
                row
                for row in rows
                if row.outcome in SUCCESSES and row.status < 300 and (row.quads_digest or row.text_digest)
            ]  # what is elsewhere for now is described as it was
            self._indexer.describe([(row.final_url or row.href, self._about(row, row.status)) for row in known])

    def _known_lines(self, old: PageRow | None, graph: str) -> bytes:
        """What this graph holds, where that is sure: the last version had statements and is indexed, under this name,
        and by a visit; the transform of a replay or rebuild may have been another one."""
        if old is None or not old.quads_digest or old.quads_digest != old.indexed_quads:
            return b""
        return old.lines if old.final_url == graph and old.fetched_at > self._woven_again_at else b""

    def _removal(self, settlement: Settlement, old: PageRow | None) -> IndexJob | None:
        """A page that has died leaves the indexes; its history stays in the archive."""
        row = settlement.page
        if (
            row is None
            or old is None
            or row.quads_digest
            or row.text_digest
            or not (old.indexed_quads or old.indexed_text or row.fingerprint in self.unmarked)
        ):
            return None
        gone = Quads.of(old.final_url or old.href, b"")
        return IndexJob(row.fingerprint, gone, None, b"", fresh=False, host=row.host)


def _statements(ready: FinishedVisit) -> bytes:
    return ready.woven.quads.nquads if ready.woven is not None else b""
