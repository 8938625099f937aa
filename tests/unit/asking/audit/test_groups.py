"""One mistake is one entry, whatever the addresses of its pages are; entries are ordered by what fixing them gains."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

import quadloom
from quadloom.asking.audit.groups import DefectGroup, first_folder
from quadloom.asking.audit.report import AuditReport, PageFindings, audit, pages_of
from quadloom.model.finding import Finding
from quadloom.model.outcome import PageRow
from quadloom.model.url import Url
from quadloom.stores.protocols.catalog import Catalog


def report_of(found: dict[str, tuple[Finding, ...]]) -> AuditReport:
    def row(url: str) -> PageRow:
        parsed = Url.parse(url)
        return PageRow(fingerprint=parsed.fingerprint, key=parsed.key, href=parsed.href, host="a.example")

    return audit(PageFindings(row(url), findings) for url, findings in found.items())


def groups_of(found: dict[str, tuple[Finding, ...]]) -> tuple[DefectGroup, ...]:
    return report_of(found).groups


def dead(url: str) -> dict[str, tuple[Finding, ...]]:
    return {url: (Finding("fetch-status", "404 Not Found", "warning", "fetch"),)}


def test_pages_with_slugs_are_one_template() -> None:
    data = {
        "@context": "https://schema.org",
        "@type": "Event",
        "name": "Fair",
        "startDate": "12 May",
        "location": {"@type": "Place", "name": "Park", "telephon": "1"},
    }
    body = f'<title>Fair</title><script type="application/ld+json">{json.dumps(data)}</script>'.encode()
    found = {}
    for word in ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot"):
        url = f"https://a.example/blog/{word}-story/"
        found[url] = quadloom.transform(body, url=url, content_type="text/html").findings
    groups = [group for group in groups_of(found) if group.severity != "info"]
    assert sorted(group.code for group in groups) == ["bad-date", "schema-unknown-property"]
    assert {group.where for group in groups} == {"6 pages under /blog/"}


def test_dead_pages_are_grouped_by_their_first_folder() -> None:
    found: dict[str, tuple[Finding, ...]] = {}
    for number in range(1024):
        found |= dead(f"https://a.example/tag/{'abc'[number % 3]}{number}g/{'x/' * (number % 2)}")
    (group,) = groups_of(found)
    assert (group.pages, group.where) == (1024, "1024 pages under /tag/")


def test_few_dead_pages_of_many_folders_are_one_entry() -> None:
    found: dict[str, tuple[Finding, ...]] = {}
    for name in "abcdefghijklmnop":
        found |= dead(f"https://a.example/{name}/page")
    for number in range(5):
        found |= dead(f"https://a.example/tag/{number}")
    large, rest = sorted(groups_of(found), key=lambda group: group.pages)
    assert (large.where, rest.where) == ("5 pages under /tag/", "16 pages in 16 folders")
    assert {first_folder(url) for url in ("https://a/x", "https://a/x/", "https://a/")} == {"/"}
    assert first_folder("https://a/2026/05/news") == "/*/"


def test_entries_are_ordered_by_pages_importance_and_severity() -> None:
    many = Finding("bad-language", "x", "warning", path="WebPage › inLanguage")
    lost = Finding("schema-missing-required", "no image", "error", path="Recipe › image")
    small = Finding("bad-email", "y", "error", path="Person › email")
    remark = Finding("schema-superseded", "z", "info", path="Movie › actors")
    often = ((many, 8), (lost, 3), (small, 4), (remark, 1000))
    found = {
        f"https://a.example/{number}": tuple(finding for finding, pages in often if number < pages)
        for number in range(1000)
    }
    assert [group.code for group in groups_of(found)] == [
        "schema-missing-required",
        "bad-email",
        "bad-language",
        "schema-superseded",
    ]


def test_what_costs_a_rich_result_comes_before_what_is_more_frequent() -> None:
    escaped = Finding("value-escaped", "x", "warning", path="url")
    price = Finding("bad-price", "y", "error", type="Offer", path="Product › offers › price")
    mail = Finding("bad-email", "z", "error", type="Person", path="Person › email")
    often = ((escaped, 12), (mail, 3), (price, 1))
    found = {
        f"https://a.example/{number}": tuple(finding for finding, pages in often if number < pages)
        for number in range(12)
    }
    assert [group.code for group in groups_of(found)] == ["bad-price", "value-escaped", "bad-email"]


def test_the_score_is_never_100_beside_an_error() -> None:
    found: dict[str, tuple[Finding, ...]] = {f"https://a.example/{number}": () for number in range(50)}
    assert report_of(found).score is None, "pages that have neither data nor defects say nothing"
    report = report_of(found | dead("https://a.example/lost"))
    assert report.score is not None and report.score < 100 and report.sites[0].score < 100


def test_pages_that_are_not_to_be_found_are_no_defect() -> None:
    found = (Finding("noindex", "", "info", "index"), Finding("schema-missing-recommended", "", "info", path="Article"))

    class Rows:
        def __init__(self, *urls: str) -> None:
            self.urls = urls

        def scan(self, *, after: int, limit: int) -> Sequence[PageRow]:
            rows, self.urls = [row(url) for url in self.urls], ()
            return rows

    def row(url: str) -> PageRow:
        parsed = Url.parse(url)
        return PageRow(
            fingerprint=parsed.fingerprint, key=parsed.key, href=parsed.href, host="a.example", findings=found
        )

    def said(url: str) -> list[str]:
        (page,) = pages_of(cast(Catalog, Rows(url)))
        return [one.code for one in page.findings]

    for meant in ("cart/", "search?q=x", "?s=lamp", "my-account/lost-password/", "login", "shop/?add-to-cart=5"):
        assert said(f"https://a.example/{meant}") == []
    assert said("https://a.example/important") == ["noindex"]
    assert said("https://a.example/research/") == ["noindex"]
