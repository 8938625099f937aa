from __future__ import annotations

from datetime import UTC, datetime

import pytest

from quadloom.fetching.robots_tag import RobotsTag, of_headers, of_meta, parse

NOW = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", RobotsTag()),
        ("all", RobotsTag()),
        ("noindex", RobotsTag(noindex=True)),
        ("NoIndex , NOFOLLOW", RobotsTag(noindex=True, nofollow=True)),
        ("none", RobotsTag(noindex=True, nofollow=True)),
        ("noarchive", RobotsTag(noarchive=True)),
        ("max-snippet: 20, noarchive", RobotsTag(noarchive=True)),
        ("otherbot: noindex", RobotsTag()),
        ("otherbot: noindex, nofollow", RobotsTag()),
        ("quadloom: noindex, nofollow", RobotsTag(noindex=True, nofollow=True)),
        ("otherbot: noindex, quadloom: nofollow", RobotsTag(nofollow=True)),
        ("nofollow, otherbot: noindex", RobotsTag(nofollow=True)),
        ("unavailable_after: 25 Jun 2010 15:00:00 GMT", RobotsTag(noindex=True)),
        ("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, nofollow", RobotsTag(noindex=True, nofollow=True)),
        ("unavailable_after: 2030-01-01", RobotsTag()),
        ("unavailable_after: 2020-01-01T00:00:00Z", RobotsTag(noindex=True)),
        ("quadloom: unavailable_after: 25 Jun 2010 15:00:00 GMT", RobotsTag(noindex=True)),
        ("unavailable_after: some day", RobotsTag()),
        ("noindexing", RobotsTag()),
    ],
)
def test_value(value: str, expected: RobotsTag) -> None:
    assert parse(value, "Quadloom", NOW) == expected


def test_headers_add_up() -> None:
    headers = [("x-robots-tag", "noindex"), ("content-type", "text/html"), ("x-robots-tag", "quadloom: noarchive")]
    assert of_headers(headers, "Quadloom", NOW) == RobotsTag(noindex=True, noarchive=True)


def test_meta_is_for_everyone_or_for_us() -> None:
    assert of_meta("ROBOTS", "nofollow", "Quadloom", NOW).nofollow
    assert of_meta("quadloom", "noindex", "Quadloom", NOW).noindex
    assert of_meta("googlebot", "noindex", "Quadloom", NOW) == RobotsTag()
