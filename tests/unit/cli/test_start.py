"""What a command imports before it answers: looking something up waits neither for parsers nor for a crawler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quadloom.cli.overview import command_line
from quadloom.errors import UsageError
from quadloom.warehouse import Warehouse

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
    "module",
    [
        "quadloom.cli.main",
        "quadloom.cli.application",
        "quadloom.cli.asking.status",
        "quadloom.cli.asking.search",
        "quadloom.cli.crawling.seeds",
        "quadloom.warehouse",
    ],
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
    ("line", "options", "words"),
    [
        ("crawl https://a.example/", {}, "crawl https://a.example/"),
        ("-w data crawl x --max-pages 5 --json", {"warehouse": Path("data"), "json": True}, "crawl x --max-pages 5"),
        ("--config a --quiet status --verbose", {"config": Path("a"), "quiet": True, "verbose": True}, "status"),
        ("search -w ~/x light --limit 3", {"warehouse": Path("~/x")}, "search light --limit 3"),
        ("-w search crawl", {"warehouse": Path("search")}, "crawl"),
        ("crawl --delay -1 -w data", {"warehouse": Path("data")}, "crawl --delay -1"),
        ("--warehouse=a=b sites", {"warehouse": Path("a=b")}, "sites"),
        ("status --no-color", {"color": False}, "status"),
        ("status --color", {"color": True}, "status"),
        ("status --quietly", {}, "status --quietly"),
        ("search light -water", {}, "search light -water"),
        ("search --json -- --json -w", {"json": True}, "search"),
    ],
)
def test_options_of_every_command_are_found_before_and_after_its_name(
    line: str, options: dict[str, object], words: str
) -> None:
    read = command_line(line.split())
    assert (read.options, read.words) == (options, words.split())
    assert read.literal == line.split("-- ")[1].split() if " -- " in line else not read.literal
    assert not read.wants_help and not read.wants_version


def test_help_and_version_are_found_everywhere() -> None:
    assert command_line(["--help", "crawl"]) == ({}, ["crawl"], [], True, False)
    assert command_line(["queries", "save", "-h"]) == ({}, ["queries", "save"], [], True, False)
    assert command_line(["crawl", "--version"]) == ({}, ["crawl"], [], False, True)


@pytest.mark.parametrize("line", ["-w", "-w --json", "-w a -w b status", "status --json=yes", "--config= status"])
def test_an_option_of_every_command_needs_its_one_value(line: str) -> None:
    with pytest.raises(UsageError):
        command_line(line.split())


def test_a_command_imports_neither_the_other_commands_nor_what_prints_tables(tmp_path: Path) -> None:
    """The parser of options takes .05 s of CPU; what a command in a pipe does not need must not be added to it."""
    Warehouse.open(tmp_path / "w").close()
    found = imported(f"from quadloom.cli.main import run; run(['-w', {str(tmp_path / 'w')!r}, 'search', 'x'])")
    commands = {name for name in found if name.startswith("quadloom.cli.") and name.count(".") == 3}
    assert commands == {"quadloom.cli.asking.search"}
    assert not {"rich", "quadloom.cli.usage_errors", "quadloom.asking.sparql.text_patterns"} & found


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
