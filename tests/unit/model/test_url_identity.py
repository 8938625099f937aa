"""A page's identity never speaks of another host than the one that is asked."""

from __future__ import annotations

import pytest

from quadloom.model.url import Url, host_of


@pytest.mark.parametrize(
    "href",
    [
        "https://bank.example;sid=.evil.example/",
        "https://bank.example;jsessionid=1.evil.example/a;sid=2",
        "https://user;sid=1@evil.example/",
        "https://bank.example%3Bsid=@evil.example/",
    ],
)
def test_a_session_in_the_host_is_part_of_the_host(href: str) -> None:
    url = Url.parse(href)
    assert host_of(url.key) == url.host
    assert ";sid=2" not in url.key


def test_a_session_in_the_path_is_no_part_of_the_identity() -> None:
    assert Url.parse("https://shop.example/a;jsessionid=1/b").key == "https://shop.example/a/b"
