"""Rows as arrays in PostgreSQL's binary format, one per column, for `unnest`.

The driver turns lists into arrays element by element in Python, which cost more than all the rest of a settlement. In
the binary format an array is a header and then each element after its length, so that numbers are one assignment to
a table of two columns. Kinds are named as in `struct`: q bigint, i int, h smallint, d float8; s is text, y is bytea.
Text is stored as PostgreSQL can store it: without NUL and lone surrogates.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from psycopg.adapt import AdaptersMap

_NUMBERS = {"q": (20, ">i8", 8), "i": (23, ">i4", 4), "h": (21, ">i2", 2), "d": (701, ">f8", 8)}  # oid, type, size
_TEXTS = {"s": 25, "y": 17}
_LENGTH = struct.Struct(">i")
_HEADER = struct.Struct(">iiiii")  # dimensions, whether there are NULLs, oid of elements, length, first index
_EMPTY = struct.Struct(">iii")
_NULL = _LENGTH.pack(-1)


class Column:
    """An encoded array; the statement must name its type, as in `%s::bigint[]`."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


def column(kind: str, values: Iterable[object]) -> Column:
    items = list(values)
    if not items:
        return Column(_EMPTY.pack(0, 0, _TEXTS.get(kind) or _NUMBERS[kind][0]))
    if kind in _TEXTS:
        return Column(_HEADER.pack(1, None in items, _TEXTS[kind], len(items), 1) + _texts(kind, items))
    oid, type, size = _NUMBERS[kind]
    table = np.empty(len(items), dtype=[("length", ">i4"), ("value", type)])
    table["length"] = size
    table["value"] = items
    return Column(_HEADER.pack(1, 0, oid, len(items), 1) + table.tobytes())


def columns(kinds: str, rows: Sequence[Sequence[object]]) -> tuple[Column, ...]:
    """One array per letter of `kinds`; every row has as many fields."""
    fields = zip(*rows, strict=True) if rows else ([] for _ in kinds)
    return tuple(column(kind, values) for kind, values in zip(kinds, fields, strict=True))


def _texts(kind: str, items: Iterable[object]) -> bytes:
    parts: list[bytes] = []
    for item in items:
        if item is None:
            parts.append(_NULL)
            continue
        data = item.encode("utf-8", "replace") if isinstance(item, str) else item  # no lone surrogates
        assert isinstance(data, bytes)
        if kind == "s" and b"\0" in data:
            data = data.replace(b"\0", b"")
        parts += (_LENGTH.pack(len(data)), data)
    return b"".join(parts)


def register(adapters: AdaptersMap) -> None:
    """Make a connection send a `Column` as it is."""
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    class ColumnDumper(Dumper):
        format = Format.BINARY

        def dump(self, obj: Column) -> bytes:
            return obj.data

    adapters.register_dumper(Column, ColumnDumper)
