"""Rules come with their source, and with a date only if the source has one; a newer file takes their place."""

from __future__ import annotations

import re
from pathlib import Path

import quadloom
from quadloom.documents.checks.page import rules_of
from quadloom.documents.checks.profiles import FOLDER
from quadloom.model.finding import Finding
from quadloom.settings import AuditSettings, Settings
from quadloom_lab.markup import Described, page

SETTINGS = Settings()
HOW_TO: Described = {"@type": "HowTo", "name": "Change a tyre"}


def findings(thing: Described, url: str = "https://shop.example/a/b", settings: Settings = SETTINGS) -> list[Finding]:
    body = page(thing, "jsonld").encode()
    return list(quadloom.transform(body, url=url, content_type="text/html", settings=settings).findings)


def test_every_rule_names_whose_it_is_and_where_it_is_written() -> None:
    for rule in rules_of(AuditSettings()):
        assert rule.by and rule.source.startswith("https://"), rule
        assert re.fullmatch(r"(\d{4}-\d\d-\d\d)?", rule.date)
        assert re.fullmatch(r"(\d{4}-\d\d-\d\d|unverified)?", rule.retired)
        assert not rule.retired or rule.date, "who says that it is retired, says it on a day"


def test_a_retired_result_requires_nothing_and_says_since_when() -> None:
    (found,) = [one for one in findings(HOW_TO) if one.code != "data-not-visible"]
    assert (found.code, found.severity) == ("rich-result-retired", "info")
    assert found.message == "Google no longer shows How-to results since 2023-09-13"
    faq: Described = {"@type": "FAQPage", "name": "Questions"}
    assert "announced on 2023-08-08" in findings(faq)[0].message


def test_a_remark_names_the_vendor() -> None:
    (remark,) = [
        one for one in findings({"@type": "Course", "name": "A", "description": "B"}) if one.severity == "info"
    ]
    assert "recommended by Google" in remark.message


def test_an_organization_is_described_on_the_home_page() -> None:
    shop: Described = {"@type": "Organization", "name": "Shop"}
    for url, remarks in (
        ("https://shop.example/", 1),
        ("https://shop.example/index.html", 1),
        ("https://a.example/x/", 0),
    ):
        assert sum(one.code == "schema-missing-recommended" for one in findings(shop, url)) == remarks


def test_a_newer_file_takes_the_place_of_the_bundled_one(tmp_path: Path) -> None:
    text = (FOLDER / "rich-results.toml").read_text(encoding="utf-8").replace("2023-09-13", "2099-01-01")
    (tmp_path / "rich-results.toml").write_text(text, encoding="utf-8")
    settings = Settings(audit=AuditSettings(rules_folder=str(tmp_path)))
    assert any("since 2099-01-01" in one.message for one in findings(HOW_TO, settings=settings))


def test_two_vendors_that_want_the_same_are_one_remark() -> None:
    recipe: Described = {"@type": "Recipe", "name": "Rice", "image": "https://shop.example/rice.png"}
    remarks = [one.message for one in findings(recipe) if one.code == "schema-missing-recommended"]
    assert len(remarks) == 1 and "recipeIngredient" in remarks[0] and "Google" in remarks[0]
