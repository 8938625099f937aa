"""Text answers are compressed, and only where that helps and is wanted."""

from __future__ import annotations

import gzip

import pytest
from starlette.testclient import TestClient

from quadloom.web.server.compression import accepts_gzip

HTML = {"accept": "text/html"}


def _raw(client: TestClient, path: str, encoding: str) -> tuple[bytes, str]:
    with client.stream("GET", path, headers={**HTML, "accept-encoding": encoding}) as answer:
        assert answer.status_code == 200
        return b"".join(answer.iter_raw()), answer.headers.get("content-encoding", "")


@pytest.mark.parametrize("path", ["/", "/search", "/static/quadloom.css", "/search.json?q=lighthouse", "/export.nq"])
def test_text_is_compressed_for_who_takes_it(client: TestClient, path: str) -> None:
    small, encoding = _raw(client, path, "gzip, br")
    plain, none = _raw(client, path, "identity")
    assert (encoding, none) == ("gzip", "")
    assert len(small) < len(plain)
    if path.startswith("/static"):
        assert gzip.decompress(small) == plain


@pytest.mark.parametrize("path", ["/", "/search"])
def test_a_first_visit_weighs_little(client: TestClient, path: str) -> None:
    """The page, its style sheet and its own script together."""
    weight = sum(len(_raw(client, part, "gzip")[0]) for part in (path, "/static/quadloom.css", "/static/quadloom.js"))
    assert weight < 60_000


def test_short_answers_and_streams_stay_as_they_are(client: TestClient) -> None:
    assert _raw(client, "/health/live", "gzip")[1] == ""
    assert _raw(client, "/events?once=1", "gzip")[1] == ""
    assert _raw(client, "/export.nq.gz", "gzip")[1] == ""


@pytest.mark.parametrize(
    ("header", "wanted"),
    [("gzip", True), ("br, gzip;q=0.5", True), ("*", True), ("gzip;q=0", False), ("identity", False), ("", False)],
)
def test_accept_encoding(header: str, wanted: bool) -> None:
    assert accepts_gzip(header) is wanted
