"""A loopback HTTP/1.1 server for the fake web, fast enough not to be what a benchmark measures.

A hand-written asyncio protocol: one parse, one cache lookup, one write per request. Whole responses (head and gzip
body) are cached by (host, target) up to a bound of bytes. With `--processes N` the processes share the listening
sockets. It runs until its standard input closes, so it cannot outlive the process that started it, or until a signal.

    python -m quadloom_lab.fakeweb.server.main --port 0 --pages 2000 --hosts 40 --seed 1
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path

import msgspec

from quadloom_lab.fakeweb.server.connection import Connection, Responder
from quadloom_lab.fakeweb.server.counters import WORKERS, ServerCounters
from quadloom_lab.fakeweb.sites.hosts import plan_hosts
from quadloom_lab.fakeweb.sites.layout import Layout
from quadloom_lab.fakeweb.sites.spec import WebSpec
from quadloom_lab.fakeweb.web import FakeWeb, demo_web

_TRIES = 50  # of finding a port that is free on all addresses


def main() -> int:
    arguments = _parser().parse_args()
    spec = _spec(arguments)
    sockets, port = listen(spec)
    web = FakeWeb(msgspec.structs.replace(spec, port=port))
    with tempfile.TemporaryDirectory(prefix="fakeweb-") as folder:
        counters = ServerCounters(Path(arguments.counters or f"{folder}/counters"))
        responder = Responder(web, counters, arguments.log, arguments.cache)
        ready = responder.prerender() if arguments.prerender else 0
        responder.flush()  # so that the counters include the cost of starting before the first request
        sys.stdout.write(json.dumps({"port": port, "seeds": web.seeds, "hosts": len(web.hosts), "ready": ready}) + "\n")
        sys.stdout.flush()
        children = _fork(responder, min(arguments.processes, WORKERS) - 1)
        asyncio.run(_serve(responder, sockets))
        if responder.worker:
            os._exit(0)  # the folder and the other children belong to the first process
        for child in children:
            os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)
    return 0


def listen(spec: WebSpec) -> tuple[list[socket.socket], int]:
    """Sockets that listen, and the first port: one address, an address per host, or a port per host.

    With port 0, a port is chosen that is free on all addresses.
    """
    count = len(plan_hosts(spec))
    for _ in range(_TRIES if spec.port == 0 else 1):
        sockets: list[socket.socket] = []
        try:
            first = _bind(_address_of(spec, 0), spec.port)
            sockets.append(first)
            port: int = first.getsockname()[1]
            for index in range(1, count):
                if spec.addressing == "ports":
                    sockets.append(_bind("127.0.0.1", port + index))
                elif spec.addressing == "addresses" or spec.spread:
                    sockets.append(_bind(_address_of(spec, index), port))
            return sockets, port
        except OSError:
            for sock in sockets:
                sock.close()
            if spec.port:
                raise
    raise OSError(f"no free port for {count} hosts after {_TRIES} tries")


def _address_of(spec: WebSpec, index: int) -> str:
    return Layout.address(index) if spec.addressing == "addresses" or spec.spread else "127.0.0.1"


def _bind(address: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((address, port))
        sock.listen(1024)
    except (OSError, OverflowError) as error:
        sock.close()
        raise OSError(str(error)) from error
    sock.setblocking(False)
    return sock


def _fork(responder: Responder, count: int) -> list[int]:
    """Start further processes on the same sockets; in each of them `responder.worker` is its number."""
    children: list[int] = []
    for number in range(1, count + 1):
        child = os.fork()
        if child == 0:
            responder.worker = number
            return []
        children.append(child)
    return children


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m quadloom_lab.fakeweb.server.main", description="Serve a fake web on loopback."
    )
    parser.add_argument("--port", type=int, default=0, help="0 = any free port; it is printed first, as JSON")
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--hosts", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="size of pages, 1 = 40 KB on average")
    parser.add_argument("--addressing", choices=("names", "addresses", "ports"), default="names")
    parser.add_argument("--demo", action="store_true", help="the small web of `quadloom demo`")
    parser.add_argument("--spec", default="", help="a whole WebSpec as JSON, instead of the options above")
    parser.add_argument("--log", default="", help="file for the request log, JSON lines")
    parser.add_argument(
        "--counters", default="", help="file shared with the test, see quadloom_lab.fakeweb.server.counters"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--prerender", action="store_true", help="fill the cache before listening, for benchmarks")
    parser.add_argument("--cache", type=int, default=192, help="MiB of cached responses, per process")
    return parser


def _spec(arguments: argparse.Namespace) -> WebSpec:
    if arguments.spec:
        return msgspec.json.decode(arguments.spec, type=WebSpec)
    if arguments.demo:
        return msgspec.structs.replace(demo_web().spec, port=arguments.port)
    return WebSpec(
        seed=arguments.seed,
        pages=arguments.pages,
        hosts=arguments.hosts,
        scale=arguments.scale,
        addressing=arguments.addressing,
        port=arguments.port,
    )


async def _serve(responder: Responder, sockets: list[socket.socket]) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, over.set)
    _end_with_stdin(loop, over)
    servers = [
        await loop.create_server(lambda: Connection(responder, loop), sock=sock, backlog=1024) for sock in sockets
    ]
    await over.wait()
    for server in servers:
        server.close()
    responder.flush()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(name)
        signal.signal(name, signal.SIG_IGN)  # the first process may send another signal while the loop closes


def _end_with_stdin(loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
    def ready() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            over.set()

    try:
        loop.add_reader(0, ready)
    except (PermissionError, ValueError, OSError):
        return  # a plain file or /dev/null: epoll refuses those; a signal ends the server


if __name__ == "__main__":
    sys.exit(main())
