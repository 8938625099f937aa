"""Records of rows as bytes and back, with a checksum: a damaged one is an error that says what to do.

The checksum is one more entry of the record's MessagePack map, the last. Versions without checksums skip an unknown
entry, and records without one are older and are decoded as they are; so workers of both versions read the same tables.
"""

from __future__ import annotations

from typing import TypeVar
from zlib import crc32

import msgspec

from quadloom.errors import StoreError
from quadloom.model import wire

T = TypeVar("T")

_MARK = b"\xa1~\xce"  # the key "~", and a number of 32 bits follows
_ENTRY = len(_MARK) + 4
_SMALL_MAP, _FULL_SMALL_MAP, _MAP_16 = 0x80, 0x8F, 0xDE  # first bytes of maps; a small one has its size in the byte


def encode(record: msgspec.Struct) -> bytes:
    data = wire.encode(record)
    return b"".join((_one_more(data), data[1 if data[0] < _MAP_16 else 3 :], _MARK, crc32(data).to_bytes(4)))


def decode(record: bytes, kind: type[T]) -> T:
    """As `quadloom.model.wire.decode`. Raises `StoreError` if the bytes are not what was written."""
    try:
        if record[-_ENTRY : -_ENTRY + len(_MARK)] == _MARK and _checksum(record) != int.from_bytes(record[-4:]):
            raise msgspec.DecodeError("wrong checksum")
        return wire.decode(record, kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged(f"a row does not hold a {kind.__name__} ({error})") from None


def damaged(what: str) -> StoreError:
    return StoreError(
        f"the database is damaged: {what}",
        hint="run `quadloom recover`: it makes a new database from the archive and all rows that are whole",
    )


def _one_more(data: bytes) -> bytes:
    """The beginning of a map with one entry more than that of `data`."""
    if data[0] < _FULL_SMALL_MAP:
        return bytes((data[0] + 1,))
    size = 15 if data[0] == _FULL_SMALL_MAP else int.from_bytes(data[1:3])
    return bytes((_MAP_16, *(size + 1).to_bytes(2)))


def _checksum(record: bytes) -> int:
    """Of the record as it was before the checksum was added."""
    if record[0] < _MAP_16:
        beginning, rest = bytes((record[0] - 1 & 0xFF,)), 1
    else:
        size, rest = int.from_bytes(record[1:3]) - 1, 3
        beginning = bytes((_SMALL_MAP + size,)) if size <= 15 else bytes((_MAP_16, *(size & 0xFFFF).to_bytes(2)))
    return crc32(record[rest:-_ENTRY], crc32(beginning))
