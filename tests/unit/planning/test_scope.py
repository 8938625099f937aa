"""Scope: every rule once, in words; patterns; bytes and back."""

from __future__ import annotations

import time

import pytest

from quadloom.errors import SettingsError
from quadloom.model.url import host_of
from quadloom.planning.scope import Scope, ScopeRecord
from quadloom.settings import CrawlSettings

SEED = "https://www.example.org/start"


def refused(scope: Scope, href: str, depth: int = 1) -> str:
    return scope.verdict(href, host_of(href), depth) or ""


@pytest.mark.parametrize(
    ("reach", "href", "inside"),
    [
        ("page", SEED, True),
        ("page", SEED + "?utm_source=x", True),
        ("page", "https://www.example.org/other", False),
        ("host", "http://www.example.org/other", True),
        ("host", "https://data.example.org/", False),
        ("host", "https://www.example.org:8443/", False),
        ("site", "https://data.example.org/", True),
        ("site", "https://example.com/", False),
        ("site", "https://notexample.org/", False),
        ("any", "https://elsewhere.test/", True),
    ],
)
def test_reach(reach: str, href: str, inside: bool) -> None:
    scope = Scope(ScopeRecord(reach=reach, seeds=(SEED,)))  # type: ignore[arg-type]
    assert (refused(scope, href) == "") is inside
    if not inside:
        assert f"`{reach}`" in refused(scope, href)


@pytest.mark.parametrize(
    ("pattern", "href", "matches"),
    [
        ("https://www.example.org/docs/*", "https://www.example.org/docs/a/b?c", True),
        ("https://www.example.org/docs/*", "http://www.example.org/docs/a", False),
        ("www.example.org/docs/*", "http://www.example.org/docs/a", True),
        ("www.example.org/docs/*", "http://www.example.org/docs", False),
        ("/private/*", "https://any.example.org/private/x", True),
        ("/private/*", "https://any.example.org/public/private/x", False),
        ("*.pdf", "https://www.example.org/a.pdf", True),
        ("*.pdf", "https://www.example.org/a.pdf?x", False),
        ("*/a?b=*", "https://www.example.org/a?b=1", True),
        ("*/a?b=*", "https://www.example.org/axb=1", False),
        (r"re:/20\d\d/", "https://www.example.org/2024/x", True),
        (r"re:^https://www\.", "http://www.example.org/", False),
    ],
)
def test_patterns(pattern: str, href: str, matches: bool) -> None:
    assert (refused(Scope(ScopeRecord("any", include=(pattern,))), href) == "") is matches
    verdict = refused(Scope(ScopeRecord("any", exclude=("*nothing*", pattern))), href)
    assert verdict == (f"is excluded by {pattern}" if matches else "")


def test_depth() -> None:
    scope = Scope(ScopeRecord("any", max_depth=2))
    assert refused(scope, SEED, 2) == ""
    assert refused(scope, SEED, 3) == "depth 3 is over max_depth 2"


def test_further_hosts_count_like_a_seeds() -> None:
    scope = Scope(ScopeRecord("host", (SEED,), hosts=("*.wiki.example", "one.example")))
    assert refused(scope, "http://en.wiki.example/") == ""
    assert refused(scope, "http://one.example/x") == ""
    assert refused(scope, "http://two.one.example/")


def test_bytes_and_back() -> None:
    scope = Scope.from_settings(
        CrawlSettings(scope="host", include=["*.html"], exclude=["re:zz+"], max_depth=4), [SEED, SEED]
    )
    again = Scope.decode(scope.encode())
    assert again.record == scope.record
    assert again.record.seeds == (SEED,)
    with pytest.raises(SettingsError):
        Scope.decode(b"not a scope")


@pytest.mark.parametrize("pattern", ["re:(", "re:(?<=look)behind", r"re:(a)\1"])
def test_what_is_not_a_pattern_is_reported(pattern: str) -> None:
    with pytest.raises(SettingsError, match="not a pattern") as refusal:
        Scope(ScopeRecord(exclude=(pattern,)))
    assert refusal.value.hint


def test_a_hostile_pattern_stays_linear() -> None:
    scope = Scope(ScopeRecord("any", exclude=("re:(a+)+$", "*a*a*a*a*a*a*a*a*a*b")))
    started = time.process_time()
    refused(scope, "http://a.example/" + "a" * 2000 + "!")
    assert time.process_time() - started < 1.0
