"""Notices for subscribers, written with the change that caused them.

A visit that found something new or changed is settled in one transaction, and its notices are rows of that transaction.
So each change has its notice exactly once, whenever the process is killed: before the commit neither exists, after it
both do. Delivery from the outbox comes later, at least once, and with the notice's id.

`difference` computes what a notice reports from the two archived versions of the page. It depends on nothing else, so a
repeated delivery has the same content, and the cost arises only when a notice is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from quadloom.asking.changes import versions
from quadloom.asking.changes.versions import VersionGraph, VersionReader
from quadloom.crawling.subscriptions.registry import read_subscriptions
from quadloom.documents.syntaxes.terms import TYPE, iri
from quadloom.errors import ArchiveDamaged
from quadloom.model.event import Notice, NoticeKind
from quadloom.model.outcome import READ_OUTCOMES, ArchiveRef, Outcome, PageRow, Settlement
from quadloom.model.quads import Quads
from quadloom.model.subscription import Interests
from quadloom.planning.policy.page_row import gone_visits
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.outbox import Outbox
from quadloom.stores.protocols.quads import Difference, QuadStore
from quadloom.stores.protocols.settlement import SettleBatch

_TYPES = 10_000  # type statements of one page that are read
_KINDS: dict[Outcome, NoticeKind] = {Outcome.NEW: "new", Outcome.CHANGED: "changed"}


class ChangeNotifier:
    """A `SettleHook`, owned by the crawl's own thread."""

    def __init__(self, catalog: Catalog, outbox: Outbox, quads: QuadStore) -> None:
        self._catalog = catalog
        self._outbox = outbox
        self._quads = quads
        self._prepared: list[Notice] = []
        self.interests = Interests(read_subscriptions(catalog))

    def prepare(self, batch: SettleBatch) -> None:
        visits = batch.visits
        self._prepared = self.notices(
            batch.settlements,
            lambda i: result.quads.nquads if (result := visits[i].result) is not None else b"",
            batch.known,
            batch.now,
        )

    def write(self, now: float) -> None:
        if self._prepared:
            self._outbox.append(self._prepared)

    def committed(self) -> None:
        self._prepared = []

    def reload(self) -> None:
        """Subscriptions were added or removed."""
        self.interests = Interests(read_subscriptions(self._catalog))

    def reload_if_changed(self) -> None:
        """Another machine may have added or removed some."""
        now = read_subscriptions(self._catalog)
        if now != list(self.interests.subscriptions):
            self.interests = Interests(now)

    def notices(
        self,
        settlements: Sequence[Settlement],
        statements: Callable[[int], bytes],
        known: Mapping[int, PageRow],
        now: float,
    ) -> list[Notice]:
        """The notices that a batch causes. `statements(i)`: N-Quads of the i-th settlement's page."""
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
                    url=row.graph,
                    title=row.title,
                    before=old.archive if old is not None and kind != "back" else None,
                    after=row.archive if kind != "gone" else None,
                )
        return list(found.values())

    def _types_before(self, old: PageRow | None) -> bytes:
        """Type statements of the last version, from its graph: a subscriber to events must also get a notice when the
        last event leaves a page. If the last version is not indexed yet, the graph is that of an older one."""
        if not self.interests.has_types or old is None or not old.quads_digest:
            return b""
        graph = iri(old.graph)
        lines = self._quads.match(None, TYPE, None, graph, limit=_TYPES) if graph is not None else ()
        return "\n".join(lines).encode("utf-8", "replace")


def _kind(settlement: Settlement, old: PageRow | None) -> NoticeKind | None:
    """`gone`: the server says so for the first time, or the page has left the indexes because it moved permanently.
    `back`: it exists again."""
    row = settlement.page
    if old is not None and (old.outcome is Outcome.GONE or gone_visits(old)):
        return "back" if settlement.outcome in READ_OUTCOMES and old.changed_at else None
    if settlement.outcome in _KINDS:
        return _KINDS[settlement.outcome]
    if row is None or old is None or not (old.quads_digest or old.text_digest):
        return None
    has_left = not (row.quads_digest or row.text_digest)
    return "gone" if has_left or settlement.outcome is Outcome.GONE else None


def difference(notice: Notice, reader: VersionReader) -> Difference:
    """Statements added and removed between the two versions, as sorted N-Quads lines, or the rows of a query.
    Empty if a version can no longer be transformed."""
    if notice.kind == "result":
        return Difference(notice.added, notice.removed)
    if notice.kind == "changed" and (notice.before is None or notice.after is None):
        return Difference()  # one version was not archived, as its site demands, so its content is unknown
    before, after = (_version(ref, reader) for ref in (notice.before, notice.after))
    return versions.difference(before, after)


def _version(ref: ArchiveRef | None, reader: VersionReader) -> VersionGraph:
    nothing = VersionGraph(Quads.of("", b""))
    try:
        return reader.graph(ref) if ref is not None else nothing
    except ArchiveDamaged:
        return nothing
