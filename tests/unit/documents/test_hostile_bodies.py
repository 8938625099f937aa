"""Bodies of a few kilobytes that once took minutes or gigabytes: now as long as others of their size.

The bound is CPU time and far from both sides: each needs some milliseconds, and needed 8 s to hours.
"""

from __future__ import annotations

import time

import pytest

from quadloom.documents.syntaxes.sink import MAX_CHARACTERS
from quadloom.documents.transform import transform
from quadloom.settings import LimitSettings

ENOUGH = 4.0
HTML, JSON_LD = "text/html", "application/ld+json"


def script(text: str) -> str:
    return f"<script type='application/ld+json'>{text}</script>"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        pytest.param("application/xml", "<!-- x -->" * 40 + "<a/>", id="comments before a root that is not HTML"),
        pytest.param("text/plain", "@prefix a: <http://b.test/> .\n" + "a." * 32_000, id="a graph without beginning"),
        pytest.param(JSON_LD, "[" * 200 + '"' + '\\"' * 40_000, id="a string that never ends"),
        pytest.param(HTML, script('{"a":"' + '\\"' * 40_000), id="the same in a script"),
        pytest.param(HTML, script("<!--" + " " * 80_000 + "x"), id="a wrapper that never ends"),
        pytest.param(HTML, script("{,") + "<script " * 12_000, id="script tags that never end"),
        pytest.param("application/rdf+xml", "<?xml " + 'encoding="utf-8" ' * 32_000, id="an endless declaration"),
        pytest.param(
            JSON_LD,
            '{"@context":[{"@base":"http://b.example/' + "a/" * 20_000 + '"}' + ',{"@base":"b/"}' * 20_000 + "]}",
            id="a long base, moved often",
        ),
        pytest.param(
            JSON_LD,
            '{"@context":{"@vocab":"http://v.example/","@language":"en' + "-abcdefgh" * 20_000 + '"},'
            + ",".join(f'"k{number}":"x"' for number in range(8_000)) + "}",
            id="a long language",
        ),
    ],
)  # fmt: skip
def test_time_does_not_grow_with_the_square_of_the_size(content_type: str, body: str) -> None:
    begun = time.process_time()
    found = transform(body.encode(), url="https://site.example/a", content_type=content_type)
    assert time.process_time() - begun < ENOUGH
    assert "extractor-failed" not in [finding.code for finding in found.findings]


MANY, LONG = range(3_000), "a" * 60_000


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        pytest.param(HTML, f"<p itemscope><b itemprop='{' '.join(f'n{n}' for n in MANY)}'>{LONG}</b>", id="itemprop"),
        pytest.param(
            HTML, f"<p itemscope itemid='http://i.example/{LONG}'>" + "".join(f"<b itemprop=n{n}>x</b>" for n in MANY),
            id="microdata identifier",
        ),
        pytest.param(
            "text/turtle", f"@prefix p: <http://p.example/{LONG}> .\n" + "".join(f"p:a{n} p:b p:c .\n" for n in MANY),
            id="turtle prefix",
        ),
        pytest.param(
            "application/xml", f"<r xmlns='http://x.test/{LONG}'>" + "".join(f"<n{n}>x</n{n}>" for n in MANY) + "</r>",
            id="namespace of XML",
        ),
    ],
)  # fmt: skip
def test_a_long_name_used_often_is_cut_at_the_limit_of_characters(content_type: str, body: str) -> None:
    found = transform(body.encode(), url="https://site.example/a", content_type=content_type)
    assert len(found.nquads) <= MAX_CHARACTERS < len(LONG) * len(MANY)
    assert {"too-many-quads", "rdf-truncated", "iri-too-long"}.intersection(finding.code for finding in found.findings)
    assert not found.nquads or found.nquads.endswith(b" <https://site.example/a> .\n")


def test_the_name_of_the_graph_counts_too() -> None:
    url = f"https://site.example/{'a' * 2000}"
    body = "".join(f"<a:{number}> <a:b> <a:c> .\n" for number in range(LimitSettings().quads_per_page // 2))
    found = transform(body.encode(), url=url, content_type="application/n-triples")
    assert len(found.nquads) <= MAX_CHARACTERS
    assert "too-many-quads" in [finding.code for finding in found.findings]
