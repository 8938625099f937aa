"""The audit groups by template, scores by its formula, counts new and fixed, and writes formats that others read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from xml.etree import ElementTree

import msgspec
import pytest

import quadloom
from quadloom.asking.audit import formats
from quadloom.asking.audit.formats import GravestFindings, junit, sarif
from quadloom.asking.audit.report import AuditReport, PageFindings, audit
from quadloom.cli.asking.audit_text import report_lines
from quadloom.model import wire
from quadloom.model.finding import Finding, dated, fixed, named
from quadloom.model.outcome import PageRow
from quadloom.model.url import Url, belongs_to
from quadloom.web.audit_report import audit_html
from quadloom_lab.markup import page


def row(url: str, price: str, *, before: PageRow | None = None, at: float = 1e9) -> PageRow:
    offer = {"@type": "Offer", "price": price, "priceCurrency": "EUR"}
    body = page({"@type": "Product", "name": "Lamp", "offers": offer}, "microdata")
    seen = quadloom.transform(body.encode(), url=url, content_type="text/html")
    parsed = Url.parse(url)
    old = before.findings if before else ()
    return PageRow(
        fingerprint=parsed.fingerprint,
        key=parsed.key,
        href=parsed.href,
        host="shop.example",
        fetched_at=at,
        visits=2 if before else 1,
        findings=dated(seen.findings, old, at),
        fixed=fixed(seen.findings, old, before.fixed if before else (), at),
        audit=seen.audit,
    )


def report_of(*rows: PageRow, since: float = 0.0) -> AuditReport:
    return audit((PageFindings(one, one.findings) for one in rows), since=since)


def test_one_mistake_of_a_template_is_one_group() -> None:
    rows = [row(f"https://shop.example/products/{number}", "12 €") for number in range(5)]
    report = report_of(*rows, row("https://shop.example/products/9", "12.00"))
    first = report.groups[0]
    assert (first.code, first.severity, first.pages, len(first.examples)) == ("bad-price", "error", 5, 3)
    assert first.headline == "5 pages under /products/: offers: price is not a plain number"
    assert first.path == "Product › offers › price"
    assert report.sites[0].score == 16  # of 100 / 6, rounded down
    assert [(one.feature, one.pages, one.eligible) for one in report.sites[0].features] == [("Product snippet", 6, 1)]


def test_a_group_names_no_value_that_only_one_page_has() -> None:
    finding = Finding(
        "data-not-visible",
        "price '{}' is not on the visible page",
        "warning",
        "transform",
        path="Product › offers › price",
    )

    def headline(prices: list[str]) -> str:
        (group,) = audit(
            PageFindings(
                row(f"https://shop.example/products/{number}", "1.00"),
                (msgspec.structs.replace(finding, message=finding.message.format(price), found=price),),
            )
            for number, price in enumerate(prices)
        ).groups
        return group.headline

    assert headline(["1.00", "2.00"]) == "2 pages under /products/: offers: price is not on the visible page"
    assert headline(["7.00", "7.00"]) == "2 pages under /products/: offers: price '7.00' is not on the visible page"


def test_an_error_in_a_required_value_costs_the_rich_result() -> None:
    offer = {"@type": "Offer", "price": "12 €", "priceCurrency": "EUR"}
    rating = {"@type": "AggregateRating", "ratingValue": "4", "ratingCount": "3"}
    lamp = {"@type": "Product", "name": "Lamp", "offers": offer, "brand": {"@type": "Brand", "nme": "Lux"}}
    right = {**lamp, "offers": {**offer, "price": "12.00"}}

    def eligible(thing: Mapping[str, object]) -> dict[str, bool]:
        seen = quadloom.transform(
            page(dict(thing), "jsonld").encode(), url="https://shop.example/1", content_type="text/html"
        )
        return dict(seen.audit.features)

    assert eligible(lamp) == {"Product snippet": False}
    assert eligible(right) == {"Product snippet": True}  # the mistake in its brand is another matter
    assert eligible({**lamp, "aggregateRating": rating}) == {"Product snippet": True}


def test_hosts_belong_to_sites_by_domain_and_with_or_without_port() -> None:
    assert belongs_to("www.shop.example", ["shop.example"])
    assert belongs_to("127.0.0.1:8000", ["127.0.0.1"])
    assert belongs_to("shop.example", [])
    assert not belongs_to("shop.example", ["other.example"])


def test_a_first_audit_compares_nothing() -> None:
    first = report_of(row("https://shop.example/products/1", "12 €"))
    assert first.sites[0].compared == 0
    assert "still there" not in next(report_lines(first, 5))
    bad = row("https://shop.example/products/1", "12 €")
    again = report_of(row("https://shop.example/products/1", "12 €", before=bad, at=1e9 + 9))
    assert "0 new, 3 still there, 0 fixed" in next(report_lines(again, 5))


def test_new_still_and_fixed_between_two_visits() -> None:
    url = "https://shop.example/products/1"
    bad = row(url, "12 €", at=1e9)
    worse = row(url, "13 €", before=bad, at=1e9 + 86400)
    good = row(url, "13.00", before=worse, at=1e9 + 2 * 86400)
    old = {one.code: one.since for one in worse.findings}
    assert old["bad-price"] == 1e9  # another value, the same defect
    assert [(one.code, one.since, one.fixed_at) for one in good.fixed] == [("bad-price", 1e9, 1e9 + 2 * 86400)]
    assert report_of(worse).sites[0].new == 0
    again = row(url, "14 €", before=good, at=1e9 + 3 * 86400)
    assert report_of(again).sites[0].new == 1
    assert report_of(good).sites[0].fixed == 1
    assert [(point.errors, point.warnings) for point in report_of(good).trend] == [(1, 0), (0, 0)]
    improved = [one.headline for one in report_of(good).improved]
    assert improved == ["1 page under /products/: bad-price (Product › offers › price)"]
    assert f"<li>{improved[0]}</li>" in audit_html(report_of(good), title="x", now=1e9)
    assert "✓ fixed  shop.example" in list(report_lines(report_of(good), 5))


def test_two_visits_of_one_day_are_two_points() -> None:
    url = "https://shop.example/products/1"
    bad = row(url, "12 €", at=1e9)
    good = row(url, "13.00", before=bad, at=1e9 + 600)
    trend = report_of(good).trend
    assert [(point.errors, point.warnings) for point in trend] == [(1, 0), (0, 0)]
    assert trend[1].at - trend[0].at == 600


def test_formats_can_be_read_by_other_programs() -> None:
    report = report_of(row("https://shop.example/products/1", "12 €"))
    suite = ElementTree.fromstring(junit(report))[0]
    assert (suite.get("name"), suite.get("failures")) == ("shop.example", "1")
    text = audit_html(report, title="shop <x>", now=1e9)
    assert "shop &lt;x&gt;" in text
    assert "1 page at https://shop.example/products/1" in text
    assert '<pre tabindex="0">' in text and "<pre>" not in text  # what scrolls can be reached with the keyboard
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|\bsrc=", text), "nothing is fetched"


def test_sarif_has_one_result_for_each_finding() -> None:
    rows = [row(f"https://shop.example/products/{number}", "12 €") for number in range(5)]
    gravest = GravestFindings()
    report = audit(gravest.through(PageFindings(one, one.findings) for one in rows))
    document = json.loads(sarif(gravest))
    (run,) = document["runs"]
    assert document["version"] == "2.1.0" and run["tool"]["driver"]["name"] == "Quadloom"
    assert len(run["results"]) == sum(group.findings for group in report.groups) == run["properties"]["findings"]
    assert run["properties"]["leftOut"] == 0
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    pages = set()
    prints = set()
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"] and result["message"]["text"]
        assert result["level"] in ("error", "warning", "note")
        (location,) = result["locations"]
        region = location["physicalLocation"].get("region")
        assert region is None or (region["startLine"] >= 1 and region["startColumn"] >= 1)
        if result["ruleId"] == "bad-price":
            assert region["startLine"] > 1 and "12 €" in region["snippet"]["text"]
            pages.add(location["physicalLocation"]["artifactLocation"]["uri"])
        prints.add(tuple(sorted(result["partialFingerprints"].values())))
    assert pages == {one.href for one in rows}
    assert len(prints) == len(run["results"])
    assert [one["level"] for one in run["results"]] == sorted(one["level"] for one in run["results"])  # error, note


def test_sarif_keeps_the_gravest_and_counts_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MOST_RESULTS", 3)
    rows = [row(f"https://shop.example/products/{number}", "12 €") for number in range(5)]
    gravest = GravestFindings()
    audit(gravest.through(PageFindings(one, one.findings) for one in rows))
    (run,) = json.loads(sarif(gravest))["runs"]
    assert [one["ruleId"] for one in run["results"]] == ["bad-price"] * 3
    assert run["properties"]["leftOut"] == run["properties"]["findings"] - 3 > 0


def test_findings_are_objects_in_json_and_old_ones_stay_readable() -> None:
    old = msgspec.msgpack.encode(["odd-date", "text", "warning", "transform", 4, 0, "", "jsonld"])
    finding = wire.decode(old, Finding)
    assert (finding.code, finding.line, finding.path) == ("odd-date", 4, "")
    shown = msgspec.to_builtins(named({"findings": [finding]}, "https://e.example/"))
    assert isinstance(shown, dict)
    assert shown["findings"][0]["code"] == "odd-date"
    assert shown["findings"][0]["page"] == "https://e.example/"


def test_the_report_holds_no_character_that_steers_or_deceives() -> None:
    attack = "\x1b]0;owned\x07\x9b31m\u202egnp.exe"
    text = audit_html(report_of(), title=attack, now=1e9)
    assert "gnp.exe" in text and not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}
