"""A clock that was once ahead must not starve hosts: stored rests are cut to the longest that the rules allow."""

from __future__ import annotations

from pathlib import Path

from quadloom.documents.extract import seed_discoveries
from quadloom.model.outcome import HostPace, Outcome, Settlement
from quadloom.settings import PolitenessSettings, Settings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier import SqliteFrontier

NOW, DAY = 1.7e9, 86400.0
HOSTS = ("rested.example", "blocked.example")
SETTINGS = Settings(politeness=PolitenessSettings(delay=5.0, max_crawl_delay=60.0))


def opened(path: Path, now: float) -> SqliteFrontier:
    return SqliteFrontier(SqliteDatabase.open(path), FrontierPolicy.from_settings(SETTINGS), now=now)


def test_hosts_rest_no_longer_than_rules_allow(tmp_path: Path) -> None:
    ahead = NOW + 400 * DAY
    frontier = opened(tmp_path / "w.db", ahead)
    frontier.add(seed_discoveries([f"http://{host}/{n}" for host in HOSTS for n in (1, 2)]), ahead)
    visits = frontier.lease(2, ahead, duration=60.0)
    frontier.settle(
        [
            Settlement(
                visit,
                Outcome.NEW,
                None,
                HostPace(visit.host, "", 5.0, ahead + 5.0, ahead + 30.0 if "blocked" in visit.host else 0.0),
            )
            for visit in visits
        ],
        ahead,
    )
    frontier.close()
    frontier = opened(tmp_path / "w.db", NOW)
    assert frontier.clamped_hosts == 2
    assert [visit.host for visit in frontier.lease(9, NOW + 61.0, duration=60.0)] == ["rested.example"]
    assert "blocked.example" in [visit.host for visit in frontier.lease(9, NOW + 7 * DAY + 1.0, duration=60.0)]
    frontier.close()
    assert opened(tmp_path / "w.db", NOW + 8 * DAY).clamped_hosts == 0
