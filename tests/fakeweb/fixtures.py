"""Pytest fixtures. Import the ones you need in a conftest: `from fakeweb.fixtures import fake_web`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fakeweb.hostile import HostileServer
from quadloom_lab.fakeweb import FakeWeb, FakeWebServer, WebSpec, demo_web, serve_in_process

SMALL = WebSpec(seed=3, pages=120, hosts=6, scale=0.1, links=24, slow_seconds=0.05, crawl_delay=0.1)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., FakeWebServer]]:
    """Serves any web until the test ends; each call is a server of its own."""
    with ExitStack() as stack:

        def start(web: FakeWeb, *, processes: int = 1) -> FakeWebServer:
            log = tmp_path / f"requests-{len(list(tmp_path.iterdir()))}.jsonl"
            return stack.enter_context(serve_in_process(web, processes=processes, log=log))

        yield start


@pytest.fixture(scope="module")
def fake_web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeWebServer]:
    """A small web with all its faults and traps: 120 pages on 6 hosts."""
    log = tmp_path_factory.mktemp("fakeweb") / "requests.jsonl"
    with serve_in_process(FakeWeb(SMALL), log=log) as serving:
        yield serving


@pytest.fixture(scope="module")
def demo_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeWebServer]:
    """The web of `quadloom demo --offline`."""
    log = tmp_path_factory.mktemp("demoweb") / "requests.jsonl"
    with serve_in_process(demo_web(), log=log) as serving:
        yield serving


@pytest.fixture
def hostile() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server
