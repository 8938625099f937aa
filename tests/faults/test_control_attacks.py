"""Whatever is sent to a running crawl by its control socket or over HTTP: it is answered or refused, and the crawl goes
on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from quadloom.crawling.run.commands import CrawlCommands
from quadloom.crawling.run.control import ControlRequest
from quadloom.crawling.run.session import CrawlSession
from quadloom.errors import QuadloomError
from quadloom.fetching.in_process import respond
from quadloom.fetching.transport import FetchRequest
from quadloom.fetching.unit import answered_in_process
from quadloom.model.page import Page
from quadloom.settings import CrawlSettings, GuardSettings, PolitenessSettings, Settings
from quadloom.warehouse import Warehouse

SEED = "http://one.example/"
SETTINGS = Settings(
    crawl=CrawlSettings(workers=1, batch_seconds=0.0),
    politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0),
    guard=GuardSettings(hosts={"one.example": "192.0.2.1"}, allow=["192.0.2.0/24"]),
)
GOOD: dict[str, dict[str, object]] = {
    "subscribe": {"id": "s", "created_at": 1.0, "name": "n", "urls": [SEED]},
    "save-query": {"name": "n", "query": "ASK { ?s ?p ?o }"},
    "watch-topic": {"name": "n", "description": "whales"},
    "publish": {"urls": [SEED], "owner": True},
    "websub": {"id": "h", "verifies": True, "query": {}, "body": "", "signature": ""},
    "scope": {"rules": {}, "remove": False},
}
ENDING = {"pause", "stop"}
TEXTS = (
    "", "\x00", "http://", "http://[::1", "http://one.example:99999999/", "http://\x00/", "http://.../",
    "http://" + "a" * 70_000 + "/", "http://one.example/" + "%ff" * 50_000, "file:///etc/passwd", "javascript:alert(1)",
    "http://169.254.169.254/latest", "\u202egro.elpmaxe", "SELECT * { ?s ?p ?o", "ASK { SERVICE <http://x/> {} }",
    "9" * 5000, "1e400 days", "re:(", "re:" + "(" * 5000, "*" * 3000, "../../etc/passwd", "a\r\nX: y", "{" * 5000,
)  # fmt: skip
NUMBERS: tuple[object, ...] = (
    0, -1, 10**19, -(10**300), 1e308, -1e308, float("nan"), float("inf"), True, None, [], {}, [[]], [None], {"": {}},
)  # fmt: skip


class Web:
    def __init__(self) -> None:
        self.requests = 0

    def answer(self, request: FetchRequest) -> Page:
        if request.href.endswith("/robots.txt"):
            return respond(request, b"", status=404)
        self.requests += 1
        return respond(request, b"<title>page</title>", headers=(("content-type", "text/html"),))


def hostile(commands: CrawlCommands) -> Iterator[ControlRequest]:
    """Every argument of every command with every value, alone and beside good ones."""
    rules = [{name: [text]} for name in ("include", "exclude", "host") for text in TEXTS]
    for verb, command in (commands._table | commands._topic_commands()).items():
        if verb in ENDING:
            continue
        yield ControlRequest(verb, {})
        good = GOOD.get(verb, {})
        for field in msgspec.structs.fields(command.arguments):
            for value in [*TEXTS, *([text] for text in TEXTS), *NUMBERS, *(rules if field.name == "rules" else ())]:
                yield ControlRequest(verb, {**good, field.name: value})
    yield from (ControlRequest(text, {}) for text in TEXTS)


def test_no_command_ends_the_crawl(tmp_path: Path) -> None:
    web, errors = Web(), list[BaseException]()
    with Warehouse.open(tmp_path / "w", settings=SETTINGS) as warehouse:
        warehouse.requests.add_seeds([SEED])
        running = CrawlSession(
            warehouse.stores,
            SETTINGS,
            warehouse.scope,
            lambda: warehouse.ask.queries,
            forever=True,
            fetch=answered_in_process(web.answer),
        )

        def crawl() -> None:
            try:
                for _ in running:
                    pass
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=crawl)
        thread.start()
        refused, wrong = 0, []
        try:
            for request in hostile(running._commands):
                if not thread.is_alive():
                    break
                try:
                    running.answer(request)
                except QuadloomError:
                    refused += 1
                except Exception as error:
                    wrong.append((request.verb, request.arguments.keys(), str(request.arguments)[:80], repr(error)))
            assert thread.is_alive(), (request.verb, str(request.arguments)[:200], errors)
        finally:
            running.stop()
            thread.join(60)
    assert not wrong, (len(wrong), wrong[:20])
    assert not errors
    assert refused > 500
