"""One byte of a warehouse differs from what was written: `verify` finds it and names the command that repairs it, or
all answers are the same as before."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from quadloom.model.page import Page
from quadloom.stores.archive.warc_record import encode, file_header

TRIES = [
    6,
    pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(3000)]),
]
PAGES = 120
NOW = 1.7e9
# All that people can ask: every statement, every page, and searches for words of each kind.
ANSWERS = """
import hashlib, json, sys
from pathlib import Path
from quadloom.warehouse import Warehouse
from quadloom.maintenance.archive_order import all_pages
with Warehouse.read(Path(sys.argv[1])) as warehouse:
    quads = sorted(b"".join(warehouse.stores.quads.dump()).splitlines())
    everything = b"".join(warehouse.sparql("SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o", format="tsv"))
    by_object = b"".join(warehouse.sparql("SELECT ?s { ?s ?p 'Whale 7' } ORDER BY ?s", format="tsv"))
    pages = sorted((row.href, row.status, row.text_digest.hex()) for row in all_pages(warehouse.stores.catalog))
    hits = [
        (word, (found := warehouse.search(word, limit=200)).total, sorted((hit.id, hit.title) for hit in found.hits))
        for word in ("whale", "ocean", '"whale 12"', "site")
    ]
print(hashlib.sha256(repr((quads, everything, by_object, pages, hits)).encode()).hexdigest())
"""


class _Found(msgspec.Struct):
    code: int
    said: str


def run(path: Path, *arguments: str) -> _Found:
    line = [sys.executable, "-m", "quadloom", "-w", str(path), *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, cwd=path.parent)
    return _Found(done.returncode, " ".join((done.stdout + done.stderr).split()))


def answers(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", ANSWERS, str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else f"no answer: {done.stderr[-800:]}"


def page(number: int) -> Page:
    url = f"http://site{number % 3}.example/{number}"
    noise = random.Random(number).randbytes(60).hex()
    body = (
        f'<title>Whale {number}</title><p vocab="http://schema.org/" typeof="Event"><b property="name">Whale {number}'
        f'</b><i property="description">{noise}</i></p><p>In the ocean.</p><a href="/{number + 1}">on</a>'
    )
    return Page(url, url, 200, (("content-type", "text/html"),), body.encode(), NOW + number, 0.1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    warc = folder / "pages.warc.gz"
    warc.write_bytes(file_header(warc.name, 0.0) + b"".join(encode(page(number)).member for number in range(PAGES)))
    path = folder / "wh"
    assert run(path, "import", str(warc)).code == 0
    assert run(path, "verify").code == 0
    return path


@pytest.mark.parametrize("tries", TRIES)
def test_a_flipped_byte_is_found_or_harmless(whole: Path, tmp_path: Path, tries: int) -> None:
    rng = random.Random(tries)
    before = answers(whole)
    files = sorted(str(file.relative_to(whole)) for file in whole.rglob("*") if file.is_file() and file.stat().st_size)
    chosen = [*files, *rng.choices(files, k=tries)][-tries:]
    unnoticed = []
    for name in chosen:
        path = tmp_path / "copy"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(whole, path)
        data = bytearray((path / name).read_bytes())
        place = rng.randrange(len(data))
        data[place] ^= 1 << rng.randrange(8)
        (path / name).write_bytes(data)
        if outcome := _undetected(path, before):
            unnoticed.append(f"{name} at {place}: {outcome}")
    assert not unnoticed, "\n".join(unnoticed)


def _undetected(path: Path, before: str) -> str:
    """Empty if the damage was found and repaired, if pages are named to be read again, or if nothing changes."""
    checked = run(path, "verify")
    if "Traceback" in checked.said:
        return f"verify: {checked.said[-500:]}"
    if checked.code == 0:
        after = answers(path)
        return "" if after == before else f"verify is content, but {after}"
    if "quadloom recover" in checked.said:
        repaired = run(path, "recover")
    elif "quadloom rebuild" in checked.said:
        repaired = run(path, "rebuild")
    elif "quadloom crawl" in checked.said or "quadloom refresh" in checked.said:
        return ""  # the pages are named, and their sites have them
    else:
        return f"no advice: {checked.said[-500:]}"
    if repaired.code != 0:
        return f"not repaired: {checked.said[-300:]} / {repaired.said[-500:]}"
    again = run(path, "verify")
    return "" if again.code == 0 else f"still damaged: {again.said[-500:]}"
