"""How the site answers many clients at once: p50 and p99 per kind of question, and what they cost a crawl beside them.

    python tests/bench/bench_web.py WAREHOUSE [--clients 100] [--seconds 10] [--base http://127.0.0.1:7272]

Without --base a server is started for the warehouse. Clients keep their connections and ask one question after the
other. Figures are per question kind; the server's CPU is that of its process and its query processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from urllib.parse import quote

QUESTIONS = {
    "search": "/search.json?q={word}",
    "search page": "/search?q={word}",
    "sparql": "/sparql?query=" + quote("SELECT ?s { ?s a <http://schema.org/Person> } LIMIT 10"),
    "sparql words": "/sparql?query=" + quote('SELECT ?p { ?p ql:matches "lighthouse" } LIMIT 10'),
    "home": "/",
}
WORDS = ("lighthouse", "museum", "book", "event", "recipe", "person", "garden", "history")


async def ask(base: tuple[str, int], until: float, times: dict[str, list[float]], bad: dict[str, int]) -> None:
    """One client: a kept connection, one question after the other."""
    reader, writer = await asyncio.open_connection(*base)
    choose = random.Random(os.urandom(8))
    while time.monotonic() < until:
        kind = choose.choice(list(QUESTIONS))
        path = QUESTIONS[kind].format(word=choose.choice(WORDS))
        began = time.monotonic()
        accept = "text/html" if kind in ("home", "search page") else "*/*"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\n\r\n".encode())
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        if status == 200:
            times[kind].append(time.monotonic() - began)
        else:
            bad[f"{kind} {status}"] += 1
    writer.close()


async def load(base: tuple[str, int], clients: int, seconds: float) -> dict[str, object]:
    times: dict[str, list[float]] = defaultdict(list)
    bad: dict[str, int] = defaultdict(int)
    until = time.monotonic() + seconds
    await asyncio.gather(*(ask(base, until, times, bad) for _ in range(clients)))
    figures: dict[str, object] = {}
    for kind, found in sorted(times.items()):
        found.sort()
        figures[kind] = {
            "answers": len(found),
            "p50_ms": round(1000 * found[len(found) // 2], 1),
            "p99_ms": round(1000 * found[min(len(found) - 1, int(len(found) * 0.99))], 1),
        }
    total = sum(len(found) for found in times.values())
    return {"clients": clients, "per_second": round(total / seconds, 1), "refused": dict(bad), "by_kind": figures}


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and its living children (Linux)."""
    ticks, tree = 0, {pid}
    for stat in sorted(Path("/proc").glob("[0-9]*/stat"), key=lambda path: int(path.parent.name)):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) in tree or int(fields[1]) in tree:
            tree.add(int(stat.parent.name))
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("warehouse", type=Path)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--base", default="")
    parser.add_argument("--only", default="", help="one kind of question")
    given = parser.parse_args()
    for kind in list(QUESTIONS):
        if given.only not in ("", kind):
            del QUESTIONS[kind]
    if given.base:
        host, _, port = given.base.removeprefix("http://").strip("/").partition(":")
        print(json.dumps(asyncio.run(load((host, int(port)), given.clients, given.seconds)), indent=2))
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port_number = int(probe.getsockname()[1])
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as settings:
        settings.write("[web]\nrate = 0.0\nconcurrency = 0\n")
        settings.flush()
        command = [sys.executable, "-m", "quadloom.cli", "-w", str(given.warehouse), "--config", settings.name]
        server = subprocess.Popen([*command, "--quiet", "serve", "--port", str(port_number)])
        try:
            for _ in range(100):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port_number)) == 0:
                        break
                time.sleep(0.1)
            before = cpu_seconds(server.pid)
            figures = asyncio.run(load(("127.0.0.1", port_number), given.clients, given.seconds))
            spent = cpu_seconds(server.pid) - before
            rate = figures["per_second"]
            assert isinstance(rate, float)
            figures["server_cpu_ms_per_answer"] = round(1000 * spent / max(1.0, rate * given.seconds), 2)
            print(json.dumps(figures, indent=2))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
