"""The documentation as a site: it is built without a warning, and every page is in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from unit import ROOT


def nav_pages(entry: object) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    assert isinstance(entry, dict | list)
    return [page for value in (entry.values() if isinstance(entry, dict) else entry) for page in nav_pages(value)]


def test_every_how_to_is_in_the_navigation() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = nav_pages(config["nav"])
    assert len(pages) == len(set(pages))
    for folder in ("howto", "tutorial", "explanation"):
        files = {f"{folder}/{path.name}" for path in (ROOT / "docs" / folder).glob("*.md")}
        assert files <= set(pages), "add it to nav in mkdocs.yml"


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    api = (tmp_path / "site/reference/api/index.html").read_text(encoding="utf-8")
    assert "quadloom.warehouse.Warehouse.crawl" in api and "Own the warehouse" in api
    assert (tmp_path / "site/search/search_index.json").stat().st_size > 100_000
    home = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    assert "fonts.googleapis" not in home, "nothing is loaded from elsewhere"
