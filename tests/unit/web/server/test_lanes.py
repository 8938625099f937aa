"""Lanes: a slow class of work holds up neither the others nor, without end, those in its own line."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import httpx
import pytest

import quadloom.web.pages.inspect as inspect_page
from quadloom.settings import Settings, WebSettings
from quadloom.web.app import create_app
from quadloom.web.server.errors import HttpError
from quadloom.web.server.lanes import Lane
from quadloom.web.server.state import SiteState


def test_a_full_line_is_refused_at_once() -> None:
    lane, gate = Lane("test", threads=1, queue=1, max_wait=60.0), threading.Event()

    async def scene() -> list[object]:
        first = [asyncio.ensure_future(lane.run(gate.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await asyncio.gather(lane.run(gate.wait), return_exceptions=True)
        gate.set()
        return [*await asyncio.gather(*first), *refused]

    *answered, refused = asyncio.run(scene())
    assert answered == [True, True]
    assert isinstance(refused, HttpError) and refused.status == 503 and int(refused.headers["Retry-After"]) >= 1
    lane.close()


def test_whose_turn_comes_too_late_is_refused_without_the_work() -> None:
    now, done = 0.0, []
    lane, gate = Lane("test", threads=1, queue=9, max_wait=5.0, clock=lambda: now), threading.Event()

    async def scene() -> list[object]:
        nonlocal now
        waiting = [asyncio.ensure_future(lane.run(work)) for work in (gate.wait, lambda: done.append("late"))]
        await asyncio.sleep(0)
        now = 5.1
        gate.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    first, late = asyncio.run(scene())
    assert first is True and isinstance(late, HttpError) and done == []
    lane.close()


def test_a_line_that_is_too_long_for_its_speed_is_refused_at_once() -> None:
    """Each request takes two seconds, so the third in line would wait six. Once the line is gone, it is let in."""
    now = 0.0
    lane = Lane("test", threads=1, queue=99, max_wait=5.0, clock=lambda: now)

    def slow() -> None:
        nonlocal now
        now += 2.0

    async def learn() -> None:
        for _ in range(100):
            await lane.run(slow)

    asyncio.run(learn())
    gate = threading.Event()

    async def scene() -> tuple[list[object], object]:
        waiting = [asyncio.ensure_future(lane.run(gate.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        assert 3.9 < lane.expected_wait() < 4.1
        waiting.append(asyncio.ensure_future(lane.run(gate.wait)))
        await asyncio.sleep(0)
        (refused,) = await asyncio.gather(lane.run(gate.wait), return_exceptions=True)
        gate.set()
        answered = await asyncio.gather(*waiting)
        assert await lane.run(gate.wait) is True, "a free thread is always used"
        return [*answered], refused

    answered, refused = asyncio.run(scene())
    assert answered == [True, True, True]
    assert isinstance(refused, HttpError) and refused.headers["Retry-After"] == "6"
    lane.close()


def test_slow_inspections_leave_the_rest_of_the_site_alone(
    warehouse_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty visits that never end: four run, eight wait, eight get 503; search still answers."""
    gate = threading.Event()

    def endless(*_arguments: object, **_named: object) -> None:
        gate.wait(30)
        raise HttpError(502, "ended by the test")

    monkeypatch.setattr(inspect_page, "inspect", endless)
    site = SiteState(warehouse_path, Settings(web=WebSettings(rate=0)))
    app = create_app(site)

    async def scene() -> tuple[list[int], list[int]]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            slow = [asyncio.ensure_future(client.get("/inspect?url=https://slow.example/")) for _ in range(20)]
            await asyncio.sleep(0.1)
            quick = [await client.get(path) for path in ("/search.json?q=lighthouse", "/sparql?query=ASK{}", "/about")]
            gate.set()
            return [answer.status_code for answer in await asyncio.gather(*slow)], [a.status_code for a in quick]

    slow, quick = asyncio.run(scene())
    site.close()
    assert quick == [200, 200, 200]
    assert sorted(slow) == [502] * 12 + [503] * 8
