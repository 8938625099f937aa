"""Services behind the pool of workers, over real HTTP: one worker is enough for all instances."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from quadloom.crawling.workers.batch import TransformPool
from quadloom.crawling.workers.pool import TransformResult
from quadloom.model.page import Page
from quadloom.model.service import InstanceLoad
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings, ServiceSettings, Settings, TransformSettings
from service_server import Answer, Instance, running
from waiting import wait_until

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
TURTLE = b"<> <http://vocab.example/width> 20 ."
WIDTH = b"<http://vocab.example/width>"


def answer(_headers: dict[str, str], _body: bytes) -> tuple[int, str, bytes]:
    return 200, "text/turtle", TURTLE


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], Instance]]:
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(running(answer))


def settings_for(*instances: Instance, **service: float | int | list[str]) -> Settings:
    url = " ".join(instance.url for instance in instances)
    return Settings(
        crawl=CrawlSettings(workers=1),
        service=[ServiceSettings(url=url, kinds=["image"], **service)],  # type: ignore[arg-type]
    )


def pages(count: int, body: bytes = PNG) -> Iterator[tuple[Visit, Page]]:
    for number in range(count):
        url = f"http://site.example/{number}"
        page = Page(url, url, 200, (("content-type", "image/png"),), body, 0.0, 0.1)
        yield Visit(url, url, "site.example", number), page


def transformed(settings: Settings, count: int, on_loads: Callable[[TransformPool], None] | None = None) -> list[bytes]:
    with TransformPool(settings) as pool:
        results = [_quads(result) for _, result in pool.each(pages(count), lambda pair: pair)]
        if on_loads is not None:
            on_loads(pool)
        return results


def _quads(result: TransformResult | None) -> bytes:
    assert result is not None
    assert result.answer is not None, result.reason
    return result.answer.result.quads.nquads


def test_four_instances_are_all_busy_for_one_worker(serve: Callable[[Answer], Instance]) -> None:
    """Requests wait until as many are in progress as four instances may have. A worker that asked by itself would wait
    for ever."""
    lock, all_busy = threading.Lock(), threading.Event()
    proven: set[str] = set()
    in_progress: list[str] = []

    def together(headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        with lock:
            if headers["host"] not in proven:  # an instance gets one request alone before it gets four
                proven.add(headers["host"])
                return answer(headers, body)
            in_progress.append(headers["host"])
            if len(in_progress) == 16:
                all_busy.set()
        all_busy.wait(60)
        return answer(headers, body)

    instances = [serve(together) for _ in range(4)]
    found = transformed(settings_for(*instances, timeout=60.0), 40)
    assert all(WIDTH in quads for quads in found)
    assert sum(len(instance.requests) for instance in instances) == 40


def test_pages_without_a_service_do_not_wait_for_one(serve: Callable[[Answer], Instance]) -> None:
    """The service answers when all other pages are done."""
    others = threading.Event()

    def late(headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        others.wait(60)
        return answer(headers, body)

    settings = settings_for(serve(late), timeout=60.0)
    url = "http://site.example/page"
    html = Page(url, url, 200, (("content-type", "text/html"),), b"<title>here</title>", 0.0, 0.1)
    done: list[TransformResult] = []
    finished = threading.Event()

    from quadloom.crawling.workers.pool import WorkerPool

    def take(message: object) -> None:
        if isinstance(message, TransformResult):
            done.append(message)
            if len(done) == 10:
                others.set()
        if len(done) == 12:
            finished.set()
        wake.set()

    wake = threading.Event()
    pool = WorkerPool(1, settings, take, lambda _kind, _text: None, lambda _error: None)
    try:
        for visit, page in pages(2):
            pool.submit(visit, page)
        for number in range(10):
            while not pool.room():
                wake.wait(1)
            pool.submit(Visit(url, url, "site.example", 100 + number), html)
        while not finished.is_set():
            wake.wait(1)
            wake.clear()
            pool.redistribute()
    finally:
        pool.close()
    assert [item.page.url for item in done[:10]] == [url] * 10
    assert all(WIDTH in _quads(item) for item in done[10:])


def test_a_slow_instance_gets_under_a_tenth(serve: Callable[[Answer], Instance]) -> None:
    """It holds its request until the quick one has done nearly all of the work."""
    enough = threading.Event()

    def quick(headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        if len(one.requests) >= 50:
            enough.set()
        return answer(headers, body)

    def slow(headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        enough.wait(60)
        return answer(headers, body)

    one, other = serve(quick), serve(slow)
    found = transformed(settings_for(one, other, timeout=60.0), 60)
    assert all(WIDTH in quads for quads in found)
    assert 1 <= len(other.requests) < 6
    assert len(one.requests) + len(other.requests) == 60


def test_a_failed_request_goes_to_another_instance_and_the_crawl_is_told(
    serve: Callable[[Answer], Instance],
) -> None:
    ill = serve(lambda _headers, _body: (503, "text/plain", b""))
    well = serve(answer)
    notices: list[str] = []
    with TransformPool(settings_for(ill, well), notice=lambda _kind, text: notices.append(text)) as pool:
        found = [_quads(result) for _, result in pool.each(pages(60), lambda pair: pair)]
    assert all(WIDTH in quads for quads in found)
    assert len(ill.requests) == 3, "three failures in a row, then it rests"
    assert [text for text in notices if ill.url in text] == [
        f"service {ill.url} failed 3 times in a row: {ill.url} answered 503"
    ]


def test_the_death_of_the_services_process_costs_nothing(serve: Callable[[Answer], Instance]) -> None:
    first = threading.Event()

    def once(headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        if not first.is_set():
            first.set()
            killed.wait(60)
        return answer(headers, body)

    killed = threading.Event()
    settings = settings_for(serve(once), timeout=60.0)
    with TransformPool(settings) as pool:

        def kill() -> None:
            first.wait(60)
            beat = next(beat for beat in pool._pool.heartbeats() if beat.name == "services")
            os.kill(beat.pid, signal.SIGKILL)
            killed.set()

        thread = threading.Thread(target=kill)
        thread.start()
        found = [_quads(result) for _, result in pool.each(pages(5), lambda pair: pair)]
        thread.join()
    assert all(WIDTH in quads for quads in found)


def test_the_load_of_each_instance_is_known(serve: Callable[[Answer], Instance]) -> None:
    instance = serve(answer)

    def look(pool: TransformPool) -> None:
        def reported() -> bool:  # twice a second
            loads.extend(pool._pool.service_loads())
            return bool(loads) and loads[-1].requests == 30 and not loads[-1].in_progress

        wait_until(reported)

    loads: list[InstanceLoad] = []
    transformed(settings_for(instance), 30, look)
    last = loads[-1]
    assert (last.url, last.requests, last.failures, last.in_progress) == (instance.url, 30, 0, 0)
    assert last.mean_seconds > 0
    assert last.parallel == 4


def test_no_process_is_started_for_services_that_take_no_page(serve: Callable[[Answer], Instance]) -> None:
    instance = serve(answer)
    settings = Settings(crawl=CrawlSettings(workers=1), service=[ServiceSettings(url=instance.url, kinds=["pdf"])])

    def look(pool: TransformPool) -> None:
        assert [beat.name for beat in pool._pool.heartbeats()] == ["transform-0"]

    transformed(settings, 3, look)
    assert instance.requests == []


def test_a_command_and_then_a_stylesheet(tmp_path: Path) -> None:
    """Two steps: a program makes XML of a picture, a stylesheet of the user makes RDF of the XML."""
    (tmp_path / "picture.xsl").write_text(
        '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"'
        ' xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:v="http://vocab.example/">'
        '<!-- quadloom: root="picture" --><xsl:param name="url"/><xsl:template match="/picture"><rdf:RDF>'
        '<rdf:Description rdf:about="{$url}"><v:bytes><xsl:value-of select="@bytes"/></v:bytes></rdf:Description>'
        "</rdf:RDF></xsl:template></xsl:stylesheet>"
    )
    program = "import sys; print(f'<picture bytes=\"{len(sys.stdin.buffer.read())}\"/>')"
    settings = Settings(
        crawl=CrawlSettings(workers=1),
        transform=TransformSettings(stylesheets=str(tmp_path)),
        service=[ServiceSettings(command=[sys.executable, "-S", "-c", program], kinds=["image"], timeout=60.0)],
    )
    found = transformed(settings, 6)
    assert found[3] == b'<http://site.example/3> <http://vocab.example/bytes> "28" <http://site.example/3> .\n'
    assert len(set(found)) == 6


@pytest.mark.slow
@pytest.mark.timing
def test_four_instances_of_half_a_second_are_three_and_a_half_times_as_fast(
    serve: Callable[[Answer], Instance],
) -> None:
    def half_a_second(headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        time.sleep(0.5)
        return answer(headers, body)

    def seconds(*instances: Instance) -> float:
        """From the first page to the last: the start of the processes is the same for both."""
        with TransformPool(settings_for(*instances, timeout=60.0)) as pool:
            results = pool.each(pages(160), lambda pair: pair)
            next(results)
            began = time.monotonic()
            assert all(WIDTH in _quads(result) for _, result in results)
            return time.monotonic() - began

    one = seconds(serve(half_a_second))
    four = seconds(*(serve(half_a_second) for _ in range(4)))
    assert one / four >= 3.5


@pytest.mark.slow
@pytest.mark.timing
def test_an_instance_of_a_second_and_a_half_gets_under_a_tenth(serve: Callable[[Answer], Instance]) -> None:
    def slow(headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        time.sleep(1.5)
        return answer(headers, body)

    quick, late = serve(answer), serve(slow)
    assert all(WIDTH in quads for quads in transformed(settings_for(quick, late), 300))
    assert len(late.requests) < 30
