"""Settings as they are shown: never with a password."""

from __future__ import annotations

import pytest

from quadloom.settings import without_password


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:s3cret@db.example:5432/crawl", "postgresql://me:***@db.example:5432/crawl"),
        ("postgresql://me@db.example/crawl?password=s3cret&x=1", "postgresql://me@db.example/crawl?password=***&x=1"),
        ("sparql+https://me:s3:cret@h/query", "sparql+https://me:***@h/query"),
        ("postgresql://db.example:5432/crawl", "postgresql://db.example:5432/crawl"),
        ("sqlite:", "sqlite:"),
        ("me@example.org", "me@example.org"),
    ],
)
def test_a_password_is_never_shown(text: str, shown: str) -> None:
    assert without_password(text) == shown
