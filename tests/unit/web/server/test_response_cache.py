"""Cached responses: computed once for equal requests until a commit, and never another client's response."""

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
from quadloom.web.server.response_cache import DatedResponse, ResponseCache
from quadloom.web.server.state import SiteState
from quadloom.web.server.warehouse_reader import ViewDate


class Counted:
    def __init__(self, *statuses: int) -> None:
        self.made = 0
        self._statuses = statuses

    async def make(self, _known: DatedResponse | None) -> DatedResponse:
        self.made += 1
        number = self.made
        await asyncio.sleep(0)
        return DatedResponse(Response(f"answer {number}", self._statuses[min(number, len(self._statuses)) - 1]), 0.0)


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


def test_what_a_view_shows_lasts_until_a_commit() -> None:
    now, mark, made = 100.0, b"1", 0

    async def make(known: DatedResponse | None) -> DatedResponse:
        nonlocal made
        date = ViewDate(mark, now)
        if known is not None and known.view is not None and known.view.mark == mark:
            return known._replace(view=date)
        made += 1
        return DatedResponse(Response(f"answer {made}"), now, date)

    async def scene() -> list[bytes]:
        nonlocal now, mark
        cache, answers = ResponseCache(clock=lambda: now), list[bytes]()
        for seconds, commit in ((0.0, b"1"), (4.9, b"2"), (5.1, b"1"), (9.9, b"1"), (10.3, b"2"), (71.0, b"2")):
            now, mark = 100.0 + seconds, commit
            answers.append(bytes((await cache.get(("/",), make)).body))
        return answers

    # A commit shows after five seconds; without one the bytes stay, for a minute.
    answers = asyncio.run(scene())
    assert answers == [b"answer 1", b"answer 1", b"answer 1", b"answer 1", b"answer 2", b"answer 3"]


def test_all_entries_together_have_a_limit_and_the_least_used_go_first() -> None:
    async def make(_known: DatedResponse | None) -> DatedResponse:
        return DatedResponse(Response(b"x" * 10_000), 0.0)

    async def scene() -> None:
        cache = ResponseCache(clock=lambda: 0.0, most_bytes=100_000)
        for number in range(50):
            await cache.get(("/", str(number)), make)
            await cache.get(("/", "0"), make)
            await asyncio.sleep(0)
            assert cache.bytes <= 100_000
        assert ("/", "0") in cache._entries and ("/", "1") not in cache._entries
        await cache.get(("/", "q" * 100_000), make)
        await asyncio.sleep(0)
        assert cache.bytes <= 100_000, "a long question counts, too"

    asyncio.run(scene())


def test_the_same_question_has_the_same_bytes_until_a_commit(warehouse_path: Path) -> None:
    site = SiteState(warehouse_path, Settings(web=WebSettings(rate=0)))
    with TestClient(create_app(site), base_url="http://localhost") as client:
        first = client.get("/search?q=opera", headers={"accept": "text/html"})
        tag = first.headers["etag"]
        assert first.headers["cache-control"] == "no-cache"
        known = client.get("/search?q=opera", headers={"accept": "text/html", "if-none-match": f'"x", {tag}'})
        assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", tag)
        other = client.get("/search?q=opera", headers={"accept": "text/html", "if-none-match": '"x"'})
        assert (other.status_code, other.content) == (200, first.content)
        assert client.get("/search.json?q=opera").headers["etag"] != tag


def test_errors_are_not_cached() -> None:
    async def scene() -> None:
        cache, work = ResponseCache(1.0, clock=lambda: 0.0), Counted(503, 200)
        assert (await cache.get(("/",), work.make)).status_code == 503
        assert (await cache.get(("/",), work.make)).status_code == 200

    asyncio.run(scene())


def test_errors_reach_everybody_and_are_forgotten() -> None:
    async def fail(_known: DatedResponse | None) -> DatedResponse:
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
        if endpoint.committed:
            assert endpoint.cached and endpoint.runs == "reading", endpoint.path


def test_twin_page_and_signed_in_reader_do_not_share(warehouse_path: Path, token: str) -> None:
    site = SiteState(warehouse_path, Settings(web=WebSettings(rate=0)), may_control=True)
    with TestClient(create_app(site), base_url="http://localhost") as client:
        html = {"accept": "text/html"}
        assert client.get("/monitor", headers=html).headers["content-type"].startswith("text/html")
        assert client.get("/monitor", headers={"accept": "application/json"}).json()["ok"] is True
        assert "Sign in to pause" in client.get("/monitor", headers=html).text
        client.cookies.set(COOKIE, token)
        assert "Sign in to pause" not in client.get("/monitor", headers=html).text
