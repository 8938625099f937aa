"""What can still be read from a damaged `quadloom.db`, for `quadloom recover`.

SQLite reads every page of a file that is whole, and raises an error when it meets one that is not. So each table is
read from its beginning up to the damage and from its end back to it; what lies between two damaged pages is lost.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from quadloom.errors import StoreError
from quadloom.model.link import Discovery, LinkKind
from quadloom.model.outcome import PageRow
from quadloom.model.url import canonical, fingerprint, host_of
from quadloom.stores.sql.row_checks import check_rows
from quadloom.stores.sql.stored_records import decode

_Row = tuple[str | bytes | int | float | None, ...]


class DamagedDatabase:
    """See `quadloom.stores.protocols.state.DamagedState`."""

    def __init__(self, file: Path) -> None:
        self._connection: sqlite3.Connection | None = None
        if file.exists():
            with contextlib.suppress(sqlite3.Error):
                self._connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)

    def is_whole(self) -> bool:
        if self._first("PRAGMA integrity_check(1)") != ("ok",) or self._first("SELECT 1 FROM page LIMIT 1") != (1,):
            return False
        assert self._connection is not None
        try:
            check_rows(self._connection)
        except (sqlite3.Error, StoreError, TypeError):
            return False
        return True

    def values(self) -> Iterator[tuple[str, bytes]]:
        for name, data in self._rows("SELECT name, data FROM value", "name"):
            if isinstance(name, str) and isinstance(data, bytes):
                yield name, data

    def page(self, number: int) -> PageRow | None:
        found = self._first("SELECT record FROM page WHERE fingerprint=?", (number,))
        if found is None or not isinstance(found[0], bytes):
            return None
        with contextlib.suppress(StoreError):
            return decode(found[0], PageRow)
        return None

    def unread(self) -> Iterator[Discovery]:
        statement = "SELECT href, depth, kind, priority, via, anchor, score FROM url WHERE visits=0"
        for row in self._rows(statement, "host_id", "fingerprint"):
            with contextlib.suppress(msgspec.ValidationError, ValueError):
                found = msgspec.convert(dict(zip(_FoundUrl.__struct_fields__, row, strict=True)), _FoundUrl)
                yield found.discovery()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _rows(self, statement: str, *order: str) -> Iterator[_Row]:
        """All rows from both ends, up to the damage. Rows between are given once, if there is no damage."""
        for direction in ("ASC", "DESC"):
            if self._connection is None:
                return
            with contextlib.suppress(sqlite3.Error):
                terms = ", ".join(f"{column} {direction}" for column in order)
                yield from self._connection.execute(f"{statement} ORDER BY {terms}")
                return

    def _first(self, statement: str, values: tuple[int, ...] = ()) -> _Row | None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                row: _Row | None = self._connection.execute(statement, values).fetchone()
                return row
        return None


class _FoundUrl(msgspec.Struct, frozen=True):
    """A row of `url`, checked: a damaged page may hold anything."""

    href: str
    depth: int
    kind: LinkKind
    priority: int
    via: int
    anchor: str
    score: float

    def discovery(self) -> Discovery:
        key = canonical(self.href)
        return Discovery(
            href=self.href,
            key=key,
            host=host_of(self.href),
            fingerprint=fingerprint(key),
            depth=self.depth,
            kind=self.kind,
            priority=self.priority,
            via=self.via,
            anchor=self.anchor,
            score=self.score,
        )
