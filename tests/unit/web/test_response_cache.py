"""Cached responses: computed once for equal requests within a second, and never another client's response."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.testclient import TestClient

from quadloom.settings import Settings, WebSettings
from quadloom.web.api.control import COOKIE
from quadloom.web.app import create_app
from quadloom.web.routes import ROUTES
from quadloom.web.server.response_cache import ResponseCache
from quadloom.web.server.state import SiteState


class Counted:
    def __init__(self, *statuses: int) -> None:
        self.made = 0
        self._statuses = statuses

    async def make(self) -> Response:
        self.made += 1
        await asyncio.sleep(0)
        return Response(f"answer {self.made}", self._statuses[min(self.made, len(self._statuses)) - 1])


def test_many_at_once_are_one_work_and_a_second_later_it_is_done_anew() -> None:
    now = 0.0

    async def scene() -> None:
        nonlocal now
        cache, work = ResponseCache(1.0, clock=lambda: now), Counted(200)
        answers = await asyncio.gather(*(cache.get(("/", ""), work.make) for _ in range(10)))
        assert {bytes(answer.body) for answer in answers} == {b"answer 1"}
        now = 0.9
        assert (await cache.get(("/", ""), work.make)).body == b"answer 1"
        assert (await cache.get(("/", "q=x"), work.make)).body == b"answer 2", "another question"
        now = 1.1
        assert (await cache.get(("/", ""), work.make)).body == b"answer 3"

    asyncio.run(scene())


def test_after_a_change_everything_is_answered_anew() -> None:
    async def scene() -> None:
        cache, work = ResponseCache(1.0, clock=lambda: 0.0), Counted(200)
        before = asyncio.ensure_future(cache.get(("/",), work.make))
        await asyncio.sleep(0)
        cache.clear()
        assert (await cache.get(("/",), work.make)).body == b"answer 2", "not the one that was in progress"
        assert (await before).body == b"answer 1"
        assert (await cache.get(("/",), work.make)).body == b"answer 2"

    asyncio.run(scene())


def test_errors_are_not_cached() -> None:
    async def scene() -> None:
        cache, work = ResponseCache(1.0, clock=lambda: 0.0), Counted(503, 200)
        assert (await cache.get(("/",), work.make)).status_code == 503
        assert (await cache.get(("/",), work.make)).status_code == 200

    asyncio.run(scene())


def test_errors_reach_everybody_and_are_forgotten() -> None:
    async def fail() -> Response:
        await asyncio.sleep(0)
        raise ValueError("broken")

    async def scene() -> None:
        cache = ResponseCache(1.0, clock=lambda: 0.0)
        found = await asyncio.gather(*(cache.get(("/",), fail) for _ in range(3)), return_exceptions=True)
        assert [type(error) for error in found] == [ValueError] * 3
        assert (await cache.get(("/",), Counted(200).make)).status_code == 200

    asyncio.run(scene())


def test_one_who_leaves_takes_nothing_from_others() -> None:
    async def scene() -> None:
        cache, work = ResponseCache(1.0), Counted(200)
        leaving = asyncio.ensure_future(cache.get(("/",), work.make))
        await asyncio.sleep(0)
        staying = asyncio.ensure_future(cache.get(("/",), work.make))
        leaving.cancel()
        assert (await staying).body == b"answer 1"
        with pytest.raises(asyncio.CancelledError):
            await leaving

    asyncio.run(scene())


def test_what_changes_something_or_needs_a_token_is_never_kept() -> None:
    for endpoint in ROUTES:
        if endpoint.cached:
            assert endpoint.methods == ("GET",) and not endpoint.token, endpoint.path


def test_twin_page_and_signed_in_reader_do_not_share(warehouse_path: Path, token: str) -> None:
    site = SiteState(warehouse_path, Settings(web=WebSettings(rate=0)), may_control=True)
    with TestClient(create_app(site), base_url="http://localhost") as client:
        html = {"accept": "text/html"}
        assert client.get("/monitor", headers=html).headers["content-type"].startswith("text/html")
        assert client.get("/monitor", headers={"accept": "application/json"}).json()["ok"] is True
        assert "Sign in to pause" in client.get("/monitor", headers=html).text
        client.cookies.set(COOKIE, token)
        assert "Sign in to pause" not in client.get("/monitor", headers=html).text
