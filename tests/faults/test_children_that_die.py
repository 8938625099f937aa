"""Child processes that cannot start, or that a response kills: the crawl neither restarts them for ever nor blames
pages that did nothing."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from faults.crawling import command
from quadloom.errors import ChildFailed
from quadloom.maintenance.archive_order import all_pages
from quadloom.warehouse import Warehouse

PAGES = 30
# As an installation with a damaged module. The log counts the tries.
DAMAGED = """
import pathlib, sys

class Damaged:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            with pathlib.Path(__file__).with_name("tries.log").open("a") as log:
                log.write("try\\n")
            raise ImportError("damaged: " + name)

sys.meta_path.insert(0, Damaged())
"""
# As a decoder with a defect: the process dies with the response, and with all that it had not sent yet.
CRASHING = """
import ctypes, pathlib
import quadloom.fetching.process as process
original = process._batches

def crashing(fetched):
    if any(b"POISON" in getattr(item.result, "body", b"") for item in fetched):
        with pathlib.Path(__file__).with_name("tries.log").open("a") as log:
            log.write("try\\n")
        ctypes.string_at(0)
    return original(fetched)

process._batches = crashing
"""


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        links = "".join(f'<a href="/{number}">page</a>' for number in range(PAGES))
        body = f"<title>page {self.path}</title>{links}{'POISON' if self.path == '/7' else ''}".encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/0"
    finally:
        server.shutdown()
        server.server_close()


def crawl(folder: Path, damage: str) -> subprocess.CompletedProcess[str]:
    (folder / "sitecustomize.py").write_text(damage, encoding="utf-8")
    config = folder / "quadloom.toml"
    config.write_text(
        '[crawl]\ncontact = "test@quadloom.invalid"\nworkers = 2\nmax_wait = 1.0\n'
        "[politeness]\ndelay = 0.0\nip_delay = 0.0\nadaptive = 0.0\nper_site = 8\nretries = 0\n"
        '[guard]\nallow = ["127.0.0.0/8"]\n',
        encoding="utf-8",
    )
    with site() as home:
        return subprocess.run(
            command(folder / "warehouse", config, "crawl", home),
            capture_output=True,
            text=True,
            timeout=240,
            env={**os.environ, "PYTHONPATH": str(folder)},
            check=False,
        )


def tries(folder: Path) -> int:
    return len((folder / "tries.log").read_text().splitlines())


@pytest.mark.parametrize(
    ("module", "name"),
    [("quadloom.fetching.http.transport", "fetch"), ("quadloom.crawling.workers.worker_main", "transform")],
)
def test_a_process_that_cannot_start_ends_the_crawl_with_a_reason(tmp_path: Path, module: str, name: str) -> None:
    done = crawl(tmp_path, DAMAGED.format(module=module))
    assert done.returncode == ChildFailed.exit_code, done.stderr[-3000:]
    assert f"the {name} process could not be started" in done.stderr
    assert f"damaged: {module}" in done.stderr, "what the child itself said"
    assert tries(tmp_path) <= 12, "a few times for each worker"
    with Warehouse.read(tmp_path / "warehouse") as warehouse:
        assert not [row for row in all_pages(warehouse.stores.catalog) if row.kind == "quarantined"], (
            "no page is to blame"
        )
        assert warehouse.stores.frontier.stats(0.0).queued > 0, "nothing is lost: the next crawl goes on"


def test_a_response_that_kills_the_fetch_process_costs_itself(tmp_path: Path) -> None:
    done = crawl(tmp_path, CRASHING)
    assert done.returncode == 0, done.stderr[-3000:]
    with Warehouse.read(tmp_path / "warehouse") as warehouse:
        rows = {row.href.rpartition("/")[2]: row for row in all_pages(warehouse.stores.catalog)}
    assert {name for name, row in rows.items() if row.status == 200} == {str(n) for n in range(PAGES) if n != 7}
    assert "the fetch process died three times" in rows["7"].reason
    assert tries(tmp_path) <= 8
