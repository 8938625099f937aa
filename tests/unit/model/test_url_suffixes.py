"""Registered domains: the same answers as the package that brings the list."""

from __future__ import annotations

import pytest
from publicsuffixlist import PSLFILE, PublicSuffixList

from quadloom.model.url import registered_domain

PACKAGE = PublicSuffixList()


def _rules() -> list[str]:
    with open(PSLFILE, encoding="utf-8") as file:
        return [line.split()[0] for line in file if line.strip() and not line.startswith("//")]


def test_every_rule_gives_what_the_package_gives() -> None:
    for rule in _rules():
        suffix = rule.removeprefix("!").replace("*", "wild")
        spellings = (suffix, suffix.encode("idna").decode()) if not suffix.isascii() else (suffix,)
        for spelling in spellings:
            for name in (spelling, f"a.{spelling}", f"c.b.a.{spelling}", spelling.partition(".")[2] or spelling):
                assert registered_domain(name) == PACKAGE.privatesuffix(name), name


@pytest.mark.parametrize(
    ("name", "domain"),
    [
        ("www.example.co.uk", "example.co.uk"),
        ("WWW.Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("co.uk", None),
        ("com", None),
        ("a.b.unknown-tld", "b.unknown-tld"),
        ("city.kobe.jp", "city.kobe.jp"),
        ("x.city.kobe.jp", "city.kobe.jp"),
        ("b.other.kobe.jp", "b.other.kobe.jp"),
        ("other.kobe.jp", None),
        ("kobe.jp", None),
        ("a..com", None),
        ("", None),
        ("www.食狮.公司.cn", "食狮.公司.cn"),
        ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
        ("www.xn--99999999.com", "xn--99999999.com"),  # no Punycode
        ("alice.github.io", "alice.github.io"),
    ],
)
def test_examples_of_the_list(name: str, domain: str | None) -> None:
    assert registered_domain(name) == domain
