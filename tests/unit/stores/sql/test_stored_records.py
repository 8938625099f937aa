"""Records of rows: checksums find every flipped bit, and versions without them read the same rows."""

from __future__ import annotations

import msgspec
import pytest

from quadloom.errors import StoreError
from quadloom.model import wire
from quadloom.stores.sql.stored_records import decode, encode


class Record(msgspec.Struct, kw_only=True):
    number: int
    text: str = ""


def wide(fields: int) -> type[msgspec.Struct]:
    return msgspec.defstruct(f"Wide{fields}", [(f"field{number}", int) for number in range(fields)])


@pytest.mark.parametrize("fields", [1, 14, 15, 16, 17, 40])
def test_records_of_any_width(fields: int) -> None:
    kind = wide(fields)
    record = kind(*range(fields))
    data = encode(record)
    assert decode(data, kind) == record
    assert wire.decode(data, kind) == record, "a version without checksums skips it"
    assert decode(wire.encode(record), kind) == record, "a record of such a version"


def test_every_flipped_bit_is_found_or_changes_nothing() -> None:
    record = Record(number=7, text="whales")
    data = encode(record)
    for place in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            try:
                found = decode(bytes(flipped), Record)
            except StoreError as error:
                assert error.hint is not None and "quadloom recover" in error.hint
            else:
                assert found == record
