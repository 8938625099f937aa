"""What a first visit transfers, with everything that the page refers to."""

from __future__ import annotations

import gzip
import re

import pytest
from starlette.testclient import TestClient

from unit.web.web_fixture import BOOK

LIMIT = 60_000  # bytes, compressed


@pytest.mark.parametrize(
    "path", ["/", "/search?q=lighthouse", "/type?iri=schema:Book", f"/page?url={BOOK}", "/findings"]
)
def test_a_page_with_its_parts_is_light(client: TestClient, path: str) -> None:
    first = client.get(path, headers={"accept": "text/html", "accept-encoding": "gzip"})
    assert first.status_code == 200 and first.headers["content-encoding"] == "gzip"
    parts = re.findall(r'(?:href|src)="(/static/[^"]+)"', first.text)
    assert len(parts) >= 3
    weight = len(gzip.compress(first.content, 6))
    for part in parts:
        answer = client.get(part, headers={"accept-encoding": "gzip"})
        assert answer.status_code == 200
        weight += len(gzip.compress(answer.content, 6))
    assert weight < LIMIT, f"{weight} bytes"
