"""Suspects by suffix, link and site."""

from __future__ import annotations

import pytest

from quadloom.planning.policy.suspects import FirstRead, SuspectModel, suffix_of


@pytest.mark.parametrize(
    ("href", "suffix"),
    [
        ("https://a.org/data.RDF", ".rdf"),
        ("https://a.org/d/feed.xml?page=2", ".xml"),
        ("https://a.org", ""),
        ("https://a.org/", ""),
        ("https://a.org/v1.2/page", ""),
        ("https://a.org/name.with-a-very-long-tail", ""),
        ("https://a.org/trailing.", ""),
    ],
)
def test_suffix(href: str, suffix: str) -> None:
    assert suffix_of(href) == suffix


def test_the_papers_rules() -> None:
    suspects = SuspectModel()
    assert suspects.suspicion("https://a.org/x.xml", "a.org").suspect
    assert suspects.suspicion("https://a.org/x.rss", "a.org").suspect
    assert suspects.suspicion("https://a.org/x", "a.org", from_data=True).suspect  # unknown suffix on a data page
    assert not suspects.suspicion("https://a.org/x", "a.org").suspect
    assert suspects.suspicion("https://a.org/x", "a.org", "feed").suspect
    assert not suspects.suspicion("https://a.org/x.png", "a.org", from_data=True).suspect


def test_a_sites_record_turns_the_verdict() -> None:
    suspects = SuspectModel()
    for n in range(40):
        suspects.learn([FirstRead(f"https://data.org/{n}", "data.org", "plain", False, "turtle")])
        suspects.learn([FirstRead(f"https://dull.org/{n}", "dull.org", "plain", False, "html")])
        suspects.learn([FirstRead(f"https://dull.org/{n}.xml", "dull.org", "plain", False, "html")])
    assert suspects.suspicion("https://data.org/new", "data.org").suspect
    assert not suspects.suspicion("https://dull.org/new", "dull.org").suspect
    assert not suspects.suspicion("https://dull.org/new.xml", "dull.org").suspect
    again = SuspectModel(suspects.dump())
    assert again.suspicion("https://data.org/new", "data.org") == suspects.suspicion("https://data.org/new", "data.org")


def test_memory_is_bounded_and_witnesses_are_named() -> None:
    suspects = SuspectModel(limit=50)
    for n in range(1000):
        suspects.learn([FirstRead(f"https://a{n}.org/x.s{n}", f"a{n}.org", "plain", False, "xml")])
    assert len(suspects.dump()) <= 53
    names = [name for name, _ in suspects.suspicion("https://a.org/x.ttl", "a.org", "feed").witnesses]
    assert names == ["suffix .ttl", "link feed", "site a.org"]
