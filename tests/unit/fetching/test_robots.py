"""RFC 9309 and Google's published rules as one table: a file, a URL, and whether it may be fetched."""

from __future__ import annotations

import time

import pytest

from quadloom.fetching.robots import Robots, RobotsRow, matches, normalise, parse, path_of, verdict

ALL = "User-agent: *\n"
LONG = "User-agent: *\nDisallow: /" + "a" * 20_000 + "\nDisallow: /after\n"

CASES = [
    # RFC 9309 2.2.1: which group
    ("no file at all allows", "", "/x", True),
    ("own group by token", "User-agent: quadloom\nDisallow: /x", "/x", False),
    ("token is case-insensitive", "User-agent: QUADLOOM\nDisallow: /x", "/x", False),
    ("version after the token is ignored", "User-agent: Quadloom/2.1\nDisallow: /x", "/x", False),
    ("a longer token is another crawler", "User-agent: quadloomer\nDisallow: /", "/x", True),
    ("a shorter token is another crawler", "User-agent: quad\nDisallow: /", "/x", True),
    ("star group where none is ours", "User-agent: *\nDisallow: /x", "/x", False),
    ("own group hides the star group", ALL + "Disallow: /\n\nUser-agent: quadloom\nDisallow: /y", "/x", True),
    ("own group hides it in either order", "User-agent: quadloom\nDisallow: /y\n\n" + ALL + "Disallow: /", "/x", True),
    ("an empty own group allows all", ALL + "Disallow: /\n\nUser-agent: quadloom\n", "/x", True),
    ("own groups are merged", "User-agent: quadloom\nDisallow: /a\n\nUser-agent: b\nDisallow: /b\n\n"
     "User-agent: quadloom\nDisallow: /c", "/c", False),
    ("merged groups keep the first part", "User-agent: quadloom\nDisallow: /a\n\nUser-agent: quadloom\nDisallow: /c",
     "/a", False),
    ("star groups are merged", ALL + "Disallow: /a\n\nUser-agent: b\nDisallow: /\n\n" + ALL + "Disallow: /c", "/a",
     False),
    ("several agents share a group", "User-agent: a\nUser-agent: quadloom\nDisallow: /x", "/x", False),
    ("ours first in a shared group", "User-agent: quadloom\nUser-agent: a\nDisallow: /x", "/x", False),
    ("another crawler's group", "User-agent: a\nDisallow: /", "/x", True),
    ("rules before any group are ignored", "Disallow: /x\nUser-agent: *\nDisallow: /y", "/x", True),
    ("star with words after it", "User-agent: * all of you\nDisallow: /x", "/x", False),
    ("other records do not end a group's head",
     "User-agent: quadloom\nSitemap: http://e.org/s\nUser-agent: b\nDisallow: /x", "/x", False),
    ("a crawl delay does not end it either",
     "User-agent: quadloom\nCrawl-delay: 3\nUser-agent: b\nDisallow: /x", "/x", False),
    ("unknown records are skipped", "User-agent: quadloom\nNoindex: /y\nDisallow: /x", "/x", False),
    ("blank lines do not end a group", "User-agent: quadloom\n\n\nDisallow: /x", "/x", False),
    ("a new agent line after rules starts a group", "User-agent: quadloom\nDisallow: /a\nUser-agent: b\nDisallow: /x",
     "/x", True),
    # 2.2.2: longest match
    ("empty disallow allows", ALL + "Disallow:", "/x", True),
    ("empty allow says nothing", ALL + "Allow:\nDisallow: /x", "/x", False),
    ("prefix match", ALL + "Disallow: /fish", "/fishheads/yummy.html", False),
    ("case matters in paths", ALL + "Disallow: /fish", "/Fish.asp", True),
    ("not a substring match", ALL + "Disallow: /fish", "/catfish", True),
    ("a trailing star changes nothing", ALL + "Disallow: /fish*", "/fishheads", False),
    ("a folder", ALL + "Disallow: /fish/", "/fish/salmon.htm", False),
    ("a folder is not the file", ALL + "Disallow: /fish/", "/fish", True),
    ("a folder is not fish.html", ALL + "Disallow: /fish/", "/fish.html", True),
    ("longest wins for allow", ALL + "Allow: /p\nDisallow: /", "/page", True),
    ("longest wins in either order", ALL + "Disallow: /\nAllow: /p", "/page", True),
    ("longest wins for disallow", ALL + "Allow: /x\nDisallow: /x/page", "/x/page", False),
    ("allow wins ties", ALL + "Disallow: /folder\nAllow: /folder", "/folder/page", True),
    ("allow wins ties in either order", ALL + "Allow: /folder\nDisallow: /folder", "/folder/page", True),
    ("length counts wildcards", ALL + "Allow: /page\nDisallow: /*.htm", "/page.htm", False),
    ("equal length wildcard", ALL + "Allow: /page\nDisallow: /*.ph", "/page.php5", True),
    ("root only by dollar", ALL + "Allow: /$\nDisallow: /", "/", True),
    ("root only leaves the rest", ALL + "Allow: /$\nDisallow: /", "/page.htm", False),
    ("RFC 5.2 longest match", ALL + "Allow: /example/page/\nDisallow: /example/page/disallowed.gif",
     "/example/page/disallowed.gif", False),
    ("RFC 5.2 the folder itself", ALL + "Allow: /example/page/\nDisallow: /example/page/disallowed.gif",
     "/example/page/", True),
    ("query belongs to the path", ALL + "Disallow: /search?q=", "/search?q=a", False),
    ("another query", ALL + "Disallow: /search?q=", "/search?p=a", True),
    ("a rule without slash matches nothing", ALL + "Disallow: x", "/x", True),
    ("robots.txt itself is always allowed", ALL + "Disallow: /", "/robots.txt", True),
    # 2.2.3: special characters
    ("star in the middle", ALL + "Disallow: /fish*.php", "/fishheads/catfish.php?parameters", False),
    ("star is case-sensitive around it", ALL + "Disallow: /fish*.php", "/Fish.PHP", True),
    ("star at the start", ALL + "Disallow: /*.php", "/folder/any.php.file.html", False),
    ("star needs its suffix", ALL + "Disallow: /*.php", "/windows.PHP", True),
    ("dollar is the end", ALL + "Disallow: /*.php$", "/folder/filename.php", False),
    ("dollar refuses a query", ALL + "Disallow: /*.php$", "/filename.php?parameters", True),
    ("dollar refuses a longer name", ALL + "Disallow: /*.php$", "/filename.php5", True),
    ("dollar refuses a slash", ALL + "Disallow: /*.php$", "/filename.php/", True),
    ("a star may match nothing", ALL + "Disallow: /a*b", "/ab", False),
    ("stars in a row are one", ALL + "Disallow: /a***b", "/axxb", False),
    ("anchored last piece after an early look-alike", ALL + "Disallow: /*.php$", "/a.php.php", False),
    ("pieces may not overlap", ALL + "Disallow: /ab*ba$", "/aba", True),
    ("dollar in the middle means itself", ALL + "Disallow: /a$b", "/a$bc", False),
    ("a star written as %2A means itself", ALL + "Disallow: /file-with-a-%2A.html", "/file-with-a-*.html", False),
    ("and matches no other character", ALL + "Disallow: /file-with-a-%2A.html", "/file-with-a-b.html", True),
    ("a dollar written as %24 means itself", ALL + "Disallow: /foo-%24", "/foo-$", False),
    # 2.2.2: percent-encoding
    ("encoded letters in the rule", ALL + "Disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", False),
    ("encoded letters in the URL", ALL + "Disallow: /foo/bar/baz", "/foo/bar/%62%61%7a", False),
    ("UTF-8 in the rule", ALL + "Disallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", False),
    ("UTF-8 encoded in both", ALL + "Disallow: /foo/bar/%E3%83%84", "/foo/bar/%e3%83%84", False),
    ("hex digits in any case", ALL + "Disallow: /%c3%a4", "/%C3%A4", False),
    ("an encoded slash is no slash", ALL + "Disallow: /a%2Fb", "/a/b", True),
    ("reserved characters in a query, encoded rule", ALL + "Disallow: /foo?baz=https%3A%2F%2Ffoo.bar",
     "/foo?baz=https://foo.bar", False),
    ("reserved characters in a query, encoded URL", ALL + "Disallow: /foo?baz=https://foo.bar",
     "/foo?baz=https%3A%2F%2Ffoo.bar", False),
    ("reserved characters in a query, both plain", ALL + "Disallow: /foo?baz=https://foo.bar",
     "/foo?baz=https://foo.bar", False),
    # 2.2.4, 2.2.5: lines
    ("byte order mark", "\ufeffUser-agent: *\nDisallow: /x", "/x", False),
    ("carriage returns only", "User-agent: *\rDisallow: /x\r", "/x", False),
    ("carriage return and line feed", "User-agent: *\r\nDisallow: /x\r\n", "/x", False),
    ("no line end at the end", ALL + "Disallow: /x", "/x", False),
    ("comment after a rule", ALL + "Disallow: /x # not here", "/x", False),
    ("comment lines", "# hello\n" + ALL + "# more\nDisallow: /x", "/x", False),
    ("spaces around all parts", "  User-agent :  *  \n\t Disallow\t:\t/x  ", "/x", False),
    ("directives in any case", "USER-AGENT: *\ndIsAlLoW: /x", "/x", False),
    ("missing colon", "User-agent *\nDisallow /x", "/x", False),
    ("missing hyphen", "useragent: *\nDisallow: /x", "/x", False),
    ("misspelt disallow", ALL + "Dissallow: /x\nDisalow: /y", "/y", False),
    ("NUL bytes", "User-agent: *\nDis\0allow: /x", "/x", False),
    ("HTML instead of a robots.txt", "<!doctype html><html><title>Not: found</title></html>", "/x", True),
    ("a line over 16 KiB is cut, the next still counts", LONG, "/after", False),
    ("path parameters", ALL + "Disallow: /a;b", "/a;b/c", False),
]  # fmt: skip


