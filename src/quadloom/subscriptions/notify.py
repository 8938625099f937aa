"""Notices for subscribers, written with the change that caused them.

A visit that found something new or changed is settled in one transaction, and its notices are rows of that transaction.
So a change has its notice exactly once, whenever the process is killed: before the commit there is neither, after it
there are both. Delivery comes later, from the outbox, at least once and with the notice's id.

`difference` works out what a notice is about from the two archived versions of the page. It is a pure function of them,
so a repeated delivery says the same, and nobody pays for it but those who read notices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from quadloom.errors import ArchiveDamaged
from quadloom.model.notice import Notice, NoticeKind
from quadloom.model.outcome import ArchiveRef, Outcome, PageRow, Settlement
from quadloom.model.page import Page
from quadloom.model.subscription import Interests
from quadloom.model.url import host_of
from quadloom.model.visit import Visit
from quadloom.phases.loaders import document_loader
from quadloom.pipeline import process_page
from quadloom.settings import Settings
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.outbox import Outbox
from quadloom.stores.protocols.quads import Difference, QuadStore
from quadloom.stores.quads.nquads import lines_of
from quadloom.subscriptions.registry import read_subscriptions
from quadloom.syntaxes.terms import iri

_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_TYPES = 10_000  # statements about types of one page that are looked at
_KINDS: dict[Outcome, NoticeKind] = {Outcome.NEW: "new", Outcome.CHANGED: "changed"}


class ChangeNotifier:
    """Owned by the crawl's own thread."""

    def __init__(self, catalog: Catalog, outbox: Outbox | None, quads: QuadStore | None = None) -> None:
        self._catalog = catalog
        self._outbox = outbox
        self._quads = quads
        self.interests = Interests(read_subscriptions(catalog))

    def reload(self) -> None:
        """Subscriptions were added or removed."""
        self.interests = Interests(read_subscriptions(self._catalog))

    def notices(
        self,
        settlements: Sequence[Settlement],
        statements: Callable[[int], bytes],
        known: Mapping[int, PageRow],
        now: float,
    ) -> list[Notice]:
        """What subscribers must hear of a batch. `statements(i)`: N-Quads of the i-th settlement's page."""
        if not self.interests:
            return []
        found: dict[tuple[int, str], Notice] = {}  # a page settled twice in one batch changed once
        for index, settlement in enumerate(settlements):
            row, old = settlement.page, known.get(settlement.visit.fingerprint)
            kind = _kind(settlement, old)
            if row is None or kind is None:
                continue
            for id in self.interests.of(row.key, row.host, statements(index) + self._types_before(old)):
                found[row.fingerprint, id] = Notice(
                    at=now,
                    subscription=id,
                    kind=kind,
                    url=row.final_url or row.href,
                    title=row.title,
                    before=old.archive if old is not None else None,
                    after=row.archive if kind != "gone" else None,
                )
        return list(found.values())

    def _types_before(self, old: PageRow | None) -> bytes:
        """Classes that the last version named, from its graph: who waits for events must hear of the last one leaving a
        page, too. A version that the indexes have not reached yet counts by what they hold."""
        if not self.interests.has_types or self._quads is None or old is None or not old.quads_digest:
            return b""
        graph = iri(old.final_url or old.href)
        lines = self._quads.match(None, _TYPE, None, graph, limit=_TYPES) if graph is not None else ()
        return "\n".join(lines).encode("utf-8", "replace")

    def write(self, notices: Sequence[Notice]) -> None:
        """Inside the transaction that settles the batch."""
        if notices and self._outbox is not None:
            self._outbox.append(notices)


def _kind(settlement: Settlement, old: PageRow | None) -> NoticeKind | None:
    """Gone is what has left the indexes: dead, or moved for good."""
    if settlement.outcome in _KINDS:
        return _KINDS[settlement.outcome]
    row = settlement.page
    was_there = old is not None and bool(old.quads_digest or old.text_digest)
    is_there = row is None or bool(row.quads_digest or row.text_digest)
    return "gone" if was_there and not is_there else None


def difference(notice: Notice, archive: Archive, settings: Settings) -> Difference:
    """Statements that came and went between the two versions, as sorted N-Quads lines; a query's rows as they are."""
    if notice.kind == "result":
        return Difference(notice.added, notice.removed)
    if notice.kind == "changed" and (notice.before is None or notice.after is None):
        return Difference()  # a version that its site does not want archived: nobody can tell what it said
    before, after = (_statements(ref, archive, settings) for ref in (notice.before, notice.after))
    return Difference(tuple(sorted(after - before)), tuple(sorted(before - after)))


def _statements(ref: ArchiveRef | None, archive: Archive, settings: Settings) -> set[str]:
    if ref is None:
        return set()
    try:
        page = archive.get(ref)
    except ArchiveDamaged:
        return set()
    if not isinstance(page, Page):
        return set()
    visit = Visit(page.url, page.url, host_of(page.url), 0)
    result = process_page(page, visit, settings, (), document_loader(settings))
    return set(lines_of(result.quads.nquads))
