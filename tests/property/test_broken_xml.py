"""Feeds and XML with random damage: always an answer, never a defect of ours, always parseable statements."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
from hypothesis import given, settings
from hypothesis import strategies as st

from quadloom.documents.transform import transform
from thoroughness import examples

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "xml"
TYPES = {".xml": "application/xml", ".rss": "application/rss+xml", ".json": "application/json", ".svg": "image/svg+xml"}
SEEDS = [(path.read_bytes(), TYPES[path.suffix]) for path in sorted(CORPUS.glob("*/*")) if path.suffix in TYPES]
PIECES = (
    b"<", b">", b"&", b'"', b"</", b"<![CDATA[", b"]]>", b"\0", b"\xff\xfe", b"&#0;", b"&#xD800;", b"&x;",
    b"xml:base='::'",
    b"<!DOCTYPE a [<!ENTITY x '&x;'>]>", b"<a:b/>", b"xmlns:rdf=''", b"\xed\xa0\x80", b"{}", b"null", b"1e999", b"http://[",
)  # fmt: skip


@settings(max_examples=examples(60, 500), deadline=None)
@given(st.data())
def test_damage_is_survived(data: st.DataObject) -> None:
    body, content_type = data.draw(st.sampled_from(SEEDS))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body)))
        body = body[:at] + data.draw(st.sampled_from(PIECES)) + body[at + data.draw(st.integers(0, 6)) :]
    result = transform(body, url="https://site.example/folder/feed", content_type=content_type)
    assert "extractor-failed" not in [finding.code for finding in result.findings], result.findings
    assert sum(1 for _ in ox.parse(result.nquads, ox.RdfFormat.N_QUADS, lenient=True)) <= result.nquads.count(b"\n")
