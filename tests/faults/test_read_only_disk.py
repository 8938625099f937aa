"""A warehouse on a disk that cannot be written answers everything that only reads."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from command_line import quadloom
from unit.web.web_fixture import BOOK, fill

READS = (
    ("status",), ("stats",), ("search", "lighthouse"), ("sparql", "ASK {}"), ("table", "schema:Book"), ("findings",),
    ("sites",), ("show", BOOK), ("verify",), ("check",), ("export", "../all.nq"),
    ("lake", "sync", "--place", "../lake"), ("lake", "query", "--place", "../lake", "SELECT count(*) FROM pages"),
)  # fmt: skip
WRITES = (("crawl", "http://127.0.0.1:9/"), ("rebuild",), ("recover",), ("seeds", "add", BOOK), ("lake", "sync"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a read-only disk needs the right to mount one")
    try:
        fill(folder / "data")
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_what_only_reads_works_and_the_rest_says_why_not(disk: Path) -> None:
    for command in READS:
        done = quadloom("-w", "disk/data", *command, cwd=disk.parent)
        assert done.returncode in (0, 1 if command[0] in ("check", "verify") else 0), (command, done.stderr)
        assert "in use by another" not in done.stderr + done.stdout
    assert quadloom("-w", "disk/data", "search", "--json", "lighthouse", cwd=disk.parent).stdout.count(BOOK) >= 1
    for writing in WRITES:
        done = quadloom("-w", "disk/data", *writing, cwd=disk.parent)
        assert done.returncode != 0, writing
        assert "cannot write to" in done.stderr, (writing, done.stderr)
        assert "hint: " in done.stderr


def test_commits_that_only_the_log_has_are_not_left_out_in_silence(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    database = disk / "data/quadloom.db"
    with closing(sqlite3.connect(database)) as writing:
        writing.execute("INSERT INTO value(name, data) VALUES ('x', x'00')")
        writing.commit()
        copied = disk / "copy"
        shutil.copytree(disk / "data", copied)  # as a snapshot of a running crawl
    (copied / "quadloom.db-shm").unlink()
    assert (copied / "quadloom.db-wal").stat().st_size > 0
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    done = quadloom("-w", "disk/copy", "status", cwd=disk.parent)
    assert done.returncode == 6
    assert "read-only disk" in done.stderr and "copy the warehouse" in done.stderr
