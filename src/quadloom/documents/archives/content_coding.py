"""Content codings decoded as the bytes arrive, never further than the limits allow.

libcurl could decode gzip and brotli itself, but it returns a bomb only after unpacking it, has no limit on the ratio,
and the usual wheel has no zstd. So the body is taken as it is on the wire and decoded here in blocks; each block passes
one gate (`BodyDecoder.write`) that counts. 841 bytes of brotli can mean 512 MiB: the gate sees 256 KiB of them.

isal inflates at twice the speed of zlib (64 against 145 µs for a 40 KB page).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Literal, Protocol, cast

import brotli
import zstandard
from isal import isal_zlib

ADVERTISED = "gzip, deflate, br, zstd"
BLOCK = 256 * 1024  # bytes decoded at a time: what a bomb may cost in memory before the gate sees it
ZSTD_WINDOW = 8 * 1024 * 1024  # RFC 9659: the largest window that a content coding may ask for
RATIO_FROM = 1024 * 1024  # small pages of repeated markup do compress 500:1, so the ratio counts only from here

# Members without content cost CPU and pass no limit of decoded bytes. Real ones hold 64 KiB (BGZF), and few are empty.
FREE_MEMBERS, LEAST_MEMBER = 100, 512

State = Literal["open", "cut", "bomb", "broken"]
_Decoder = Callable[[bytes], object]
_CODING_ERRORS: tuple[type[Exception], ...] = (
    cast(type[Exception], isal_zlib.error),  # isal's stub declares the class as an instance
    brotli.error,
    zstandard.ZstdError,
)


class _Enough(Exception):
    """Ends decoding from within a decoder; never leaves this module."""


class BodyDecoder:
    """Collects a decoded body. After `feed` returns False it takes no more input, and `state` says why.

    `cut`: longer than `max_bytes`, decoded or on the wire; `bytes()` has the first of them. `bomb`: decoded to more
    than `ratio` times what was transferred. `broken`: not valid in the coding that the server named.
    """

    __slots__ = ("_decode", "_max_bytes", "_parts", "_ratio", "_sink", "decoded", "incomplete", "state", "wire")

    def __init__(self, coding: str, max_bytes: int, ratio: float, sink: Callable[[bytes], None] | None = None) -> None:
        """`sink` takes the decoded blocks instead of `bytes()`, for bodies too long to hold."""
        self._max_bytes = max_bytes
        self._ratio = ratio
        self._sink = sink
        self._parts: list[bytes] = []
        self.wire = 0
        self.decoded = 0
        self.state: State = "open"
        self.incomplete: Callable[[], bool] = _never
        self._decode: _Decoder = self.write
        if coding and coding != "identity":
            decoder = _DECODERS[coding](self)
            self._decode = decoder.feed
            self.incomplete = decoder.incomplete

    def feed(self, data: bytes) -> bool:
        self.wire += len(data)
        if self.wire > self._max_bytes + RATIO_FROM:  # a coding can go on for ever without a single decoded byte
            self.state = "cut"
            return False
        try:
            self._decode(data)
        except _Enough:
            return False
        except _CODING_ERRORS:
            self.state = "broken"
            return False
        return True

    def write(self, block: bytes) -> None:
        """The gate through which every decoded byte passes."""
        size = len(block)
        self.decoded += size
        if self.decoded > RATIO_FROM and self.decoded > self._ratio * self.wire:
            self.state = "bomb"
            self._parts.clear()
            raise _Enough
        over = self.decoded - self._max_bytes
        if over > 0:
            self.state = "cut"
            self.decoded = self._max_bytes
            block = block[: size - over]
        if self._sink is None:
            self._parts.append(block)
        else:
            self._sink(block)
        if over > 0:
            raise _Enough

    def flush(self) -> None:
        """Part of the file interface that zstandard's writer needs; there is nothing to flush."""

    def bytes(self) -> bytes:
        parts = self._parts
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def release(self) -> None:
        """Free decoder and blocks now. They refer to each other and would wait for the garbage collector: a page's
        blocks and 86 KB of isal's state for each of the last few hundred pages, 40 MB in all."""
        self._decode = self.incomplete = _released
        self._parts.clear()


