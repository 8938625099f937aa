"""A page passes the modules that ARCHITECTURE.md names, and not many others: counted in all processes of a crawl."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from command_line import clean_environment
from unit import ROOT

PAGES = 1000
MODULES, FUNCTIONS, CALLS = 108, 410, 590  # quiet 105, 371 and 549: on a busy machine batches are smaller
SETTINGS = """
crawl = {contact = "https://example.org/about-this-crawler", workers = 1}
politeness = {delay = 0, ip_delay = 0, adaptive = 0, per_site = 32}
guard = {allow = ["127.0.0.0/8"]}
"""


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        code, body = 404, b""
        if self.path != "/robots.txt":
            code, body = 200, page(int(self.path.strip("/") or 0))
        self.send_response(code)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def page(number: int) -> bytes:
    links = "".join(
        f'<a href="/{other}">page {other}</a> ' for other in range(3 * number + 1, 3 * number + 4) if other < PAGES
    )
    data = json.dumps({"@context": "https://schema.org", "@type": "Event", "@id": "#it", "name": f"Concert {number}"})
    return (
        f"<html lang=en><title>Concert {number}</title><main><p>All about concert {number}.</p>{links}</main>"
        f'<script type="application/ld+json">{data}</script></html>'
    ).encode()


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counter[str]]:
    """Calls of each function, as `module:name`, in a crawl that never waits."""
    folder = tmp_path_factory.mktemp("walk")
    (folder / "counts").mkdir()
    (folder / "quadloom.toml").write_text(SETTINGS, encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = clean_environment(
        folder, CALL_COUNTS=str(folder / "counts"), PYTHONPATH=os.fspath(ROOT / "tests/tracing")
    )
    try:
        done = subprocess.run(
            [sys.executable, "-m", "quadloom", "-w", "warehouse", "crawl", f"http://127.0.0.1:{server.server_port}/"],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    counts: Counter[str] = Counter()
    for file in (folder / "counts").iterdir():
        counts.update(json.loads(file.read_text(encoding="utf-8")))
    yield counts


def entered(calls: Counter[str], share: float = 0.9) -> Counter[str]:
    """Modules with a call for nine of ten pages, with their calls."""
    modules: Counter[str] = Counter()
    for function, number in calls.items():
        modules[function.partition(":")[0]] += number
    return Counter({module: number for module, number in modules.items() if number >= share * PAGES})


def test_a_page_passes_few_modules_functions_and_calls(calls: Counter[str]) -> None:
    modules = entered(calls)
    functions = [function for function, number in calls.items() if number >= 0.9 * PAGES]
    assert len(modules) <= MODULES, sorted(modules)
    assert len(functions) <= FUNCTIONS
    assert sum(modules.values()) <= CALLS * PAGES


def test_architecture_tells_the_walk_as_it_is(calls: Counter[str]) -> None:
    walk = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## The walk of one page\n")[1]
    named = re.findall(r"`([\w/]+\.py)`", walk.partition("Its records, in order:")[0])
    modules = entered(calls)
    in_batches = entered(calls, 0.01)  # a busy machine has larger batches
    assert [name for name in named if name not in in_batches and not name.startswith("tests/")] == []
    told = re.search(r"passes (\d+) modules and some (\d+) Python calls", walk)
    assert told is not None
    assert abs(int(told[1]) - len(modules)) <= 5
    assert abs(int(told[2]) - sum(modules.values()) / PAGES) <= 40
