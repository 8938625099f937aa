"""What `quadloom why` says about robots.txt if the configuration has an exception for a site, and about shares."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from quadloom.settings import FreshnessSettings, PolitenessSettings, Settings, SiteSettings
from quadloom.warehouse import Warehouse

Robots = Literal["obey", "ignore"]


@pytest.mark.parametrize(
    ("everywhere", "here", "verdict"),
    [
        ("obey", None, "not known yet"),
        ("obey", "ignore", "not asked"),
        ("ignore", None, "not asked"),
        ("ignore", "obey", "not known yet"),
    ],
)
def test_the_settings_of_a_site_decide_about_robots(
    tmp_path: Path, everywhere: Robots, here: Robots | None, verdict: str
) -> None:
    settings = Settings(
        politeness=PolitenessSettings(robots=everywhere), site=[SiteSettings(match="own.example", robots=here)]
    )
    with Warehouse.open(tmp_path, settings=settings) as warehouse:
        warehouse.requests.add_seeds(["https://own.example/"])
        reasons = warehouse.requests.why("https://own.example/").reasons
    assert [reason.value for reason in reasons if reason.part == "robots"] == [verdict]


@pytest.mark.parametrize(
    ("url", "value", "setting"),
    [
        ("https://own.example/page.html", "0", "freshness.discovery_share"),
        ("https://own.example/data.rdf", "0.3", "freshness.suspect_share"),
    ],
)
def test_a_class_that_is_switched_off_is_a_reason(tmp_path: Path, url: str, value: str, setting: str) -> None:
    shares = FreshnessSettings(suspect_share=0.3, discovery_share=0.0)
    with Warehouse.open(tmp_path, settings=Settings(freshness=shares)) as warehouse:
        warehouse.requests.add_seeds([url])
        (reason,) = [r for r in warehouse.requests.why(url).reasons if r.what == "share of first reads"]
    assert reason.value == value and setting in reason.rule
    assert ("no first reads" in reason.rule) == (value == "0")
