"""A crawl in one terminal, the site in another: with --control and a token the site pauses it, and all views say so."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from e2e.live_site import _toml
from quadloom.cli.demo import demo_settings
from quadloom.settings import Settings
from quadloom_lab.fakeweb import demo_web, serve_in_process
from servers import free_port
from waiting import wait_until


@contextmanager
def running(folder: Path, name: str, *arguments: str) -> Iterator[Path]:
    """A command in a process of its own; yields its log."""
    command = [sys.executable, "-m", "quadloom", "-w", str(folder / "data"), "--config", str(folder / "q.toml")]
    with (folder / name).open("wb") as log:
        process = subprocess.Popen([*command, *arguments], stderr=log, stdout=log)
    try:
        yield folder / name
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


def asked(address: str, method: str = "GET", **headers: str) -> str:
    request = urllib.request.Request(address, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(answer.read().decode())


def until(words: str, look: Callable[[], object], seconds: float = 60.0) -> str:
    found = [""]

    def seen() -> bool:
        found.append(str(look()))
        return words in found[-1]

    wait_until(seen, lambda: found[-1][-2000:], seconds=seconds, ignoring=suppress(OSError))  # not listening yet
    return found[-1]


@pytest.mark.slow
def test_a_crawl_of_another_terminal_is_paused_from_the_site(tmp_path: Path) -> None:
    with serve_in_process(demo_web(), logging=False) as serving:
        settings = demo_settings(Settings(), serving.web.hosts_override())
        polite = msgspec.structs.replace(settings.politeness, delay=1.0)
        port = free_port()
        web = msgspec.structs.replace(settings.web, rate=1000.0, port=port)
        (tmp_path / "q.toml").write_text(_toml(msgspec.structs.replace(settings, politeness=polite, web=web)))
        base = f"http://127.0.0.1:{port}"
        with running(tmp_path, "crawl.log", "crawl", *serving.web.homes):
            until("quadloom.db", lambda: [path.name for path in (tmp_path / "data").glob("*.db")])
            with running(tmp_path, "serve.log", "serve", "--control") as log:
                until('"running":true', lambda: asked(f"{base}/monitor.json"))
                token = next(line.split()[1] for line in log.read_text().splitlines() if line.startswith("Token"))
                answer = asked(f"{base}/control/pause", "POST", Authorization=f"Bearer {token}")
                assert json.loads(answer)["answer"] == "paused"
                until("The crawl is paused", lambda: asked(f"{base}/types", accept="text/html"))
                until(">paused</b>", lambda: asked(f"{base}/", accept="text/html"))
                until("The crawl is paused: ", lambda: asked(f"{base}/monitor", accept="text/html"))
                status = [sys.executable, "-m", "quadloom", "-w", str(tmp_path / "data"), "status", "--json"]
                shown = subprocess.run(status, capture_output=True, text=True, check=True, timeout=60).stdout
                assert json.loads(shown)["state"] == "paused"
                asked(f"{base}/control/resume", "POST", Authorization=f"Bearer {token}")
