"""Keys of an index of archive records, as the Internet Archive's tools compute them."""

from __future__ import annotations

import pytest

from quadloom.asking.export.cdxj import SortedLines, surt


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.Example.com/", "com,example)/"),
        ("https://www2.example.com:443/A/b/?b=2&a=1", "com,example)/a/b?a=1&b=2"),
        ("http://example.com:8080//x", "com,example:8080)/x"),
        ("http://127.0.0.1:80/a", "1,0,0,127)/a"),
        ("https://münchen.example/ä", "example,xn--mnchen-3ya)/%c3%a4"),
        ("http://[broken", "http://[broken"),
    ],
)
def test_surt(url: str, key: str) -> None:
    assert surt(url) == key


def test_lines_are_sorted_beyond_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadloom.asking.export.cdxj._BATCH", 3)
    lines = SortedLines()
    for number in (7, 3, 9, 1, 8, 2, 5):
        lines.add(b"%d\n" % number)
    assert list(lines) == [b"1\n", b"2\n", b"3\n", b"5\n", b"7\n", b"8\n", b"9\n"]
    lines.close()
