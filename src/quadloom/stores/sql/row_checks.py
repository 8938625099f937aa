"""Rows compared with what they say twice: SQLite has no checksums of pages, and a disk may return other bytes.

Records have a checksum (`stored_records`), columns of a page are in its record too, and the key of a URL is a hash of
its address. Columns that only order the work (when a URL is due, how often it failed) are not covered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from quadloom.model.event import Notice
from quadloom.model.outcome import PageRow
from quadloom.model.url import fingerprint
from quadloom.stores.protocols.catalog import VisitRow
from quadloom.stores.sql.statements import Row
from quadloom.stores.sql.stored_records import damaged, decode

_ROWS = 2000  # read at a time
_LEAST = -(1 << 63)
_PAGE_COLUMNS = ["fingerprint", "host", "outcome", "kind", "status", "fetched_at", "quads_digest", "text_digest"]


class _Readable(Protocol):
    def execute(self, statement: str, values: Sequence[Any], /) -> Iterable[Row]: ...


def check_rows(database: _Readable) -> None:
    """Read every page, visit, notice and URL. Raises `StoreError` for the first that is not what was written."""
    columns = ", ".join(_PAGE_COLUMNS)
    for *values, record in _all(database, "page", f"{columns}, record", 1):
        page = decode(record, PageRow)
        if any(getattr(page, name) != value for name, value in zip(_PAGE_COLUMNS, values, strict=True)):
            raise damaged("the row of a page differs from its record")
    for *key, record in _all(database, "visit", "fingerprint, fetched_at, record", 2):
        visit = decode(record, VisitRow)
        if key != [visit.fingerprint, visit.fetched_at]:
            raise damaged("the row of a visit differs from its record")
    for _id, record in _all(database, "notice", "id, record", 1):
        decode(record, Notice)
    for _host, number, address, key in _all(database, "url", "host_id, fingerprint, href, key", 2):
        if fingerprint(key or address) != number:
            raise damaged("the address of a URL is not the one that was stored")


def _all(database: _Readable, table: str, columns: str, key_size: int) -> Iterator[Row]:
    """All rows in the order of their key, which is the first columns, in chunks that fit into memory."""
    key = ", ".join(columns.split(", ")[:key_size])
    place: Sequence[object] = [_LEAST] * key_size
    query = f"SELECT {columns} FROM {table} WHERE ({key}) > ({', '.join('?' * key_size)}) ORDER BY {key} LIMIT {_ROWS}"
    while rows := list(database.execute(query, place)):
        yield from rows
        place = rows[-1][:key_size]
