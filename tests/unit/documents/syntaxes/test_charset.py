"""The encoding of a document by the WHATWG rules."""

from __future__ import annotations

import codecs
from itertools import product

import pytest

from native_parts import native_part
from quadloom.documents.syntaxes.charset import (
    _CODECS,
    charset_of,
    decode,
    encoding,
    header_charset,
    is_utf8_in_python,
    utf8,
)


def named(body: bytes, content_type: str | None = None, *, xml: bool = False) -> tuple[str, str]:
    charset = charset_of(body, content_type, xml=xml)
    return charset.name, charset.source


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (codecs.BOM_UTF8 + b"x", "text/html; charset=iso-8859-1", ("utf-8", "bom")),
        ("<p>é".encode("utf-16"), None, ("utf-16le", "bom")),
        (b"<p>\xe9", "text/html; charset=ISO-8859-1", ("windows-1252", "header")),
        (b"<p>\xe9", 'text/html; charset="latin1"', ("windows-1252", "header")),
        (b"<meta charset=koi8-r><p>\xc1", None, ("koi8-r", "meta")),
        (b"<META content='a; charset = gbk' http-equiv=Content-Type>\xc4\xe3", None, ("gbk", "meta")),
        (b"<!-- <meta charset=koi8-r> --><p>\xe9", None, ("windows-1252", "guess")),
        (b"<meta charset=utf-16><p>x", None, ("utf-8", "meta")),
        (b" " * 1024 + b"<meta charset=koi8-r>\xc1", None, ("windows-1252", "guess")),
        (b"<meta charset=utf-7>+ADw-script+AD4-", None, ("utf-8", "default")),
        (b"<?xml version='1.0' encoding='iso-8859-2'?><a>\xb1</a>", None, ("iso-8859-2", "xml")),
        ("<p>é".encode(), None, ("utf-8", "guess")),
        ("<p>é".encode()[:-1], None, ("windows-1252", "guess")),
        ("<p>éé".encode()[:-1], None, ("utf-8", "guess")),
        (b"<\0?\0x\0", None, ("utf-16le", "guess")),
    ],
)
def test_order_of_witnesses(body: bytes, content_type: str | None, expected: tuple[str, str]) -> None:
    assert named(body, content_type) == expected


def test_a_forgotten_legacy_label_does_not_spoil_utf8() -> None:
    charset = charset_of("<p>é".encode(), "text/html; charset=iso-8859-1")
    assert (charset.name, charset.declared) == ("utf-8", "windows-1252")


def test_damaged_utf8_is_told() -> None:
    assert charset_of(b"<p>\xff\xe9", "text/html; charset=utf-8").damaged


def test_labels_and_codecs_exist() -> None:
    assert encoding(" Latin1\n") == "windows-1252"
    assert encoding("utf-7") == encoding("base64") == ""
    assert header_charset("text/html; charset=utf-7") == ""
    for codec in _CODECS.values():
        codecs.lookup(codec)


def test_decoding_never_raises() -> None:
    everything = bytes(range(256)) * 3
    for name in _CODECS:
        text = decode(everything, name)
        utf8(everything, name).decode("utf-8")
        assert text
    assert decode(b"\xed\xa0\x80x", "utf-8").endswith("x")  # a lone surrogate in disguise


def test_both_implementations_know_utf8() -> None:
    """All borders of table 3-7 of the Unicode standard, whole and cut off, behind and before other text."""
    texts = native_part("texts")
    borders = bytes.fromhex("00 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")
    for length in range(5):
        for sequence in product(borders, repeat=length) if length < 4 else product(borders[-16:], *[borders[2:11]] * 3):
            for body in (bytes(sequence), b"x" * 9 + bytes(sequence), bytes(sequence) + b"\xc3\xa9 and more"):
                assert texts.is_utf8(body) is is_utf8_in_python(body), body
