"""Records to bytes and back, for pipes between processes and for columns of a store."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")
Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]
"""What JSON can hold."""
_encoder = msgspec.msgpack.Encoder()
_decoders: dict[object, msgspec.msgpack.Decoder[object]] = {}


def encode(record: object) -> bytes:
    return _encoder.encode(record)


def decode(data: bytes | memoryview, kind: type[T]) -> T:
    """Decode what `encode` made. Raises `msgspec.DecodeError` for anything else."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.msgpack.Decoder(kind)
    return decoder.decode(data)  # type: ignore[return-value]  # the decoder was made for this very type