def allows(robots: Robots, href: str) -> bool:
    return verdict(robots.rules, path_of(href)) is None


@pytest.mark.parametrize(("name", "text", "path", "allowed"), CASES, ids=[case[0] for case in CASES])
def test_rule(name: str, text: str, path: str, allowed: bool) -> None:
    assert allows(parse(text.encode(), "Quadloom"), f"http://example.org{path}") is allowed, name


def test_the_table_is_as_long_as_promised() -> None:
    assert len(CASES) >= 60 and len({case[0] for case in CASES}) == len(CASES)


def test_only_the_first_500_kib_are_read_and_no_half_rule_is_made() -> None:
    filler = b"# " + b"x" * 1021 + b"\n"
    data = b"User-agent: *\nDisallow: /early\n" + filler * 499
    data += b"Disallow: /" + b"y" * (500 * 1024 - len(data) - 11 - 3) + b"cut off in the middle\nDisallow: /late\n"
    robots = parse(data, "Quadloom")
    assert not allows(robots, "http://e.org/early")
    assert allows(robots, "http://e.org/late")
    assert [rule.pattern for rule in robots.rules] == ["/early"]


def test_sitemaps_and_delay_are_found_wherever_they_stand() -> None:
    text = b"Sitemap: http://e.org/a.xml\nUser-agent: *\nCrawl-delay: 2.5\nDisallow: /x\nsite-map: http://e.org/b.xml\n"
    robots = parse(text, "Quadloom")
    assert robots.sitemaps == ("http://e.org/a.xml", "http://e.org/b.xml")
    assert robots.crawl_delay == 2.5
    own = parse(text + b"User-agent: quadloom\nCrawl-delay: 7200\n", "Quadloom")
    assert own.crawl_delay == 7200.0
    assert parse(b"User-agent: *\nCrawl-delay: soon", "Quadloom").crawl_delay == 0.0
    assert parse(b"User-agent: *\nCrawl-delay: nan", "Quadloom").crawl_delay == 0.0


