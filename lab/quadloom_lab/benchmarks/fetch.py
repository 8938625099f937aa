"""CPU time of the fetch process per page, compared with other clients in the same run.

    python -m quadloom_lab.benchmarks.fetch [pages] [hosts]

A server in its own process gives gzip pages (about 40 KB decoded) over keep-alive HTTP/1.1 on loopback to `hosts`
names. Each client reads all pages with 64 requests at a time; its CPU time (user and system, its own process only) is
divided by the pages. The clients take turns, twice, because the machine's speed drifts. `quadloom fetcher` is
everything the fetch process does for a page: robots rules, guard, DNS table, pace and decoding; `quadloom client`
is the client alone. aiohttp and Scrapy are measured if they are installed.
"""

from __future__ import annotations

import asyncio
import gzip
import importlib.util
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time

from quadloom.model.page import Failure, Page
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings, GuardSettings, LimitSettings, PolitenessSettings, Settings

CONNECTIONS = 300  # the default of limits.connections: one keep-alive connection for each host
IN_FLIGHT = 64


def page_bytes() -> bytes:
    rows = "".join(
        f'<li class="item" id="r{n}"><a href="/page/{n * 7919 % 5000}">Entry {n * 104729 % 65537}</a> '
        f"<span>{n * n * 31 % 100003} words about thing {n * 17 % 977}</span></li>\n"
        for n in range(380)
    )
    return f"<!doctype html><html><head><title>Bench</title></head><body><ul>{rows}</ul></body></html>".encode()


class Server(asyncio.Protocol):
    """Just enough HTTP/1.1 to answer GET with keep-alive."""

    page = b""
    robots = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            answer = self.robots if self.buffer.startswith(b"GET /robots.txt") else self.page
            self.buffer = self.buffer[end + 4 :]
            self.transport.write(answer)  # type: ignore[attr-defined]


def serve(pipe: multiprocessing.connection.Connection) -> None:
    head = (
        "HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Tue, 01 Jan 2030 00:00:00 GMT\r\nCache-Control: max-age=60\r\n"
        'ETag: "abc"\r\nVary: Accept-Encoding\r\nX-Frame-Options: DENY\r\n'
    )
    body = gzip.compress(page_bytes(), 6)
    more = f"Content-Type: text/html; charset=utf-8\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    Server.page = (head + more).encode() + body
    rules = b"User-agent: *\nDisallow: /private/\nDisallow: /*.cgi$\nAllow: /private/open\n"
    Server.robots = (
        f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(rules)}\r\n\r\n".encode() + rules
    )

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=512)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def urls(port: int, pages: int, hosts: int) -> list[str]:
    return [f"http://h{n % hosts}.bench.test:{port}/page/{n}" for n in range(pages)]


def settings() -> Settings:
    return Settings(
        crawl=CrawlSettings(contact="https://example.org/bot"),
        guard=GuardSettings(allow=["127.0.0.0/8"], hosts={"*.bench.test": "127.0.0.1"}),
        limits=LimitSettings(connections=CONNECTIONS),
        politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0),
    )


def _size(result: Page | Failure) -> int:
    if isinstance(result, Failure):
        raise AssertionError(f"a page was not read: {result}")
    return len(result.body)


def quadloom_client(targets: list[str]) -> int:
    from quadloom.fetching.http.transport import CurlTransport
    from quadloom.fetching.transport import FetchRequest

    client = CurlTransport(settings())
    done: list[int] = []
    waiting = iter(targets)
    while len(done) < len(targets):
        while client.in_flight < IN_FLIGHT and (href := next(waiting, None)) is not None:
            client.submit(FetchRequest(href=href), lambda result: done.append(_size(result)))
        client.step(1.0)
    client.close()
    return sum(done)


def quadloom_fetcher(targets: list[str]) -> int:
    from quadloom.fetching.unit import open_fetcher
    from quadloom.model.url import Url

    fetcher = open_fetcher(settings())
    records = (Url.parse(href) for href in targets)
    visits = iter([Visit(url.href, url.key, url.host, url.fingerprint) for url in records])
    done = size = 0
    while done < len(targets):
        batch: list[Visit] = []
        while fetcher.in_flight + len(batch) < IN_FLIGHT and (visit := next(visits, None)) is not None:
            batch.append(visit)
        fetcher.submit(batch)
        for fetched in fetcher.step(1.0):
            done += 1
            size += _size(fetched.result)
    fetcher.close()
    return size


