"""`quadloom serve --crawl` over the small web of the demo, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError

import msgspec

from quadloom.cli.demo import demo_settings
from quadloom.settings import Settings
from quadloom_lab.fakeweb import demo_web, serve_in_process
from servers import free_port
from waiting import wait_until

# Seconds that an answer may take: only a server that hangs takes longer, however busy the machine is.
PATIENCE = 100


class Live:
    """A running server: its address, the token it printed, its warehouse, log and process."""

    def __init__(self, base: str, token: str, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.base = base
        self.token = token
        self.warehouse = folder / "data"
        self.log = folder / "log"
        self.process = process

    def get(self, path: str) -> dict[str, object]:
        with urllib.request.urlopen(self.base + path, timeout=PATIENCE) as answer:
            found = json.load(answer)
        assert isinstance(found, dict)
        return found


@contextmanager
def live_site(folder: Path, *, delay: float = 0.2) -> Iterator[Live]:
    """Yields when the first pages are searchable; the crawl is slow enough to be watched. Whoever uses it ends it."""
    with serve_in_process(demo_web(), logging=False) as serving:
        settings = demo_settings(Settings(), serving.web.hosts_override())
        polite = msgspec.structs.replace(settings.politeness, delay=delay)
        web = msgspec.structs.replace(settings.web, rate=1000.0, port=free_port())
        settings = msgspec.structs.replace(settings, politeness=polite, web=web)
        (folder / "quadloom.toml").write_text(_toml(settings))
        command = [sys.executable, "-m", "quadloom", "-w", str(folder / "data")]
        command += ["--config", str(folder / "quadloom.toml"), "serve", "--crawl", *serving.web.homes]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stderr=log, stdout=log)
        try:
            base = f"http://127.0.0.1:{web.port}"
            _wait(base, process, folder / "log")
            lines = (folder / "log").read_text().splitlines()
            token = next(line.split()[1] for line in lines if line.startswith("Token"))
            yield Live(base, token, folder, process)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(60)


def _toml(settings: Settings) -> str:
    """The sections that the demo sets. A JSON value is a TOML value, but for tables."""
    tree = msgspec.to_builtins(settings)
    assert isinstance(tree, dict)
    lines = []
    for section in ("crawl", "politeness", "guard", "web"):
        lines.append(f"[{section}]")
        for name, value in tree[section].items():
            if isinstance(value, dict):
                pairs = ", ".join(f"{json.dumps(key)} = {json.dumps(inner)}" for key, inner in value.items())
                lines.append(f"{name} = {{{pairs}}}")
            else:
                lines.append(f"{name} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _wait(base: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the stores answer and the first pages are searchable."""

    def found() -> bool:
        with urllib.request.urlopen(base + "/search.json?q=lighthouse", timeout=PATIENCE) as answer:
            return bool(json.load(answer)["total"])

    away = suppress(URLError, ConnectionError, TimeoutError)
    # A loaded machine starts slowly; a server that ends is noticed at once.
    wait_until(found, lambda: f"not searchable: {log.read_text()}", seconds=240, alive=process, ignoring=away)
