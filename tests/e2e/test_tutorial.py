"""The tutorial, step by step: each command is run and prints the lines that the page shows, in their order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from command_line import quadloom
from quadloom.cli.demo import SITES_CONFIG, SITES_PORT
from quadloom.cli.demo_sites import DemoServer

PAGE = Path(__file__).resolve().parents[2] / "docs/tutorial/first-crawl.md"


def steps(text: str) -> list[tuple[str, list[str]]]:
    """Each command of the console blocks, with the lines below it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def pattern(line: str) -> re.Pattern[str]:
    """`…` stands for anything, and any white space for any other."""
    parts = [r"\s+".join(map(re.escape, part.split())) for part in line.split("…")]
    return re.compile(r".*?".join(parts))


def test_every_step_prints_what_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "quadloom.toml").write_text(SITES_CONFIG, encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    with DemoServer() as sites:  # on any free port: the usual one may be taken
        all_steps = steps(text.replace(str(SITES_PORT), str(sites.port)))
        assert len(all_steps) >= 8
        for command, expected in all_steps:
            program, *arguments = shlex.split(command)
            assert program == "quadloom"
            done = quadloom(*arguments, cwd=tmp_path)
            assert done.returncode == 0, (command, done.stderr)
            printed = done.stdout + done.stderr
            place = 0
            for line in expected:
                match = pattern(line).search(printed, place)
                assert match, f"{command}\nprints no line {line!r} after character {place} of\n{printed}"
                place = match.end()


def test_the_sites_of_the_tutorial_are_served_by_the_demo(tmp_path: Path) -> None:
    (tmp_path / "quadloom.toml").write_text("[crawl]\nmax_pages = 3\n", encoding="utf-8")
    refused = quadloom("demo", "--sites", cwd=tmp_path)
    assert refused.returncode == 2 and "quadloom.toml exists" in refused.stderr
    try:
        taken = DemoServer(port=SITES_PORT)
    except OSError:
        pytest.skip(f"port {SITES_PORT} is taken")
    empty = tmp_path / "empty"
    empty.mkdir()
    with taken:
        assert f"http://www.alpha-books.example:{SITES_PORT}/" in taken.homes
        refused = quadloom("demo", "--sites", cwd=empty)
    assert refused.returncode == 2 and str(SITES_PORT) in refused.stderr
    assert not list(empty.iterdir()), "no settings for sites that are not there"
