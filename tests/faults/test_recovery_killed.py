"""`recover` killed between every two steps, and at random moments: run again, it recovers everything."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

from faults.crawling import command, finish, killed_after, start
from quadloom.model.page import Page
from quadloom.process.failpoints import EXIT_CODE, REBUILD_POINTS, RECOVERY_POINTS
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.backends import DATABASE
from quadloom.stores.protocols.text import SearchRequest
from quadloom.warehouse import Warehouse


def page(number: int) -> Page:
    url = f"http://site.example/{number}"
    body = (
        f'<title>Whale {number}</title><p vocab="http://schema.org/" typeof="Event"><b property="name">n{number}</b>'
        f'</p><a href="/{2 * number}">on</a> <a href="/{2 * number + 1}">on</a>'
    )
    return Page(url, url, 200, (("content-type", "text/html"),), body.encode(), 1000.0 + number, 0.1)


def filled(folder: Path, pages: int) -> Path:
    source = folder / "source.warc.gz"
    source.write_bytes(file_header(source.name, 0.0) + b"".join(encode(page(n)).member for n in range(pages)))
    with Warehouse.open(folder / "warehouse") as warehouse:
        warehouse.maintenance.import_(source)
    return folder / "warehouse"


def config(folder: Path, failpoint: str = "") -> Path:
    path = folder / f"{failpoint or 'quadloom'}.toml"
    path.write_text(f'[crawl]\nworkers = 1\nbatch = 16\nfailpoint = "{failpoint}"\n', encoding="utf-8")
    return path


def damage(path: Path) -> None:
    (path / DATABASE).write_bytes(b"not a database " * 1000)


def recovered(path: Path, settings: Path, pages: int) -> None:
    """Whatever was killed: the command that the message names, or the next one that writes, brings everything back."""
    code = subprocess.run(command(path, settings, "recover"), capture_output=True, timeout=300).returncode
    assert code in (0, 2), "2 = it was killed after the new database had come into its place"
    if code == 2:
        with Warehouse.open(path) as warehouse:
            warehouse.maintenance.rebuild()
    with Warehouse.read(path) as warehouse:
        assert warehouse.stores.text.search(SearchRequest(text="whale", limit=1)).total == pages
        assert warehouse.stores.frontier.stats(0.0).queued == pages, "the lower half of the tree"
    assert finish(path, settings, "verify", "--json")["ok"]


@pytest.mark.parametrize("point", [*RECOVERY_POINTS, *REBUILD_POINTS[:3]])
def test_killed_between_every_two_steps(tmp_path: Path, point: str) -> None:
    path = filled(tmp_path, 12)
    damage(path)
    killed = subprocess.run(command(path, config(tmp_path, point), "recover"), capture_output=True, timeout=300)
    assert killed.returncode == EXIT_CODE, killed.stderr
    recovered(path, config(tmp_path), 12)


@pytest.mark.parametrize(
    "kills",
    [
        2,
        pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(3000)]),
    ],
)
def test_killed_at_random_moments(tmp_path: Path, kills: int) -> None:
    pages, chance = 80, random.Random(20266)
    path, settings = filled(tmp_path, pages), config(tmp_path)
    damage(path)
    began = time.monotonic()
    finish(path, settings, "recover", "--json")
    seconds = time.monotonic() - began
    killed = 0
    for _ in range(4 * kills):
        if killed == kills:
            break
        damage(path)
        process, began = start(path, settings, "recover"), time.monotonic()
        if killed_after(process, seconds * chance.uniform(0.2, 1.1)):
            killed += 1
        else:
            process.communicate()
            seconds = time.monotonic() - began  # it takes less time now
        if not (path / DATABASE).exists() or (path / DATABASE).read_bytes().startswith(b"not a database"):
            continue  # the next kill begins where this one ended
        recovered(path, settings, pages)
    recovered(path, settings, pages)
    assert killed == kills, f"only {killed} of {kills} recoveries could be killed"
