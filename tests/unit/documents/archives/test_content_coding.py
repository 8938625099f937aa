from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib

import brotli
import pytest
import zstandard

from quadloom.documents.archives.content_coding import BodyDecoder, coding_of

MIB = 1024 * 1024


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


PACKERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
}


def feed(body: BodyDecoder, data: bytes, size: int) -> bool:
    return all(body.feed(data[at : at + size]) for at in range(0, len(data), size))


@pytest.mark.parametrize("coding", [*PACKERS, ""])
@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
def test_round_trip_in_pieces(coding: str, size: int) -> None:
    data = bytes(random.Random(1).choices(b"abcdefgh <>/", k=20_000))
    packed = PACKERS[coding](data) if coding else data
    body = BodyDecoder(coding, MIB, 200.0)
    assert feed(body, packed, size)
    assert body.bytes() == data
    assert body.wire == len(packed)
    assert not body.incomplete()


def test_raw_deflate_and_several_gzip_members_and_padding() -> None:
    body = BodyDecoder("deflate", MIB, 200.0)
    assert feed(body, raw_deflate(b"hello " * 100), 1)
    assert body.bytes() == b"hello " * 100
    body = BodyDecoder("gzip", MIB, 200.0)
    assert feed(body, gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0\0", 5)
    assert body.bytes() == b"one two"


@pytest.mark.parametrize("coding", PACKERS)
def test_a_bomb_is_seen_before_it_unpacks(coding: str) -> None:
    packed = PACKERS[coding](bytes(64 * MIB))
    body = BodyDecoder(coding, 1024 * MIB, 200.0)
    tracemalloc.start()
    assert not feed(body, packed, 16384)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert body.state == "bomb"
    assert body.decoded <= 16 * MIB
    assert body.bytes() == b""
    assert peak < 16 * MIB


@pytest.mark.parametrize("coding", [*PACKERS, ""])
def test_a_long_body_is_cut_exactly(coding: str) -> None:
    data = random.Random(2).randbytes(300_000)
    body = BodyDecoder(coding, 100_000, 200.0)
    assert not feed(body, PACKERS[coding](data) if coding else data, 16384)
    assert body.state == "cut"
    assert body.bytes() == data[:100_000]
    assert body.decoded == 100_000


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_rubbish_is_broken(coding: str) -> None:
    body = BodyDecoder(coding, MIB, 200.0)
    assert not feed(body, b"this is not compressed at all, is it?" * 20, 16384)
    assert body.state == "broken"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
def test_an_early_end_is_noticed(coding: str) -> None:
    packed = PACKERS[coding](random.Random(3).randbytes(5000))
    body = BodyDecoder(coding, MIB, 200.0)
    assert feed(body, packed[:-20], 1000)
    assert body.incomplete()


def test_zstd_windows_over_8_mib_are_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = packer.compress(random.Random(4).randbytes(200_000)) + packer.flush()
    body = BodyDecoder("zstd", MIB, 200.0)
    assert not feed(body, packed, 16384)
    assert body.state == "broken"


def test_a_sink_takes_the_blocks() -> None:
    taken: list[bytes] = []
    body = BodyDecoder("gzip", 10 * MIB, 5000.0, taken.append)
    assert feed(body, gzip.compress(bytes(2 * MIB)), 16384)
    assert sum(map(len, taken)) == 2 * MIB
    assert body.bytes() == b""


@pytest.mark.parametrize(
    ("header", "coding"),
    [
        ("gzip", "gzip"), ("GZip", "gzip"), ("x-gzip", "gzip"), ("identity", ""), ("", ""), ("br", "br"),
        ("zstd", "zstd"), ("deflate", "deflate"), ("gzip, gzip", None), ("gzip, br", None), ("compress", None),
        ("aes128gcm", None), ("identity, gzip", "gzip"),
    ],
)  # fmt: skip
def test_exactly_one_known_coding(header: str, coding: str | None) -> None:
    assert coding_of(header) == coding


SYNC = zlib.compressobj()
ENDLESS = {
    "gzip members": ("gzip", b"", gzip.compress(b"")),
    "gzip members of a byte": ("gzip", b"", gzip.compress(b"x")),
    "a file name in gzip": ("gzip", b"\x1f\x8b\x08\x08" + bytes(6), b"x" * 100),
    "zstd frames": ("zstd", b"", zstandard.ZstdCompressor().compress(b"")),
    "zstd frames to skip": ("zstd", b"", b"\x50\x2a\x4d\x18" + bytes(4)),
    "deflate blocks": ("deflate", SYNC.compress(b"") + SYNC.flush(zlib.Z_SYNC_FLUSH), b"\x00\x00\x00\xff\xff"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_coding_without_content_ends_too(name: str) -> None:
    """Such a body passes no limit of decoded bytes, and keeps the process busy until its deadline."""
    coding, head, unit = ENDLESS[name]
    body = BodyDecoder(coding, MIB, 200.0)
    body.feed(head)
    pieces = 0
    while body.feed(unit * (16_000 // len(unit))):
        pieces += 1
        assert pieces < 200, "more than three times the limit was taken"
    assert body.state == ("broken" if "members" in name else "cut")


def test_members_as_tools_write_them_are_read() -> None:
    blocks = [bytes(random.Random(at).choices(b"abcdefgh", k=2000)) for at in range(300)]
    packed = b"".join(gzip.compress(block) for block in blocks) + gzip.compress(b"")
    body = BodyDecoder("gzip", MIB, 200.0)
    assert feed(body, packed, 16_384) and body.bytes() == b"".join(blocks)
