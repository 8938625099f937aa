from __future__ import annotations

import pytest

from quadloom.fetching.transport import by_default, wanted_types


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("text/html; charset=utf-8", True), ("", True), ("application/octet-stream", True), ("application/gzip", True),
        ("image/svg+xml", True), ("application/pdf", True), ("Video/MP4", False), ("audio/ogg;codecs=opus", False),
        ("font/woff2", False), ("image/png", False), ("IMAGE/JPEG", False), ("application/x-iso9660-image", False),
    ],
)  # fmt: skip
def test_only_what_can_hold_neither_data_nor_text_is_cut(content_type: str, expected: bool) -> None:
    assert by_default(content_type) is expected


def test_users_want_more_types_and_fewer() -> None:
    wanted = wanted_types(["image/*"], ["image/x-*", "application/pdf"])
    assert wanted("image/gif")
    assert not wanted("image/x-icon")
    assert not wanted("application/pdf")
    assert not wanted("video/mp4")