def coding_of(header: str) -> str | None:
    """The one coding a Content-Encoding header names (`""` = none), or None if it is unknown or more than one.

    Several layers of codings serve no purpose on the web but to multiply the ratio of a bomb.
    """
    names = [name for name in (part.strip().lower() for part in header.split(",")) if name and name != "identity"]
    if not names:
        return ""
    if len(names) > 1:
        return None
    name = names[0].removeprefix("x-")
    return name if name in _DECODERS else None


class _Engine(Protocol):
    def feed(self, data: bytes) -> None: ...

    def incomplete(self) -> bool: ...


def _never() -> bool:
    return False


def _released(_data: bytes = b"") -> bool:
    return False


class _Gzip:
    """RFC 1952, several members allowed, unless they are tiny. Padding after the last member is ignored, as browsers
    do."""

    __slots__ = ("_body", "_inflate", "_members", "_started")

    def __init__(self, body: BodyDecoder) -> None:
        self._body = body
        self._inflate = isal_zlib.decompressobj(wbits=31)
        self._members = 0
        self._started = False

    def feed(self, data: bytes) -> None:
        self._started = True
        while data:
            inflate = self._inflate
            if inflate.eof:
                if data[:1] != b"\x1f":
                    return
                self._members += 1
                if self._members > FREE_MEMBERS + self._body.decoded // LEAST_MEMBER:
                    self._body.state = "broken"
                    raise _Enough
                inflate = self._inflate = isal_zlib.decompressobj(wbits=31)
            block = inflate.decompress(data, BLOCK)
            if block:
                self._body.write(block)
            data = inflate.unused_data if inflate.eof else inflate.unconsumed_tail

    def incomplete(self) -> bool:
        return self._started and not self._inflate.eof


class _Deflate:
    """`deflate` means zlib (RFC 1950); some servers send raw deflate instead, told apart by the first two bytes."""

    __slots__ = ("_body", "_head", "_inflate")

    def __init__(self, body: BodyDecoder) -> None:
        self._body = body
        self._head = b""
        self._inflate: isal_zlib.Decompress | None = None

    def feed(self, data: bytes) -> None:
        if self._inflate is None:
            data = self._head + data
            if len(data) < 2:
                self._head = data
                return
            is_zlib = data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
            self._inflate = isal_zlib.decompressobj(wbits=15 if is_zlib else -15)
        while data and not self._inflate.eof:
            block = self._inflate.decompress(data, BLOCK)
            if block:
                self._body.write(block)
            data = self._inflate.unconsumed_tail

    def incomplete(self) -> bool:
        return bool(self._head) if self._inflate is None else not self._inflate.eof


class _Brotli:
    __slots__ = ("_body", "_decompressor")

    def __init__(self, body: BodyDecoder) -> None:
        self._body = body
        self._decompressor = brotli.Decompressor()

    def feed(self, data: bytes) -> None:
        decompressor = self._decompressor
        block = decompressor.process(data, output_buffer_limit=BLOCK)
        while block:
            self._body.write(block)
            block = b"" if decompressor.is_finished() else decompressor.process(b"", output_buffer_limit=BLOCK)

    def incomplete(self) -> bool:
        return not self._decompressor.is_finished()


class _Zstd:
    """zstandard writes blocks of 128 KiB to the gate, and an exception of the gate ends it."""

    __slots__ = ("_decompressor", "_writer")

    def __init__(self, body: BodyDecoder) -> None:
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
        self._writer = self._decompressor.stream_writer(cast(IO[bytes], body), closefd=False)

    def feed(self, data: bytes) -> None:
        self._writer.write(data)

    def incomplete(self) -> bool:
        return False  # the writer does not say; a cut transfer is detected by its framing


_DECODERS: dict[str, Callable[[BodyDecoder], _Engine]] = {
    "gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
