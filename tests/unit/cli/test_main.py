"""What `--help` and a running crawl print: in order of use, and within 80 columns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from command_line import quadloom
from quadloom import __version__
from quadloom.cli.crawling.crawl import check_start
from quadloom.cli.crawling.live import finish, nothing_read, progress_lines
from quadloom.cli.files import urls_from_file
from quadloom.cli.main import COMMANDS, SUMMARY, groups, run
from quadloom.cli.overview import overview
from quadloom.cli.session import Session
from quadloom.crawling.run.report import CrawlReport, VisitProblem
from quadloom.errors import UrlError
from quadloom.model.outcome import Outcome, PageRow, Settlement
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.warehouse import Warehouse


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


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_pages_of_help_are_in_one_style(columns: str, tmp_path: Path) -> None:
    """The parser prints a command's own options, and we print those of every command below them."""
    shown = quadloom("crawl", "--help", cwd=tmp_path, COLUMNS=columns).stdout
    boxes = [line for line in shown.splitlines() if line.startswith(("╭", "│", "╰"))]
    assert {len(line) for line in boxes} == {int(columns)}
    assert shown.endswith(overview(SUMMARY, groups, int(columns)).partition("╭─ Options of every command")[2])
    coloured = overview(SUMMARY, groups, int(columns), colour=True)
    assert re.sub(r"\x1b\[\d*m", "", coloured) == overview(SUMMARY, groups, int(columns)) != coloured


def test_a_commands_own_options_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["crawl", "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.index("--max-pages") < shown.index("--warehouse")


@pytest.mark.parametrize("command", ["crawl", "pause", "search", "export"])
def test_help_says_a_default_only_if_it_tells_something(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "[default: on]" in shown, "of --color"
    assert not re.search(r"\[default: (False|None|\(\)|\"\"|)\]", shown)


def test_the_live_screen_fits_into_80_columns() -> None:
    phases = dict.fromkeys(("fetch", "detect", "transform", "index", "extract"), 123_456)
    report = CrawlReport(
        state="running", phases=phases, pages=123_456, quads=9_876_543, failed=1_234, denied=567, seconds=4_321.0,
        rates={"fetch": 123.4}, pages_per_second=98.7,
        frontier={"queued": 123_456, "waiting": 1_234_567, "leased": 300}, limit=150_000,
        hosts=[f"www.museum-of-names-{number}.example" for number in range(9)],
    )  # fmt: skip
    lines = [line.plain for line in progress_lines(report)]
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("crawling  ━") and lines[0].endswith(
        "123,456 of 150,000 pages · 123.4 visits/s · 3:35 left"
    )
    assert "museum-of-names-0" in lines[1] and lines[3].endswith("1 h 12 min")


def test_pages_that_are_gone_are_counted_while_the_crawl_runs() -> None:
    assert "2,220 gone" in progress_lines(CrawlReport(state="running", pages=333, gone=2_220))[1].plain
    assert "gone" not in progress_lines(CrawlReport(state="running", pages=333))[1].plain


def test_a_paused_crawl_says_so_and_promises_nothing() -> None:
    report = CrawlReport(state="paused", pages=20, limit=100, rates={"fetch": 3.0}, frontier={"queued": 80})
    head = progress_lines(report)[0].plain
    assert head.startswith("paused") and "20 of 100" in head
    assert "visits/s" not in head and "left" not in head


def test_without_a_limit_the_bar_is_about_the_known_urls() -> None:
    """What is counted is what the rate is about: visits, whatever came of them."""
    report = CrawlReport(state="running", pages=1, gone=806, rates={"fetch": 73.9}, frontier={"queued": 1_100})
    lines = [line.plain for line in progress_lines(report)]
    assert "807 of 1,907 known URLs · 73.9 visits/s · 0:14 left" in lines[0] and lines[1].startswith("1 page ·")


def test_the_end_of_a_crawl_counts_what_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    finish(
        Session(), CrawlReport(pages=1, gone=212, problems=[VisitProblem("gone", "HTTP 404", 212, "x")]), False, None
    )
    assert "1 page · 0 quads · 0 failed · 212 gone · 0 denied" in capsys.readouterr().err


def test_a_phase_on_its_own_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    finish(Session(), CrawlReport(phases={"index": 36}, frontier={"waiting": 36}), False, None)
    said = capsys.readouterr().err
    assert "indexed 36 pages" in said and "Nothing to crawl" not in said and "0 pages" not in said


def test_seeds_may_come_from_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("https://a.example/\n"))
    writer.start()
    assert urls_from_file(pipe) == ["https://a.example/"]
    writer.join()


def test_an_address_without_a_host_is_refused() -> None:
    with pytest.raises(UrlError, match="names no host"):
        check_start(Session(), ["http:///x"])


def test_a_folder_that_holds_other_files_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "letter.txt").write_text("Dear Ada")
    s = Session(warehouse=tmp_path)
    s.override({"crawl.contact": "you@example.org"})
    check_start(s, ["http://a.example/"])
    assert "already has 1 other file" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["config", "show"]])
def test_a_reader_that_has_had_enough_is_no_error(arguments: list[str], tmp_path: Path) -> None:
    """`quadloom --help | head`: the pipe's other end is closed before anything is written."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "quadloom", *arguments],
            stdout=write, stderr=subprocess.PIPE, cwd=tmp_path, timeout=100, check=False,
        )  # fmt: skip
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_only_a_crawl_that_tried_and_read_nothing_has_failed(tmp_path: Path) -> None:
    s, url, other = Session(quiet=True), "https://a.example/", "https://b.example/"
    tried = CrawlReport(problems=[VisitProblem("failed", "dns: no such name", 1, url)])
    with Warehouse.open(tmp_path / "w") as warehouse:
        catalog = warehouse.stores.catalog

        def visited(href: str, outcome: Outcome) -> None:
            parsed = Url.parse(href)
            row = PageRow(
                fingerprint=parsed.fingerprint,
                key=parsed.key,
                href=href,
                host=parsed.host,
                outcome=outcome,
                fetched_at=1.0,
            )
            visit = Visit(href, parsed.key, parsed.host, parsed.fingerprint)
            with catalog.transaction():
                catalog.record([Settlement(visit, outcome, row)], 1.0)

        visited(url, Outcome.FAILED)
        assert nothing_read(s, tried, catalog, [url]) == 1
        assert nothing_read(s, tried, catalog, []) == 1, "no page was ever read"
        assert nothing_read(s, tried, catalog, [url, other]) == 0, "one of them was not visited yet"
        assert nothing_read(s, msgspec.structs.replace(tried, pages=1), catalog, [url]) == 0
        assert nothing_read(s, CrawlReport(), catalog, [url]) == 0, "nothing was due: that is no failure"
        visited(other, Outcome.NEW)
        assert nothing_read(s, tried, catalog, [url]) == 1
        assert nothing_read(s, tried, catalog, []) == 0, "only what failed before was tried again"


def test_the_package_can_be_run() -> None:
    done = subprocess.run([sys.executable, "-m", "quadloom", "--version"], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{__version__}\n", "")
