from __future__ import annotations

import pytest

from quadloom.documents.link_headers import MAX_LINKS, HeaderLink, of_headers, parse

BASE = "http://e.org/dir/page"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('<a.ttl>; rel="alternate"; type="text/turtle"',
         [HeaderLink("http://e.org/dir/a.ttl", "alternate", "text/turtle")]),
        ("</x>; rel=describedby", [HeaderLink("http://e.org/x", "describedby")]),
        ("<http://a.org/>; rel=canonical, <http://b.org/>; rel=next",
         [HeaderLink("http://a.org/", "canonical"), HeaderLink("http://b.org/", "next")]),
        ('<a,b;c>; rel="x y"', [HeaderLink("http://e.org/dir/a,b;c", "x y")]),
        ('<a>; title="q\\"u, <o>; te"; rel=next', [HeaderLink("http://e.org/dir/a", "next", title='q"u, <o>; te')]),
        ("<a>; REL=Alternate ; Type=Text/HTML ; hreflang=de",
         [HeaderLink("http://e.org/dir/a", "alternate", "text/html")]),
        ("<a>; rel=first; rel=second", [HeaderLink("http://e.org/dir/a", "first")]),
        ('<a>; rel=up; anchor="#part"', [HeaderLink("http://e.org/dir/a", "up", anchor="http://e.org/dir/page")]),
        ("<a>", []), ("<a>; rel", []), ("<a>; rel=", []), ("<a", []), ("rel=next", []), ("", []),
        ("<mailto:a@b>; rel=me", []), (";;,,<a>;;rel=b;,", [HeaderLink("http://e.org/dir/a", "b")]),
        ("<>; rel=self", [HeaderLink(BASE, "self")]),
        ('<a>; rel="unclosed', [HeaderLink("http://e.org/dir/a", "unclosed")]),
    ],
)  # fmt: skip
def test_value(value: str, expected: list[HeaderLink]) -> None:
    assert list(parse(value, BASE)) == expected


def test_all_link_headers_up_to_the_limit() -> None:
    headers = [("link", "<a>; rel=b"), ("content-type", "x"), ("link", ", ".join(f"<{n}>; rel=c" for n in range(200)))]
    links = of_headers(headers, BASE)
    assert len(links) == MAX_LINKS
    assert links[0].rel == "b"
