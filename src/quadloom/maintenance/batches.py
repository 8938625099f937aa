"""Items in batches, and records in files: what several jobs of maintenance read and write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from quadloom.model.wire import decode, encode

T = TypeVar("T")
_LENGTH = 4  # bytes before each record


def batches(
    items: Iterable[T], most: int, *, size_of: Callable[[T], int] = lambda _item: 0, most_bytes: int = 1
) -> Iterator[list[T]]:
    """Lists of up to `most` items, of `most_bytes` together; an item that is larger makes a list of its own."""
    batch: list[T] = []
    total = 0
    for item in items:
        size = size_of(item)
        if batch and (len(batch) >= most or total + size > most_bytes):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch


class ByteReader(Protocol):
    def read(self, size: int, /) -> bytes: ...


class ByteWriter(Protocol):
    def write(self, data: bytes, /) -> object: ...


def write_record(file: ByteWriter, record: object) -> None:
    """Append a record, with its length before it."""
    data = encode(record)
    file.write(len(data).to_bytes(_LENGTH, "big") + data)


def read_records(file: ByteReader, kind: type[T]) -> Iterator[T]:
    """All records of a file that `write_record` wrote. Raises `msgspec.DecodeError` if one is damaged."""
    while head := file.read(_LENGTH):
        yield decode(file.read(int.from_bytes(head, "big")), kind)
