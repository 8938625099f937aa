"""What a command imports before it answers: looking something up waits neither for parsers nor for a crawler."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from quadloom.cli.application import application
from quadloom.cli.asking.search import search
from quadloom.cli.asking.status import sites, why
from quadloom.cli.crawling.crawl import crawl
from quadloom.cli.main import COMMANDS, first_word
from quadloom.cli.plain import plain_arguments, plain_options
from quadloom.errors import UsageError

# Packages that take a tenth of a second or more, and ours that bring them along.
_HEAVY = (
    "numpy",
    "scipy.optimize",
    "scipy.sparse",
    "psycopg",
    "boto3",
    "obstore",
    "quadloom.crawling.run.session",
    "quadloom.crawling.topical",
    "quadloom.crawling.workers",
    "quadloom.documents.pipeline",
    "quadloom.documents.transform",
    "quadloom.stores.postgres.state",
    "quadloom.web.app",
)


def imported(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "module", ["quadloom.cli.main", "quadloom.cli.asking.status", "quadloom.cli.asking.search", "quadloom.warehouse"]
)
def test_nothing_heavy_is_imported(module: str) -> None:
    found = imported(f"import {module}")
    assert [name for name in _HEAVY if name in found] == []


def test_matrices_stay_in_one_thread_unless_the_user_wants_more() -> None:
    threads = "print(os.environ['OPENBLAS_NUM_THREADS'], len(os.listdir('/proc/self/task')))"
    ask = [sys.executable, "-c", f"import quadloom.cli.main, os, numpy; {threads}"]
    others = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    said = [
        subprocess.run(ask, env=environment, capture_output=True, text=True, check=True).stdout.split()
        for environment in (others, {**others, "OPENBLAS_NUM_THREADS": "2"})
    ]
    assert said[0] == ["1", "1"]
    assert said[1][0] == "2"


def test_a_worker_compiles_large_expressions_only_for_pages_that_need_them() -> None:
    """Classes of thousands of characters are expanded one by one, which took a sixth of the imports."""
    code = """
import re._compiler as compiler, re
found, optimized = [], compiler._optimize_charset
compiler._optimize_charset = lambda charset, *rest: found.append(charset) or optimized(charset, *rest)
import quadloom.crawling.workers.worker_main
from quadloom.documents.syntaxes.html import tree
def size(charset):
    spans = [span for name, span in charset if str(name) == "RANGE"]
    return sum(min(last, 0xffff) - min(first, 0xffff) for first, last in spans)
print(max(map(size, found)) < 10_000, tree._many_attributes.cache_info().currsize)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True", "0"]


def test_help_needs_no_parser_of_options() -> None:
    found = imported("from quadloom.cli.main import run; run(['--help'])")
    assert not {"cyclopts", "rich", "msgspec", "quadloom.settings"} & found


def test_a_command_of_ours_does_not_ask_all_packages_for_further_ones() -> None:
    found = imported("from quadloom.cli.main import run; run(['-w', 'search', 'scope', '--help'])")
    assert "quadloom_lab.commands" not in found


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["crawl", "x"], "crawl"),
        (["-w", "search", "crawl"], "crawl"),
        (["--warehouse=search", "--json", "crawl"], "crawl"),
        (["--help"], ""),
        (["-w"], ""),
    ],
)
def test_the_value_of_an_option_is_not_taken_for_a_command(words: list[str], first: str) -> None:
    assert first_word(words) == first


@pytest.mark.parametrize(
    ("line", "options", "rest"),
    [
        ("crawl https://a.example/", {}, "crawl https://a.example/"),
        ("-w data crawl x --max-pages 5 --json", {"warehouse": Path("data"), "json": True}, "crawl x --max-pages 5"),
        ("--config a --quiet status --verbose", {"config": Path("a"), "quiet": True, "verbose": True}, "status"),
        ("search -w ~/x light --limit 3", {"warehouse": Path("~/x")}, "search light --limit 3"),
        ("crawl --delay -1 -w data", {"warehouse": Path("data")}, "crawl --delay -1"),
        ("--warehouse=a=b sites", {"warehouse": Path("a=b")}, "sites"),
        ("status --no-color", {"color": False}, "status"),
        ("status --color", {"color": True}, "status"),
        ("status --quietly", {}, "status --quietly"),
        ("search light -water", {}, "search light -water"),
        ("search --json -- --json", {"json": True}, "search -- --json"),
    ],
)
def test_options_of_every_command_are_found_before_and_after_its_name(
    line: str, options: dict[str, object], rest: str
) -> None:
    assert plain_options(line.split()) == (options, rest.split())


@pytest.mark.parametrize("line", ["--help", "crawl -h", "--version"])
def test_help_is_left_to_cyclopts(line: str) -> None:
    assert plain_options(line.split()) is None


@pytest.mark.parametrize("line", ["-w", "-w --json", "-w a -w b status", "status --json=yes", "--config= status"])
def test_an_option_of_every_command_needs_its_one_value(line: str) -> None:
    with pytest.raises(UsageError):
        plain_options(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "crawl",
        "crawl https://a.example/ https://b.example/",
        "crawl https://a.example/ --max-pages 5 https://b.example/",
        "crawl https://a.example/ --delay 0.5 --max-seconds 10 --own-site",
        "crawl --seeds seeds.txt --contact me@example.org --strategy same-site --strategy feeds",
        "crawl --phases fetch --ray auto --ray-workers 3 --until-input-ends",
        "search light house* --type Event --type schema:Book --limit 3 --facets --as-sparql",
        "search --site a.example --since 2026-01-01 opera",
        "status --watch --interval 5",
        "sites --limit 3",
    ],
)
def test_arguments_of_a_command_are_read_as_cyclopts_reads_them(line: str) -> None:
    name, *words = line.split()
    function, bound, _ = application().parse_args(line.split(), exit_on_error=False, print_error=False)
    assert plain_arguments(function, words) == (bound.args, bound.kwargs)
    assert COMMANDS[name][0].endswith(f":{function.__name__}")


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (crawl, "https://a.example/ --max-pages"),
        (crawl, "--max-pages=5"),
        (crawl, "--max-pages five"),
        (crawl, "--max-pages 1e3"),
        (crawl, "--max-pages -1"),
        (crawl, "--max-pages 1 --max-pages 2"),
        (crawl, "--max_pages 1"),
        (crawl, "--maxpages 1"),
        (crawl, "--scope page"),
        (crawl, "--own-site --own-site"),
        (crawl, "--no-own-site"),
        (crawl, "--urls https://a.example/"),
        (crawl, "-- https://a.example/"),
        (crawl, "-x"),
        (crawl, "--help"),
        (search, "--as-query x"),
        (sites, "--sort failed"),
        (sites, "a.example"),
        (why, "https://a.example/"),
    ],
)
def test_other_arguments_are_left_to_cyclopts(function: Callable[..., object], line: str) -> None:
    assert plain_arguments(function, line.split()) is None


def test_a_plain_command_needs_no_parser_of_options(tmp_path: Path) -> None:
    found = imported(f"from quadloom.cli.main import run; run(['-w', {str(tmp_path / 'w')!r}, 'status'])")
    assert "cyclopts" not in found


def test_the_program_ends_with_its_threads_and_exit_functions() -> None:
    code = """
import atexit, sys, threading, time
from quadloom.cli import main
def command(_):
    atexit.register(print, "last")
    threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
    return 5
main.run = command
main.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr, done.returncode) == (["thread", "last"], "", 5)
