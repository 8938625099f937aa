"""The quick way to join URLs agrees with the standard's parser, whatever the reference."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from quadloom.documents.syntaxes.iri import ReferenceResolver
from quadloom.model.url import resolve
from thoroughness import examples

BASES = st.sampled_from(
    [
        "https://site.example/folder/page",
        "https://site.example/",
        "http://site.example:8080/a/b/?q=/x/",
        "https://site.example/a?b#c/d",
        "http://user:pw@site.example/x/y",
        "http://[::1]/a/b",
        "http://127.0.0.1:9000/a/b",
    ]
)
PIECES = st.sampled_from(
    [
        "/", "//", ".", "..", "../", "./", "/../", "a", "B9", "-", "_", "~", "%2e", "%2E", "%41", "?", "#", "&", "=",
        ":", "@", ";", ",", "!", "http:", "https:", "http://", "https://", "HTTP://", "host.example", "Host.Example",
        "xn--a", "1.2.3.4", "0x7f.1", "a.1", ":80", ":443", "mailto:", "javascript:", " ", "\t", "\n", "\\",
        "é", "|", "^", "'", '"', "<", "{", "[", "*", "+", "$", "(", "xn--fsq.example", "a..b", "-a.example",
        "%", "%20", "%2", "E", "a.example.", "localhost", "\x00", "http", "https",
    ]
)  # fmt: skip
REFERENCES = st.one_of(st.lists(PIECES, max_size=8).map("".join), st.text(max_size=30))


@settings(max_examples=examples(300, 4000), deadline=None)
@given(BASES, REFERENCES)
@example("https://site.example/folder/page", "https://xn--a.example/x")
@example("https://site.example/folder/page", "http://1.2/x")
@example("https://site.example/folder/page", "http://a.example")
@example("https://site.example/folder/page", "http:foo")
@example("https://site.example/folder/page", "https:/foo")
@example("https://site.example/folder/page", "a/..")
@example("https://site.example/folder/page", "..")
@example("https://site.example/folder/page", "../")
@example("https://site.example/folder/page", "..//a:b")
@example("https://site.example/a/b/page", "../c?d=../e")
@example("https://site.example/a/b/", "../../c")
@example("https://site.example/page", "../c")
@example("https://site.example", "../c")
@example("https://site.example//a/b", "../../c")
@example("https://site.example//b", "../c")
@example("https://site.example/folder/page", "http://a.example:80/x")
@example("https://site.example/folder/page", "http://a.example:443/x")
@example("https://site.example/folder/page", "http://a.example:39835/x")
@example("https://site.example/folder/page", "http://a.example:65536/x")
@example("https://site.example/folder/page", "http://a.example:080/x")
@example("https://site.example/a/b/c/page", "../../../../../c#d")
@example("https://site.example/a/b/c/page", "./../x#../y")
@example("https://site.example/a/b/c/page", "./.././x")
@example("https://site.example/a/b/c/page", "./#x")
@example("https://site.example/a/b/c/page", "../?x")
@example("https://site.example/a/b/c/page", "a/../b")
@example("https://site.example/a/b/c/page", "a #b")
@example("https://site.example/a/b/c/page", "..//x")
@example("http://127.0.0.1:9000/a/b", "http://127.0.0.1:9000/x#y")
@example("http://127.0.0.1:9000/a/b", "http://127.1:9000/x")
@example("http://127.0.0.1:9000/a/b", "http://user@a.example/x")
@example("http://127.0.0.1:9000/a/b", "https://[::1]/x")
@example("http://127.0.0.1:9000/a/b", "http://a.example?b/x")
@example("https://site.example/a/b?c=d#e", "?f=g/h#i")
@example("https://site.example/a|b", "?f")
@example("https://site.example/a/b", "?")
@example("https://site.example/a/b", "C:x")
@example("https://site.example/a/b", "httpx://a.example/")
@example("https://site.example/a/b", "java\nscript:x")
@example("https://site.example/a/b", "//other.example/x")
@example("http://site.example/a/b", "///x")
@example("https://site.example/a/b", "//other.example")
@example("https://site.example/a/b", "//a%2eb/x")
@example("https://site.example/a/b", "//a%41b/x")
@example("https://site.example/a/b", "http://a")
@example("https://site.example/a/b", "https://a.example#x")
@example("https://site.example/a/b", "https://a.example?x")
@example("https://site.example/a/b", "/x%20y/%2e%2E/z")
@example("https://site.example/a/b", "x%zz%C3%A9?%2e")
def test_quick_join_is_the_standard_join(base: str, reference: str) -> None:
    assert ReferenceResolver(base)(reference) == resolve(reference, base)


FOLDER = "https://site.example/a/b/"


@settings(max_examples=examples(200, 2000), deadline=None)
@given(REFERENCES)
def test_both_implementations_join_the_same_references(reference: str) -> None:
    for base in (f"{FOLDER}page", f"{FOLDER}?q=1", FOLDER, f"{FOLDER}c/d", f"{FOLDER}other#x"):
        resolver = ReferenceResolver(base)
        expected = resolve(reference, base)
        assert resolver(reference) == expected
        (native,) = resolver.plain([reference])  # the second time each origin is known
        assert native == resolver.concatenated(reference)
        assert native in (None, expected)
