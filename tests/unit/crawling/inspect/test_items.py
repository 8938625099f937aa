"""Dates that no program can read are told with their line; good ones are not."""

from __future__ import annotations

import pytest

import quadloom

PAGE = """<!doctype html>
<script type="application/ld+json">
{"@context": "https://schema.org", "@type": "Event",
 "startDate": "%s"}
</script>"""


def odd(value: str) -> list[tuple[int, str]]:
    body = (PAGE % value).encode()
    seen = quadloom.transform(body, url="https://e.example/", content_type="text/html")
    return [(finding.line, finding.syntax) for finding in seen.findings if finding.code == "bad-date"]


@pytest.mark.parametrize(
    "value", ["12/5", "next Monday", "2026-5-1", "2026-05-12 19:30", "2026-13-01", "2026-02-30", "2026-05-12T25:00"]
)
def test_odd_dates_have_a_place(value: str) -> None:
    assert odd(value) == [(4, "jsonld")]


@pytest.mark.parametrize(
    "value",
    ["2026", "2026-05", "2026-05-12", "2026-05-12T19:30", "2026-05-12T19:30:00.5+02:00"],
)
def test_dates_as_schema_org_wants_them_pass(value: str) -> None:
    assert odd(value) == []
