"""Runs `quadloom crawl` as its own process group on the fake web, to be killed and judged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from command_line import quadloom
from fakeweb.request_log import RequestLog
from quadloom_lab.fakeweb import FakeWebServer
from waiting import wait_until

IN_FLIGHT = 64


def write_config(folder: Path, serving: FakeWebServer, **crawl: str | int | float | list[str]) -> Path:
    """A config for crawling the fake web without pauses."""
    hosts = ", ".join(f'"{name}" = "{address}"' for name, address in serving.web.hosts_override().items())
    extra = "\n".join(f"{key} = {json.dumps(value)}" for key, value in crawl.items())
    path = folder / "quadloom.toml"
    path.write_text(
        f"""
[crawl]
contact = "test@quadloom.invalid"
scope = "any"
workers = 1
in_flight = {IN_FLIGHT}
batch = 32
max_wait = 1.0
{extra}
[politeness]
delay = 0.0
ip_delay = 0.0
per_site = 8
adaptive = 0.0
retries = 1
backoff = 0.2
max_backoff = 0.5
max_crawl_delay = 0.0
[index]
text_commit_seconds = 0.5
[guard]
allow = ["127.0.0.0/8"]
hosts = {{ {hosts} }}
""",
        encoding="utf-8",
    )
    return path


def run_config(folder: Path, serving: FakeWebServer, **sections: Mapping[str, str | int | float]) -> Path:
    """Like `write_config`, with sections of one's own choice."""
    hosts = ", ".join(f'"{name}" = "{address}"' for name, address in serving.web.hosts_override().items())
    crawl = {"contact": "test@quadloom.invalid", "scope": "any", "workers": 1, **sections.pop("crawl", {})}
    text = f'[guard]\nallow = ["127.0.0.0/8"]\nhosts = {{ {hosts} }}\n'
    for name, values in {"crawl": crawl, **sections}.items():
        text += f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
    path = folder / "quadloom.toml"
    path.write_text(text, encoding="utf-8")
    return path


def command(warehouse: Path, config: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "quadloom", "-w", str(warehouse), "--config", str(config), *arguments]


def start(warehouse: Path, config: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(warehouse, config, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def killed_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Let a command run for so long and kill it, children included; False when it ended before."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        kill_group(process)
        return True
    return False


def kill_group(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def finish(warehouse: Path, config: Path, *arguments: str) -> dict[str, object]:
    """Run to the end, in this process; the last line of stdout as JSON."""
    done = quadloom("-w", str(warehouse), "--config", str(config), *arguments, cwd=config.parent)
    assert done.returncode == 0, (done.stderr + done.stdout)[-3000:]
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


def finish_alone(warehouse: Path, config: Path, *arguments: str) -> dict[str, object]:
    """As `finish`, in a process of its own: for crawls whose requests this process answers while it judges them."""
    done = subprocess.run(command(warehouse, config, *arguments), capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, (done.stderr + done.stdout).decode()[-3000:]
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


def requests(serving: FakeWebServer) -> Counter[str]:
    """URL → number of requests so far."""
    return RequestLog(serving.log_path).count_by_url()


def must_be_read(serving: FakeWebServer) -> set[str]:
    """What a complete crawl has asked for. Which document of a person the registry redirects to depends on Accept."""
    return {url for url in serving.web.reachable() if "://id.registry." not in url}


def wait_for_requests(
    serving: FakeWebServer, count: int, process: subprocess.Popen[bytes], seconds: float = 60
) -> bool:
    """Wait until the server has answered `count` requests; False when the crawl ended before."""
    wait_until(
        lambda: serving.load().requests >= count or process.poll() is not None,
        lambda: f"only {serving.load().requests} of {count} requests within {seconds} s",
        seconds=seconds,
    )
    return serving.load().requests >= count
