"""What `quadloom why` says about robots.txt if the configuration has an exception for a site."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from quadloom.settings import PolitenessSettings, Settings, SiteSettings
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
