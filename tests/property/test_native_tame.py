"""What C calls tame, the reader in Python leaves as it is, and the other way round."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from native_parts import native_part
from quadloom.documents.syntaxes.html import tree
from quadloom.documents.syntaxes.html.tree import MAX_DEPTH, tame
from thoroughness import examples

texts = native_part("texts")
CORPUS = Path(__file__).parents[1] / "corpus"

PIECES = st.sampled_from(
    [
        b"<div>", b"</div>", b"<DIV a=1/>", b"<span x='>'>", b"</span>", b"<b>", b"</b>", b"<i id=1>", b"</I>", b"<p>",
        b"</p>", b"<svg>", b"<path d=x/>", b"<g/>", b"</svg>", b"<math>", b"<script>", b"</script>", b"<style>",
        b"</Style ", b"<title>", b"<!--", b"-->", b"--!>", b"<!-->", b"<!--->", b"-", b"<table>", b"</table>",
        b"<x-y>", b"</x-y>",
        b"<a b=\"", b"\"", b"'", b"=", b" = ", b" ", b"/", b">", b"<", b"</", b"<a", b"<html>", b"<body x>",
        b"<object>", b"<textarea>", b"\x00", b"<br>", b"<font a", b"text", b"<select>", b"</select>",
    ]
)  # fmt: skip
SOURCES = st.lists(st.tuples(PIECES, st.sampled_from([1, 1, 1, 1, 5, 20])), max_size=40)


def is_tame(source: bytes, depth: int) -> bool:
    return texts.is_tame(source, tree._RULES, depth, *tree._MOST[1:])


@settings(max_examples=examples(400, 6000), deadline=None)
@given(SOURCES, st.sampled_from([4, 12, 40]))
def test_both_implementations_say_the_same(parts: list[tuple[bytes, int]], depth: int) -> None:
    source = b"".join(piece * times for piece, times in parts)
    before = tree.MAX_DEPTH
    tree.MAX_DEPTH = depth  # so that small sources go too far
    try:
        left = tree._Reader(source).read()[0] is source
    finally:
        tree.MAX_DEPTH = before
    assert is_tame(source, depth) == left


@pytest.mark.parametrize("path", sorted(CORPUS.rglob("*.html")), ids=lambda path: path.stem)
def test_pages_of_the_corpus_are_tame(path: Path) -> None:
    source = path.read_bytes()
    assert is_tame(source, MAX_DEPTH) == (tree._Reader(source).read()[0] is source)


def test_what_is_too_unusual_is_left_to_the_reader() -> None:
    source = b"".join(b"<x%d></x%d>" % (number, number) for number in range(3000))
    assert not is_tame(source, MAX_DEPTH)
    assert tame(source)[0] is source


def test_many_attributes_are_not_tame() -> None:
    for glue in (b" ", b""):
        assert is_tame(b"<p " + glue.join(b'a%d=""' % number for number in range(500)) + b">", MAX_DEPTH)
        assert not is_tame(b"<p " + glue.join(b'a%d=""' % number for number in range(501)) + b">", MAX_DEPTH)
