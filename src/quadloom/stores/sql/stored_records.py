"""Records of rows, back from their bytes: a damaged one is an error that says what to do."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from quadloom.errors import StoreError
from quadloom.model import wire

T = TypeVar("T")


def decode(record: bytes, kind: type[T]) -> T:
    """As `quadloom.model.wire.decode`. Raises `StoreError` if the bytes are not what was written."""
    try:
        return wire.decode(record, kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreError(
            f"the database is damaged: a row does not hold a {kind.__name__} ({error})",
            hint="run `quadloom recover`: it makes a new database from the archive and all rows that are whole",
        ) from None
