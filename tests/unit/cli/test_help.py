"""What `--help` and a running crawl print: in order of use, and within 80 columns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from quadloom.cli.application import application
from quadloom.cli.crawling.crawl import progress_lines
from quadloom.cli.main import COMMANDS, SUMMARY, add_installed_commands, groups, run
from quadloom.cli.overview import overview
from quadloom.crawl.report import CrawlReport


def test_help_lists_every_command_once_in_groups(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    first = re.findall(r"^[│|] +([a-z]+) {2,}\S", shown, flags=re.MULTILINE)
    assert first == list(COMMANDS), "in the order in which people need them"
    titles = re.findall(r"─ ([A-Z][^─]*?) ─", shown)
    assert titles[0] == "Begin" and titles[-1] == "Options of every command"
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_help_is_what_the_parser_of_options_would_print(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written without the parser, so a new option must be added to both."""
    monkeypatch.setenv("COLUMNS", "80")
    add_installed_commands()
    application().meta(["--help"], exit_on_error=False, result_action="return_value")
    wanted = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert overview(SUMMARY, groups, 80).splitlines() == wanted
    coloured = overview(SUMMARY, groups, 80, colour=True)
    assert re.sub(r"\x1b\[\d*m", "", coloured).splitlines() == wanted


def test_a_commands_own_options_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["crawl", "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.index("--max-pages") < shown.index("--warehouse")


def test_the_live_screen_fits_into_80_columns() -> None:
    phases = dict.fromkeys(("fetch", "detect", "transform", "index", "extract"), 123_456)
    report = CrawlReport(
        state="running", phases=phases, pages=123_456, quads=9_876_543, failed=1_234, denied=567, seconds=4_321.0,
        rates={"fetch": 123.4}, pages_per_second=98.7,
        frontier={"queued": 123_456, "waiting": 1_234_567, "leased": 300},
    )  # fmt: skip
    lines = progress_lines(report)
    assert max(map(len, lines)) <= 80
    assert "123.4 pages/s now" in lines[1] and lines[2].endswith("72:01 min")


@pytest.mark.parametrize("arguments", [["--help"], ["config", "show"]])
def test_a_reader_that_has_had_enough_is_no_error(arguments: list[str], tmp_path: Path) -> None:
    """`quadloom --help | head`: the pipe's other end is closed before anything is written."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "quadloom.cli", *arguments],
            stdout=write, stderr=subprocess.PIPE, cwd=tmp_path, timeout=100, check=False,
        )  # fmt: skip
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
