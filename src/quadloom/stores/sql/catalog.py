"""The catalog on a database: pages, their histories, counts and named values, in the frontier's database.

A page row is one msgpack record and the few columns that SQL must see. `indexed_quads` and `indexed_text` are columns
and not part of the record: only `mark_indexed` writes them, after the indexes have acknowledged, so that a settlement
cannot claim more than happened. A partial index holds exactly the pages that wait for the indexes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache

from msgspec.structs import replace

from quadloom.model.outcome import ArchiveRef, PageRow, Settlement
from quadloom.model.phase import Owed, waiting_states
from quadloom.stores.protocols.catalog import (
    FIRST_UNINDEXED,
    IndexedPage,
    NamedValueTable,
    PageSummary,
    PhaseBacklog,
    UnindexedPlace,
    VisitHistory,
    VisitKey,
    VisitRow,
)
from quadloom.stores.sql.catalog_rows import (
    RowFacts,
    count_names,
    newest_of,
    page_of,
    pages_of,
    record_of,
    repointed,
    visit_row,
    visits_of,
    waiting_counts,
    written,
)
from quadloom.stores.sql.row_checks import check_rows
from quadloom.stores.sql.statements import (
    EVERYTHING,
    BulkStatement,
    SqlCondition,
    SqlDatabase,
    delete,
    first,
    update,
    upsert,
)
from quadloom.stores.sql.stored_records import decode, encode

# Pages that wait for the indexes. The partial index serves only queries that repeat exactly this condition.
BEHIND = "(indexed_quads <> quads_digest OR indexed_text <> text_digest)"
_PAGE = "SELECT record, indexed_quads, indexed_text, owed FROM page"
PAGE_COLUMNS = "fingerprint host outcome kind status fetched_at quads_digest text_digest record owed"
_AMEND = update("page", "record", "fingerprint fetched_at")
_REPOINT = update("page", "record", "fingerprint")
_MARK = update(
    "page",
    "indexed_quads indexed_text",
    "fingerprint",
    {
        "owed": "CASE WHEN page.quads_digest = {indexed_quads} AND page.text_digest = {indexed_text} "
        f"THEN page.owed & ~{int(Owed.INDEX)} ELSE page.owed END"
    },
)
_WRITE_VISITS = upsert("visit", "fingerprint fetched_at record", "fingerprint fetched_at")
_FORGET = delete("visit", "fingerprint fetched_at")
_FORGET_PAGE = tuple(delete(table, "fingerprint") for table in ("page", "visit", "page_lease"))
_RELEASE = delete("page_lease", "fingerprint owner")


class SqlCatalog:
    """See `quadloom.stores.protocols.catalog.Catalog`."""

    write_pages = upsert("page", PAGE_COLUMNS, "fingerprint")
    write_counts = upsert("count", "name number", "name", {"number": "count.number + excluded.number"})

    def __init__(self, database: SqlDatabase, values: NamedValueTable, backlog: PhaseBacklog) -> None:
        self._database = database
        self.values = values
        self.backlog = backlog
        self.visits: VisitHistory = SqlVisits(database)

    @property
    def _own(self) -> SqlCondition:
        """Narrows a statement to the rows of `page` that this process amends and indexes."""
        return EVERYTHING

    def transaction(self) -> AbstractContextManager[None]:
        return self._database.transaction()

    def record(self, settlements: Sequence[Settlement], now: float) -> None:
        pages = pages_of(settlements)
        if not pages:
            return
        with self._database.transaction():
            self._write_pages(newest_of(pages), now)
            visits = {(page.fingerprint, page.fetched_at): encode(visit_row(page)) for page in visits_of(settlements)}
            self._database.write_many(_WRITE_VISITS, [(*key, record) for key, record in visits.items()])

    def _write_pages(self, pages: Sequence[PageRow], now: float) -> None:
        done = written(pages, self._facts([page.fingerprint for page in pages]), now)
        rows = sorted(
            (
                page.fingerprint,
                page.host,
                str(page.outcome),
                page.kind,
                page.status,
                page.fetched_at,
                page.quads_digest,
                page.text_digest,
                record_of(page),
                int(page.owed),
            )
            for page in done.pages
        )
        self._database.write_many(self.write_pages, self._page_rows(rows))
        self._database.write_many(self.write_counts, self._count_rows(sorted(done.changes.items())))

    def _page_rows(self, rows: Sequence[tuple[int, str, *tuple[object, ...]]]) -> Sequence[tuple[object, ...]]:
        """Rows of `write_pages`, from the values of `PAGE_COLUMNS`."""
        return rows

    def _count_rows(self, changes: list[tuple[str, int]]) -> Sequence[tuple[object, ...]]:
        """Rows of `write_counts`."""
        return changes

    def _facts(self, fingerprints: Sequence[int]) -> dict[int, RowFacts]:
        rows = self._database.among(
            "SELECT fingerprint, fetched_at, outcome, kind, status FROM page WHERE fingerprint {keys}", fingerprints
        )
        return {row[0]: RowFacts(*row[1:]) for row in rows}

    def page(self, fingerprint: int) -> PageRow | None:
        return self.pages([fingerprint]).get(fingerprint)

    def pages(self, fingerprints: Sequence[int], *, lock: bool = False) -> dict[int, PageRow]:
        # Locked in one order, so that two workers never wait for each other.
        locking = f" ORDER BY fingerprint{self._database.dialect.for_update}" if lock else ""
        rows = self._database.among(f"{_PAGE} WHERE fingerprint {{keys}}{locking}", fingerprints)
        return {page.fingerprint: page for page in (page_of(*row) for row in rows)}

    def summaries(self, fingerprints: Sequence[int]) -> dict[int, PageSummary]:
        rows = self._database.among("SELECT record FROM page WHERE fingerprint {keys}", fingerprints)
        return {row.fingerprint: row for row in (decode(record, PageSummary) for (record,) in rows)}

    def scan(self, *, after: int = -(1 << 63), limit: int = 1000, host: str = "") -> list[PageRow]:
        if host:
            return self._read("WHERE host = ? AND fingerprint > ? ORDER BY fingerprint LIMIT ?", (host, after, limit))
        return self._read("WHERE fingerprint > ? ORDER BY fingerprint LIMIT ?", (after, limit))

    def amend(self, pages: Sequence[PageRow]) -> None:
        rows = [(record_of(page), page.fingerprint, page.fetched_at) for page in pages]
        with self._database.transaction():
            self._database.write_many(_AMEND, rows, self._own)

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef], fingerprints: Sequence[int]) -> None:
        with self._database.transaction():
            pages = ((page, repointed(page, moved)) for page in self.pages(fingerprints).values())
            rows = [(record_of(after), after.fingerprint) for before, after in pages if after is not before]
            self._database.write_many(_REPOINT, rows)
            found = self._database.among("SELECT record FROM visit WHERE fingerprint {keys}", fingerprints)
            visits = [decode(record, VisitRow) for (record,) in found]
            self._database.write_many(
                _WRITE_VISITS,
                [
                    (visit.fingerprint, visit.fetched_at, encode(replace(visit, archive=moved[visit.archive])))
                    for visit in visits
                    if visit.archive is not None and visit.archive in moved
                ],
            )

    def forget(self, fingerprints: Sequence[int]) -> None:
        keys = sorted(set(fingerprints))
        with self._database.transaction():
            known = self._facts(keys).values()
            gone = Counter(name for facts in known for name in count_names(facts.outcome, facts.kind, facts.status))
            self._database.write_many(self.write_counts, self._count_rows(sorted((n, -c) for n, c in gone.items())))
            for statement in _FORGET_PAGE:
                self._database.write_many(statement, [(key,) for key in keys])

    def unindexed(self, limit: int, after: UnindexedPlace = FIRST_UNINDEXED) -> list[PageRow]:
        return self._read(
            f"WHERE {BEHIND} AND (fetched_at, fingerprint) > (?, ?){self._own.sql} "
            "ORDER BY fetched_at, fingerprint LIMIT ?",
            (*after, *self._own.values, limit),
        )

    def mark_indexed(self, pages: Sequence[IndexedPage]) -> None:
        newest = {page.fingerprint: page for page in pages}
        rows = sorted((page.fingerprint, page.quads_digest, page.text_digest) for page in newest.values())
        if rows:
            with self._database.transaction():
                self._database.write_many(_MARK, [(quads, text, key) for key, quads, text in rows], self._own)

    def fingerprints_of(self, kinds: Sequence[str]) -> list[int]:
        return [row[0] for row in self._database.among("SELECT fingerprint FROM page WHERE kind {keys}", kinds)]

    def hosts(self) -> list[str]:
        return [row[0] for row in self._database.execute("SELECT DISTINCT host FROM page")]

    def check(self) -> None:
        check_rows(self._database)

    def counts(self) -> dict[str, int]:
        rows = self._database.execute(
            "SELECT name, CAST(sum(number) AS bigint) FROM count GROUP BY name HAVING sum(number) <> 0 ORDER BY name"
        )
        return dict(rows)

    def _read(self, where: str, values: Sequence[object]) -> list[PageRow]:
        return [page_of(*row) for row in self._database.execute(f"{_PAGE} {where}", values)]


class SqlVisits:
    """See `quadloom.stores.protocols.catalog.VisitHistory`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    def of(self, fingerprint: int) -> list[VisitRow]:
        rows = self._database.execute(
            "SELECT record FROM visit WHERE fingerprint = ? ORDER BY fetched_at DESC", (fingerprint,)
        )
        return [decode(row[0], VisitRow) for row in rows]

    def forget(self, visits: Sequence[VisitKey]) -> None:
        with self._database.transaction():
            self._database.write_many(_FORGET, visits)


