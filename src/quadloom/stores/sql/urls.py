"""The frontier's URLs on a database. Their key is (host, fingerprint): links stay mostly within a host, so a page's new
links fall on few leaves of the tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from quadloom.model.link import Discovery
from quadloom.model.outcome import READ_OUTCOMES, Settlement
from quadloom.stores.frontier.policy import UrlPast, UrlState
from quadloom.stores.frontier.rows import URL_COLUMNS, FoundUrl, ScopedUrl, SettledRow, UrlRank, UrlRow, qualified
from quadloom.stores.protocols.frontier import Place
from quadloom.stores.sql.statements import EVERYTHING, Row, SqlCondition, SqlDatabase, delete, first, insert, update

_QUEUED = int(UrlState.QUEUED)
_SCOPED = ", ".join(str(int(state)) for state in (UrlState.QUEUED, UrlState.WAITING, UrlState.OUT_OF_SCOPE))
_SCANNED = 5000  # URLs in a chunk
_INSERT_URLS = insert("url", "host_id fingerprint href key state priority depth score kind via anchor")
_UPDATE_URLS = update("url", "state priority depth due", "host_id fingerprint")
_UPDATE_SCORES = update("url", "score", "host_id fingerprint")
_SETTLE_URLS = update(
    "url",
    "state priority due attempt visits outcome token etag last_modified",
    "host_id fingerprint",
    {"etag": "coalesce({etag}, url.etag)", "last_modified": "coalesce({last_modified}, url.last_modified)"},
)
_REMOVE_URLS = delete("url", "host_id fingerprint")
_CLEAR_ANCHORS = update("url", "anchor", "host_id fingerprint")
_COUNT_ATTEMPTS = update("url", "", "host_id fingerprint state", {"attempt": "url.attempt + 1"})


class SqlUrls(ABC):
    """The table `url`: all that is known about every URL ever found.

    Guarantees: every statement joins an enclosing transaction. Nothing here touches the queue: a caller that writes
    another state, priority, depth, score or due time also writes the move (`UrlBatch`), in the same transaction.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    def urls(self, pairs: Sequence[tuple[int, int]]) -> dict[int, UrlRow]:
        """Rows of those (host id, fingerprint) that are known."""
        return {row[1]: UrlRow(*row) for row in self._look_up(pairs, URL_COLUMNS)}

    def ranks(self, pairs: Sequence[tuple[int, int]]) -> dict[int, UrlRank]:
        """The same, without what most links that were found again do not need: they change nothing."""
        return {row[0]: UrlRank(*row[1:]) for row in self._look_up(pairs, "fingerprint, priority, depth")}

    def insert(self, found: Sequence[tuple[UrlRow, Discovery]]) -> None:
        self._database.write_many(
            _INSERT_URLS,
            (  # not a list: a sitemap has 50,000
                (
                    row[0],
                    row[1],
                    d.href,
                    None if d.key == d.href else d.key,
                    row[2],
                    row[3],
                    row[4],
                    row[5],
                    d.kind,
                    d.via,
                    d.anchor,
                )
                for row, d in found
            ),
        )

    def update(self, rows: Iterable[UrlRow]) -> None:
        changed = [(r.state, r.priority, r.depth, r.due, r.host_id, r.fingerprint) for r in rows]
        self._database.write_many(_UPDATE_URLS, changed)

    def update_scores(self, rows: Sequence[UrlRow]) -> None:
        self._database.write_many(_UPDATE_SCORES, [(row.score, row.host_id, row.fingerprint) for row in rows])

    def update_settled(self, rows: Iterable[SettledRow]) -> None:
        """As `update`, with outcome and validators of the visit. Only a page that was read changes its validators."""
        changed = [
            (
                r.state,
                r.priority,
                r.due,
                r.attempt,
                r.visits,
                str(s.outcome),
                r.token,
                *_validators(s),
                r.host_id,
                r.fingerprint,
            )
            for r, s in rows
        ]
        self._database.write_many(_SETTLE_URLS, changed)

    def count_attempts(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Count one attempt more for those (host id, fingerprint) that are queued."""
        self._database.write_many(_COUNT_ATTEMPTS, [(*pair, _QUEUED) for pair in pairs])

    def unread(self, after: Place, limit: int) -> list[UrlRow]:
        """URLs queued for a first read, in the order of the key."""
        own = self._own()
        rows = self._database.execute(
            f"SELECT {URL_COLUMNS} FROM url u WHERE (host_id, fingerprint) > (?, ?) AND visits = 0 "
            f"AND state = {_QUEUED}{own.sql} ORDER BY host_id, fingerprint LIMIT ?",
            (*after, *own.values, limit),
        )
        return [UrlRow(*row) for row in rows]

    def scan_scoped(self) -> Iterator[list[ScopedUrl]]:
        """All URLs that a scope decides about, in chunks that fit into memory."""
        names = qualified("u", URL_COLUMNS)
        place = (-1, 0)
        while True:
            own = self._own()
            rows = list(
                self._database.execute(
                    f"SELECT {names}, u.href, h.name FROM url u JOIN host h ON h.id = u.host_id "
                    f"WHERE (u.host_id, u.fingerprint) > (?, ?) AND u.state IN ({_SCOPED}){own.sql} "
                    f"ORDER BY u.host_id, u.fingerprint LIMIT {_SCANNED}",
                    (*place, *own.values),
                )
            )
            if not rows:
                return
            yield [ScopedUrl(UrlRow(*columns), href, host) for *columns, href, host in rows]
            place = (rows[-1][0], rows[-1][1])

    def scan(self) -> Iterator[list[FoundUrl]]:
        """All URLs with the links by which they were found, in chunks that fit into memory."""
        place = (-(1 << 63), 0)
        while True:
            rows = list(
                self._database.execute(
                    f"SELECT {URL_COLUMNS}, href, coalesce(key, href), via, anchor FROM url "
                    f"WHERE (host_id, fingerprint) > (?, ?) ORDER BY host_id, fingerprint LIMIT {_SCANNED}",
                    place,
                )
            )
            if not rows:
                return
            yield [FoundUrl(UrlRow(*row[:-4]), *row[-4:]) for row in rows]
            place = (rows[-1][0], rows[-1][1])

    def remove(self, rows: Iterable[UrlRow]) -> None:
        self._database.write_many(_REMOVE_URLS, [row[:2] for row in rows])

    def clear_anchors(self, rows: Iterable[UrlRow]) -> None:
        self._database.write_many(_CLEAR_ANCHORS, [("", *row[:2]) for row in rows])

    def past(self, row: UrlRow) -> UrlPast:
        statement = "SELECT outcome, kind, via FROM url WHERE host_id = ? AND fingerprint = ?"
        found = first(self._database.execute(statement, (row.host_id, row.fingerprint)))
        assert found is not None, "the row comes from this table"
        return UrlPast(*found)

    def _own(self) -> SqlCondition:
        """Narrows a query over `url u` to the hosts of this process."""
        return EVERYTHING

    @abstractmethod
    def _look_up(self, pairs: Sequence[tuple[int, int]], columns: str) -> Iterable[Row]:
        """Columns of the URLs with these (host id, fingerprint) that are known."""

    @abstractmethod
    def note_leased(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Store (host id, fingerprint) of all visits in progress, for the attempt count after a crash."""


def _validators(settlement: Settlement) -> tuple[str | None, str | None]:
    """ETag and Last-Modified of a page that was read; None = as before."""
    page = settlement.page
    if page is None or settlement.outcome not in READ_OUTCOMES:
        return None, None
    return page.etag, page.last_modified