def test_many_stars_take_no_time() -> None:
    pattern = "/" + "*a" * 400 + "*b$"
    path = "/" + "a" * 2000
    start = time.process_time()
    for _ in range(20):
        assert not matches(pattern, path)
    assert time.process_time() - start < 0.5


def test_the_rule_that_forbids_is_named() -> None:
    robots = parse(b"User-agent: *\nDisallow: /a\nDisallow: /a/b", "Quadloom")
    rule = verdict(robots.rules, path_of("http://e.org/a/b/c"))
    assert rule is not None and rule.pattern == "/a/b"


def test_invalid_utf8_is_compared_byte_by_byte() -> None:
    assert not allows(parse(b"User-agent: *\nDisallow: /\xe4", "Quadloom"), "http://e.org/%E4")
    assert normalise("/ä".encode().decode("latin-1")) == "/%C3%A4"


def test_a_row_survives_encoding_and_rubbish_is_no_row() -> None:
    robots = parse(b"User-agent: *\nAllow: /a\nDisallow: /\nCrawl-delay: 4\nSitemap: http://e.org/s", "Quadloom")
    row = RobotsRow("http://e.org", "found", 1.0, 2.0, robots)
    assert RobotsRow.decode(row.encode()) == row
    assert RobotsRow.decode(b"\x93rubbish") is None
    assert RobotsRow.decode(b"") is None
