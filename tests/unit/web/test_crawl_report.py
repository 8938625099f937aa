"""`quadloom report`: one file that needs nothing else, whatever the pages say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from quadloom.cli.main import run
from unit.web.things_fixture import fill_things
from unit.web.web_fixture import fill


@pytest.fixture(scope="module")
def things_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "data"
    fill_things(path)
    return path


def test_a_report_is_one_file_with_everything(things_path: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    assert run(["-w", str(things_path), "report", "-o", str(target)]) == 0
    html = target.read_text(encoding="utf-8")
    for words in (
        "Where: ",
        "What the pages describe",
        "Types and how they are linked",
        "pages visited",
        "When:",
        "Languages",
    ):
        assert words in html, words
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|\bsrc=", html), "nothing is fetched"
    links = re.findall(r'href="([^"]*)"', html)
    ids = set(re.findall(r'\bid="([^"]+)"', html))
    assert {link[1:] for link in links if link.startswith("#type-")} <= ids, "pictures lead to rows of the file"
    assert len(html) < 300_000


def test_a_report_of_one_site_counts_only_its_pages(
    things_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["-w", str(things_path), "report", "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    site, pages = whole["sites"][0]
    assert run(["-w", str(things_path), "report", "--site", site, "--json"]) == 0
    part = json.loads(capsys.readouterr().out)
    assert [name for name, _ in part["sites"]] == [site] and part["sampled"] == pages < whole["sampled"]
    assert run(["-w", str(things_path), "report", "--site", "no.example", "-o", str(tmp_path / "no.html")]) == 4
    assert "no page of no.example" in capsys.readouterr().err
    assert not (tmp_path / "no.html").exists()


def test_what_pages_say_cannot_become_markup(tmp_path: Path) -> None:
    fill(tmp_path / "evil")
    assert run(["-w", str(tmp_path / "evil"), "report", "-o", str(tmp_path / "evil.html")]) == 0
    html = (tmp_path / "evil.html").read_text(encoding="utf-8")
    assert "<script" not in html and "<img" not in html and 'href="javascript' not in html
