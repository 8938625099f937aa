"""HTML that would make the parser slow or large: tamed in linear time, harmless pages untouched."""

from __future__ import annotations

import time

import pytest
from selectolax.lexbor import LexborHTMLParser

from quadloom.documents.syntaxes.html.tree import tame

N = 40_000
HOSTILE = {
    "deep": b"<div>" * N,
    "deep with useless end tags": b"<div></x>" * N,
    "deep behind a scope barrier": b"<div><object></div>" * N,
    "deep behind a special element": b"<span><div></span>" * N,
    "deep lists": b"<ul><li>" * N,
    "deep in a quote that is none": b'<x "><div>' + b"<div>" * N + b'"',
    "deep after an equals sign": b'<x =">' + b"<div>" * N + b'"',
    "deep after an empty comment": b"<!-->" + b"<div>" * N + b"-->",
    "deep in a foreign style": b"<svg><style>" + b"<div>" * N,
    "many end tags below deep": b"<div>" * N + b"</p>" * N,
    "formatting copied into blocks": b"".join(b"<b id=%d><p>" % n for n in range(N)),
    "attributes": b"<div " + b" ".join(b'a%d="v"' % n for n in range(N)) + b">",
    "attributes with markup inside": b"<div " + b" ".join(b'a%d = "<x>"' % n for n in range(N)) + b">",
    "attributes without values": b"<div/" + b"/".join(b"a%d" % n for n in range(N)) + b">",
    "attributes without space between": b"<div " + b"".join(b'a%d="v"' % n for n in range(N)) + b">",
    "attributes behind values": b"<div " + b"".join(b"a%d=''b%d " % (n, n) for n in range(N)) + b">",
    "attributes of body": b"".join(b"<body a%d=1>" % n for n in range(N)),
    "deep before elements that are closed at once": b"<div>" * 6_000 + b"<li>x</li><p>x</p>" * N,
    "formatting copied into elements that are closed at once": b"<p>"
    + b"".join(b"<b id=%d>" % n for n in range(60))
    + b"</p>"
    + b"<p>x</p>" * N,
    "ends that are values": b'<div title="a>b</div>">' * N,
    "ends in comments": b"<div><!--</div>-->" * N,
    "attributes of one that is closed at once": b"<p></p>" * N
    + b"<span "
    + b" ".join(b"a%s" % (b"b" * n) for n in range(1500))
    + b">x</span>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_markup_is_tamed(name: str) -> None:
    started = time.process_time()
    source, findings = tame(HOSTILE[name])
    LexborHTMLParser(source, options=1)
    assert time.process_time() - started < 3  # seconds; without taming 4 to 30, or gigabytes
    assert {finding.code for finding in findings} & {"too-deep", "too-many-attributes"}


def test_the_rest_of_a_hostile_page_is_still_read() -> None:
    source, _ = tame(b"<div>" * 20_000 + b"<a href=/x>link</a>")
    link = LexborHTMLParser(source).css_first("a")
    assert link is not None
    assert link.text() == "link"


@pytest.mark.parametrize(
    "source",
    [
        b"<div>" * 500 + b"</div>" * 500,
        b"<p>" * 30_000,
        b"<div class='a'>x</div>" * 30_000,
        b'<pre><b><span class="k">def</span></b> <span class="n">x</span></pre>' * 9_000,
        b"<table>" + b"<tr><td>a<td>b" * 20_000 + b"</table>",
        b"<script>" + b"if(a<b){'<div>'}" * 20_000 + b"</script>",
        b"<img src='data:image/png;base64," + b"QUJD" * 60_000 + b"'>",
        b"<!-- " + b"<div>" * 30_000 + b" -->",
    ],
    ids=["nested", "paragraphs", "siblings", "highlighted code", "cells", "script", "data-url", "comment"],
)
def test_large_but_harmless_pages_stay_as_they_are(source: bytes) -> None:
    tamed, findings = tame(source)
    assert tamed is source
    assert findings == []
