"""Batches by number and size, and records in a file."""

from __future__ import annotations

import io

import msgspec
import pytest

from quadloom.maintenance.batches import batches, read_records, write_record


def test_a_batch_ends_before_it_is_too_long_or_too_large() -> None:
    assert list(batches([], 2)) == []
    assert list(batches(range(5), 2)) == [[0, 1], [2, 3], [4]]
    sizes = [3, 3, 9, 1, 1, 1]
    assert list(batches(sizes, 3, size_of=lambda size: size, most_bytes=6)) == [[3, 3], [9], [1, 1, 1]]


def test_records_come_back_in_their_order_and_a_torn_one_is_an_error() -> None:
    file = io.BytesIO()
    for record in ("one", "two", "three"):
        write_record(file, record)
    assert list(read_records(io.BytesIO(file.getvalue()), str)) == ["one", "two", "three"]
    with pytest.raises(msgspec.DecodeError):
        list(read_records(io.BytesIO(file.getvalue()[:-1]), str))
