"""The fetch process stays small, however many pages of whatever size it has brought.

Over 100,000 pages of 42 KB in the mean on 2,000 hosts it needed 81 MB, and 65 MB over 15,000 pages on 300 hosts, all
of it within the first few thousand. Before bodies were let go of at once it was 127 to 161 MB.
"""

from __future__ import annotations

import asyncio
import gzip
import multiprocessing
import random
import re
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from quadloom.fetching.fetcher import FetchResult
from quadloom.fetching.process import FetchProcess
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import GuardSettings, PolitenessSettings, Settings
from waiting import wait_until

PAGES, HOSTS, UNDER_WAY = 3000, 300, 300
MOST = 100 << 10  # KiB; without letting bodies go at once it is 156 MiB here


def serve(pipe: Connection) -> None:
    draw = random.Random(1)
    words = [bytes(draw.choices(b"abcdefghijklmnopqrstuvwxyz", k=draw.randrange(3, 10))) for _ in range(3000)]
    answers = []
    for _ in range(100):
        body = gzip.compress(b" ".join(draw.choices(words, k=int(draw.lognormvariate(10.4, 1.0)) // 7 + 1)), 5)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}"
        answers.append(head.encode() + b"\r\n\r\n" + body)

    class Answering(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport, self.received = transport, b""

        def data_received(self, data: bytes) -> None:
            self.received += data
            while b"\r\n\r\n" in self.received:
                request, _, self.received = self.received.partition(b"\r\n\r\n")
                missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
                answer = missing if request.startswith(b"GET /robots.txt") else draw.choice(answers)
                self.transport.write(answer)  # type: ignore[attr-defined]

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0, backlog=512)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def test_thousands_of_pages_of_all_sizes() -> None:
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    port = ours.recv()
    settings = Settings(
        politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0),
        guard=GuardSettings(allow=["127.0.0.0/8"], hosts={"*.test": "127.0.0.1"}),
    )
    room = threading.Semaphore(UNDER_WAY)
    pages: list[int] = []

    def on_fetched(batch: Sequence[FetchResult]) -> None:
        for fetched in batch:
            pages.append(len(fetched.result.body) if isinstance(fetched.result, Page) else 0)
            room.release()

    errors: list[BaseException] = []
    process = FetchProcess(settings, on_fetched, lambda lost: errors.append(AssertionError(lost)), errors.append)
    try:
        for number in range(PAGES):
            assert room.acquire(timeout=30)
            host = f"h{number % HOSTS}.test:{port}"
            url = f"http://{host}/{number}"
            process.send([Visit(url, url, host, number)], {}, {})
        wait_until(lambda: len(pages) >= PAGES)
        status = Path(f"/proc/{process.heartbeat().pid}/status").read_text(encoding="ascii")
    finally:
        process.close()
        server.kill()
        server.join()
    assert not errors
    assert len(pages) == PAGES
    assert min(pages) > 0
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak is not None
    assert int(peak.group(1)) < MOST