class SqlBacklog(ABC):
    """See `quadloom.stores.protocols.catalog.PhaseBacklog`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    def add(self, phase: Owed, *, host: str = "") -> int:
        # A page that waits to be transformed owes all later phases already.
        where = f"length(quads_digest) + length(text_digest) > 0 AND owed & {int(Owed.TRANSFORM)} = 0"
        narrowed, values = (" AND host = ?", (host,)) if host else ("", ())
        with self._whole_table():
            return self._database.change(f"UPDATE page SET owed = owed | {int(phase)} WHERE {where}{narrowed}", values)

    def remove(self, phase: Owed, visits: Sequence[VisitKey]) -> None:
        if visits:
            with self._database.transaction():
                self._database.write_many(_paid(int(phase)), sorted(visits))

    def counts(self) -> dict[Owed, int]:
        return waiting_counts(self._database.execute("SELECT owed, count(*) FROM page WHERE owed > 0 GROUP BY owed"))

    def lease(self, phase: Owed, limit: int, owner: str) -> list[PageRow]:
        """Processes look several times a second and mostly find nothing: without a transaction, then."""
        states = tuple(map(int, waiting_states(phase)))
        chosen = ", ".join(map(str, states))
        if first(self._database.execute(f"SELECT 1 FROM page WHERE owed > 0 AND owed IN ({chosen}) LIMIT 1")) is None:
            return []
        with self._database.transaction():
            keys = self._choose(states, limit, owner)
            rows = [page_of(*row) for row in self._database.among(f"{_PAGE} WHERE fingerprint {{keys}}", keys)]
        return sorted(rows, key=lambda page: (page.fetched_at, page.fingerprint))

    def release(self, owner: str, fingerprints: Sequence[int] | None = None) -> None:
        with self._database.transaction():
            if fingerprints is None:
                self._database.write("DELETE FROM page_lease WHERE owner = ?", (owner,))
            else:
                self._database.write_many(_RELEASE, [(key, owner) for key in fingerprints])

    def owners(self) -> list[str]:
        return [row[0] for row in self._database.execute("SELECT DISTINCT owner FROM page_lease")]

    def _whole_table(self) -> AbstractContextManager[None]:
        """A transaction that may take as long as it needs."""
        return self._database.transaction()

    @abstractmethod
    def _choose(self, states: Sequence[int], limit: int, owner: str) -> Sequence[int]:
        """Lease pages with one of these values in `owed`, the longest waiting first. Returns their fingerprints."""


@cache
def _paid(phase: int) -> BulkStatement:
    return update("page", "", "fingerprint fetched_at", {"owed": f"page.owed & ~{phase}"})


class SqlValues:
    """See `quadloom.stores.protocols.catalog.NamedValueTable`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    def get(self, name: str, *, lock: bool = False) -> bytes | None:
        locking = self._database.dialect.for_update if lock else ""
        row = first(self._database.execute(f"SELECT data FROM value WHERE name = ?{locking}", (self._stored(name),)))
        return row[0] if row else None

    def put(self, name: str, value: bytes | None) -> None:
        with self._database.transaction():
            if value is None:
                self._database.write("DELETE FROM value WHERE name = ?", (self._stored(name),))
            else:
                self._database.write(
                    "INSERT INTO value VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET data = excluded.data",
                    (self._stored(name), value),
                )

    def names(self, prefix: str) -> list[str]:
        rows = self._database.execute(
            "SELECT name FROM value WHERE name >= ? AND substr(name, 1, ?) = ? ORDER BY name",
            (prefix, len(prefix), prefix),
        )
        return [row[0] for row in rows]

    def _stored(self, name: str) -> str:
        """The name under which the value is in the table."""
        return name