def aiohttp_client(targets: list[str]) -> int:
    import aiohttp
    from aiohttp.abc import AbstractResolver

    class Loopback(AbstractResolver):
        async def resolve(self, host, port=0, family=0):  # type: ignore[no-untyped-def]
            return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": 2, "proto": 6, "flags": 0}]

        async def close(self) -> None: ...

    async def main() -> int:
        connector = aiohttp.TCPConnector(limit=CONNECTIONS, resolver=Loopback())
        waiting = iter(targets)
        size = 0

        async def work(session: aiohttp.ClientSession) -> None:
            nonlocal size
            for href in waiting:
                async with session.get(href) as response:
                    size += len(await response.read())

        async with aiohttp.ClientSession(connector=connector) as session:
            await asyncio.gather(*(work(session) for _ in range(IN_FLIGHT)))
        return size

    return asyncio.run(main())


def scrapy_client(targets: list[str]) -> int:
    import scrapy
    from scrapy.crawler import CrawlerProcess

    total = [0]

    class Bench(scrapy.Spider):
        name = "bench"

        async def start(self):  # type: ignore[no-untyped-def]
            for href in targets:
                yield scrapy.Request(href, dont_filter=True)

        def parse(self, response):  # type: ignore[no-untyped-def]
            total[0] += len(response.body)

    process = CrawlerProcess(
        {
            "LOG_ENABLED": False,
            "CONCURRENT_REQUESTS": IN_FLIGHT,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
            "ROBOTSTXT_OBEY": True,
            "TELNETCONSOLE_ENABLED": False,
            "DNS_RESOLVER": f"{__name__}.LoopbackResolver",
        }
    )
    process.crawl(Bench)
    process.start()
    return total[0]


if importlib.util.find_spec("scrapy"):
    from scrapy.resolver import CachingThreadedResolver
    from twisted.internet import defer

    class LoopbackResolver(CachingThreadedResolver):
        def getHostByName(self, name, timeout=None):  # type: ignore[no-untyped-def]
            return defer.succeed("127.0.0.1")


CLIENTS = {
    "quadloom-client": (quadloom_client, "quadloom"),
    "quadloom-fetcher": (quadloom_fetcher, "quadloom"),
    "aiohttp": (aiohttp_client, "aiohttp"),
    "scrapy": (scrapy_client, "scrapy"),
}


def run_one(name: str, port: int, pages: int, hosts: int) -> None:
    """Runs in its own process, so that CPU time and memory are the client's alone."""
    targets = urls(port, pages, hosts)
    client = CLIENTS[name][0]
    if name != "scrapy":  # its reactor starts only once; the others warm up imports and connections
        client(targets[:hosts])
    cpu, wall = time.process_time(), time.perf_counter()
    size = client(targets)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"client": name, "cpu_ms": cpu / pages * 1000, "per_s": pages / wall, "rss": rss, "size": size}))


def main() -> None:
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    hosts = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    port = here.recv()
    print(f"{pages} pages of {len(page_bytes()) // 1024} KB on {hosts} hosts, {IN_FLIGHT} requests at a time")
    print(f"{'client':18} {'CPU-ms/page':>12} {'pages/s':>9} {'RSS MB':>7}")
    names = [name for name, (_, module) in CLIENTS.items() if importlib.util.find_spec(module)]
    for name in names * 2:
        count = pages if name != "scrapy" else pages // 10  # an order of magnitude slower: a tenth is enough
        command = [sys.executable, __file__, "--one", name, str(port), str(count), str(hosts)]
        answer = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
        if answer.returncode:
            print(f"{name:18} failed: {answer.stderr.strip().splitlines()[-1:]}")
            continue
        row = json.loads(answer.stdout.strip().splitlines()[-1])
        whole = "" if row["size"] == count * len(page_bytes()) else "  incomplete!"
        print(f"{name:18} {row['cpu_ms']:12.3f} {row['per_s']:9.0f} {row['rss']:7}{whole}")
    server.kill()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run_one(sys.argv[2], *(int(word) for word in sys.argv[3:6]))
    else:
        main()
