"""kill -9 of `import`, `prune`, `export`, `verify` and `importance` at random moments: what could be found before can
be found after the next command, which finishes the work, and `verify` has nothing to report. For `rebuild` see
`test_rebuild_killed.py`."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from faults.crawling import finish, killed_after, start
from quadloom.model.page import Page
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.protocols.text import SearchRequest
from quadloom.warehouse import Warehouse

KILLS = [
    2,
    pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(3000)]),
]
OLD, NEW = 40, 120  # pages that are there before, and that are imported
NOW = time.time()


def page(number: int, at: float) -> Page:
    url = f"http://site.example/{number}"
    noise = random.Random(f"{number} {at}").randbytes(200).hex()
    body = (
        f'<title>Whale {number}</title><p vocab="http://schema.org/" typeof="Event"><b property="name">{noise}</b></p>'
        f'<a href="/{number + 1}">on</a>'
    )
    return Page(url, url, 200, (("content-type", "text/html"),), body.encode(), at, 0.1)


def warc(file: Path, pages: list[Page]) -> Path:
    file.write_bytes(file_header(file.name, 0.0) + b"".join(encode(item).member for item in pages))
    return file


def config(folder: Path) -> Path:
    path = folder / "quadloom.toml"
    path.write_text(
        '[crawl]\nworkers = 1\nbatch = 16\n[index]\nretention = "30d"\ntext_commit_pages = 40\n'
        "[stores]\narchive_file_bytes = 20000\n",
        encoding="utf-8",
    )
    return path


def searchable(path: Path) -> int:
    with Warehouse.read(path) as warehouse:
        return warehouse.stores.text.search(SearchRequest(text="whale", limit=1)).total


def kill_often(
    path: Path, settings: Path, kills: int, arguments: list[str], after: Callable[[], None], *, seconds: float
) -> None:
    """Run the command until it was killed so many times, each at a random moment of its `seconds`. A run that ends
    before its moment shows that it takes less time now."""
    chance = random.Random(f"20265 {arguments[0]}")
    killed = 0
    for _ in range(4 * kills):
        process, began = start(path, settings, *arguments), time.monotonic()
        if killed_after(process, seconds * chance.uniform(0.2, 1.0)):
            killed += 1
        else:
            process.communicate()
            seconds = time.monotonic() - began
        after()
        if killed == kills:
            return
    raise AssertionError(f"only {killed} of {kills} runs could be killed")


def timed(path: Path, settings: Path, *arguments: str) -> float:
    began = time.monotonic()
    finish(path, settings, *arguments, "--json")
    return time.monotonic() - began


@pytest.mark.parametrize("kills", KILLS)
def test_import_killed_at_random_moments(tmp_path: Path, kills: int) -> None:
    path, settings = tmp_path / "warehouse", config(tmp_path)
    old = warc(tmp_path / "old.warc.gz", [page(number, NOW) for number in range(OLD)])
    new = warc(tmp_path / "new.warc.gz", [page(number, NOW) for number in range(OLD, OLD + NEW)])
    seconds = timed(tmp_path / "other", settings, "import", str(new))
    finish(path, settings, "import", str(old), "--json")
    found = OLD

    def check() -> None:
        nonlocal found
        now = searchable(path)
        assert now >= found, "pages that could be found are lost"
        found = now

    kill_often(path, settings, kills, ["import", str(new)], check, seconds=seconds)
    finish(path, settings, "import", str(new), "--json")
    assert searchable(path) == OLD + NEW
    assert finish(path, settings, "verify", "--json")["ok"]


@pytest.mark.parametrize("kills", KILLS)
def test_prune_killed_at_random_moments(tmp_path: Path, kills: int) -> None:
    """Every round adds a version of each page that is too old to keep, so that every prune has something to do."""
    path, settings = tmp_path / "warehouse", config(tmp_path)
    finish(path, settings, "import", str(warc(tmp_path / "0.warc.gz", versions(OLD, 0))), "--json")
    seconds = timed(path, settings, "prune")
    rounds = 0

    def check() -> None:
        nonlocal rounds
        rounds += 1
        assert searchable(path) == OLD
        file = warc(tmp_path / "more.warc.gz", versions(OLD, rounds))
        finish(path, settings, "import", str(file), "--json")

    kill_often(path, settings, kills, ["prune"], check, seconds=seconds)
    finish(path, settings, "prune", "--json")
    again = finish(path, settings, "prune", "--json")
    assert again["removed"] == again["visits"] == 0, "nothing is left to do"
    assert searchable(path) == OLD
    assert finish(path, settings, "verify", "--json")["ok"]


def versions(pages: int, round_: int) -> list[Page]:
    """Two old versions of each page and a newer one, each newer than those of the last round."""
    times = [NOW - 200 * 86400 + round_ * 3600, NOW - 199 * 86400 + round_ * 3600, NOW - 86400 + round_ * 3600]
    return [page(number, at) for at in times for number in range(pages)]


@pytest.mark.parametrize("kills", KILLS)
def test_export_and_verify_killed_at_random_moments(tmp_path: Path, kills: int) -> None:
    """An older export stays until a whole new one is there; verify changes nothing."""
    path, settings = tmp_path / "warehouse", config(tmp_path)
    source = warc(tmp_path / "source.warc.gz", [page(number, NOW) for number in range(NEW)])
    finish(path, settings, "import", str(source), "--json")
    target = tmp_path / "out.nq"
    seconds = timed(path, settings, "export", str(target))
    whole = target.read_bytes()

    def is_whole() -> None:
        assert target.read_bytes() in (whole, b"the older export")
        target.write_bytes(b"the older export")

    is_whole()
    kill_often(path, settings, kills, ["export", str(target)], is_whole, seconds=seconds)
    finish(path, settings, "export", str(target), "--json")
    assert target.read_bytes() == whole
    seconds = timed(path, settings, "verify")
    kill_often(path, settings, kills, ["verify"], lambda: None, seconds=seconds)
    assert finish(path, settings, "verify", "--json")["ok"]
    assert searchable(path) == NEW


def web(pages: int) -> list[Page]:
    """Pages with several links each, so that the fixpoint takes some passes."""
    chance = random.Random(7)
    found = []
    for number in range(pages):
        links = "".join(f'<a href="/{int(pages * chance.random() ** 2)}">on</a>' for _ in range(6))
        url = f"http://site.example/{number}"
        body = f"<title>Whale {number}</title>{links}".encode()
        found.append(Page(url, url, 200, (("content-type", "text/html"),), body, NOW, 0.1))
    return found


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(3000)])])
@pytest.mark.parametrize(
    "how", [(), ("--workers", "2"), ("--workers", "2", "--resume")], ids=["one", "many", "resumed"]
)
def test_importance_killed_at_random_moments(tmp_path: Path, how: tuple[str, ...], kills: int) -> None:
    """The next run ends with the values that an undisturbed one finds, and nothing else has changed."""
    path, settings = tmp_path / "warehouse", config(tmp_path)
    finish(path, settings, "import", str(warc(tmp_path / "web.warc.gz", web(200))), "--json")
    other = tmp_path / "other"
    shutil.copytree(path, other)
    began = time.monotonic()
    wanted = importance_of(other, settings)
    kill_often(path, settings, kills, ["importance", *how], lambda: None, seconds=max(time.monotonic() - began, 1.5))
    found = importance_of(path, settings, *how)
    assert found.keys() == wanted.keys() and len(found) == 200
    assert all(abs(found[url] - wanted[url]) <= 0.02 * wanted[url] for url in wanted)
    assert searchable(path) == 200
    assert finish(path, settings, "verify", "--json")["ok"]
    assert not list(path.rglob("importance.tasks")), "nothing is left behind"


def importance_of(path: Path, settings: Path, *how: str) -> dict[str, float]:
    answer = finish(path, settings, "importance", "--limit", "1000", "--json", *how)
    top = msgspec.convert(answer["top"], list[dict[str, str | float]])
    return {str(item["url"]): float(item["importance"]) for item in top}
