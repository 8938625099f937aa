"""The real-like web of `quadloom bench real`: the same for everybody, reachable by links, and like real pages."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from statistics import mean

import pytest

import quadloom
from quadloom.settings import Settings
from quadloom_lab.realweb.server import ServedWeb, free_port, serving
from quadloom_lab.realweb.steps import step_costs
from quadloom_lab.realweb.web import OPEN_WEB, RealWeb


@pytest.fixture(scope="module")
def web() -> RealWeb:
    return RealWeb(120, hosts=4, seed=3, port=8999)


def test_a_seed_gives_the_same_pages(web: RealWeb) -> None:
    again = RealWeb(120, hosts=4, seed=3, port=8999)
    other = RealWeb(120, hosts=4, seed=4, port=8999)
    assert [web.page(number) for number in (0, 50, 119)] == [again.page(number) for number in (0, 50, 119)]
    assert web.page(50).body != other.page(50).body


def test_every_page_is_reachable_and_pages_have_the_proportions_of_real_ones(web: RealWeb) -> None:
    pages = {page.url: page for page in web.pages()}
    found = {url: quadloom.transform(page.body, url=url, content_type=page.content_type) for url, page in pages.items()}
    reached, pending = set(web.seeds), list(web.seeds)
    while pending:
        for link in found[pending.pop()].links:
            if link.target in pages and link.target not in reached:
                reached.add(link.target)
                pending.append(link.target)
    assert reached == pages.keys()
    documents = [page for page in pages.values() if page.kind == "html"]
    assert 25_000 < mean(len(page.body) for page in documents) < 60_000
    assert 30 < mean(len(found[page.url].links) for page in documents) < 80
    stated = {name for page in documents for name, _ in found[page.url].syntaxes}
    assert {"html", "opengraph", "jsonld", "microdata", "rdfa"} <= stated
    assert not [one for result in found.values() for one in result.findings if one.code.endswith("-failed")]


def test_pages_have_the_proportions_of_the_open_web() -> None:
    open_web = RealWeb(100, hosts=4, seed=3, port=8999, proportions=OPEN_WEB)
    pages = [page for page in open_web.pages() if page.kind == "html"]
    found = [quadloom.transform(page.body, url=page.url, content_type=page.content_type) for page in pages]
    assert 120_000 < mean(len(page.body) for page in pages) < 180_000
    assert 100 < mean(len(one.links) for one in found) < 150
    assert 70 < mean(len(one.triples) for one in found) < 110
    assert mean(page.body.count(b"<script") + page.body.count(b"<style") for page in pages) > 20
    assert any(page.body.count(b'"@context"') > 5 for page in pages)


def test_markup_of_a_folder_becomes_the_bodies(tmp_path: Path) -> None:
    blocks = "<p>Unmistakable words of a <a href='x.html'>document</a>.</p>\n" * 80
    (tmp_path / "one.html").write_text(f"<html><body>{blocks}</body></html>")
    page = RealWeb(9, hosts=1, skeletons=tmp_path).page(0)
    assert page.body.count(b"Unmistakable words") > 5
    assert b"x.html" not in page.body


def test_steps_add_up_and_leave_the_program_as_it_was(web: RealWeb) -> None:
    import quadloom.documents.transform as phase

    before = phase._guarded
    costs = step_costs([web.page(number) for number in range(12)], Settings(), rounds=1)
    assert phase._guarded is before
    assert {"parse", "links", "checks", "syntax text", "canonical quads", "archive record"} <= dict(costs.steps).keys()
    whole = sum(kind.cost * kind.pages for kind in costs.kinds) / 12
    assert abs(whole - costs.total) < 1e-6 * whole


def test_the_server_answers_until_its_block_ends() -> None:
    spec = ServedWeb(30, 2, 1, free_port())
    web = spec.web()
    page = web.page(1)

    async def answer(path: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.1.2", spec.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.1.2:{spec.port}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        body = await reader.readexactly(length)
        writer.close()
        return head.split(b" ", 2)[1] + b" " + body

    with serving(spec):
        assert asyncio.run(answer("/")) == b"200 " + page.body
        assert asyncio.run(answer("/none")) == b"404 "
    with pytest.raises(OSError, match=r"."):
        asyncio.run(answer("/"))
    assert json.dumps(web.seeds) == f'["http://127.0.1.1:{spec.port}/", "http://127.0.1.2:{spec.port}/"]'
