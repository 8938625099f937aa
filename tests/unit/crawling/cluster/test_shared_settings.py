"""A machine that knows only the database gets the settings that another has shared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from postgres_server import postgres
from quadloom.cli.main import run

pytestmark = pytest.mark.cluster


def test_settings_are_shared_with_machines_that_know_only_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUADLOOM_STORES__FRONTIER", postgres().url())

    def depth() -> tuple[object, object]:
        assert run(["--json", "config", "show"]) == 0
        shown = json.loads(capsys.readouterr().out)["crawl.max_depth"]
        return shown["value"], shown["origin"]

    before = depth()
    file = tmp_path / "all.toml"
    file.write_text('[crawl]\nmax_depth = 3\n[stores]\ncatalog = "postgresql:"\n', encoding="utf-8")
    assert run(["config", "share", str(file)]) == 0
    assert depth() == (3, "shared settings of the cluster")
    monkeypatch.setenv("QUADLOOM_CRAWL__MAX_DEPTH", "5")
    assert depth() == (5, "environment QUADLOOM_CRAWL__MAX_DEPTH"), "a machine's own come first"
    monkeypatch.delenv("QUADLOOM_CRAWL__MAX_DEPTH")
    assert run(["config", "share", "--clear"]) == 0
    assert depth() == before
    monkeypatch.setenv("QUADLOOM_STORES__FRONTIER", "sqlite:")
    assert run(["config", "share", str(file)]) == 2
