"""Where an answer ends: time, rows and bytes of queries, what /inspect may reach, and markup that runs nothing."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from quadloom.settings import LimitSettings, Settings, WebSettings
from quadloom.web.api.control import COOKIE
from quadloom.web.api.events import MOST_LISTENERS
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from unit.web.web_fixture import BOOK, EVIL

ENDLESS = "SELECT (COUNT(*) AS ?n) { " + " ".join(f"?a{n} ?b{n} ?c{n} ." for n in range(12)) + " }"


@pytest.fixture(scope="module")
def narrow(warehouse_path: Path) -> Iterator[TestClient]:
    limits = LimitSettings(query_seconds=2.0, query_rows=5, query_result_bytes=4000)
    site = SiteState(warehouse_path, Settings(web=WebSettings(rate=0, concurrency=0), limits=limits))
    with TestClient(create_app(site), base_url="http://localhost") as client:
        yield client


def test_a_query_without_end_is_ended_and_the_next_one_answers(narrow: TestClient) -> None:
    began = time.monotonic()
    answer = narrow.get("/sparql", params={"query": ENDLESS})
    assert time.monotonic() - began < 60
    assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1
    assert "2 seconds" in answer.json()["error"] and answer.json()["hint"]
    assert narrow.get("/sparql", params={"query": "ASK {}"}).json()["boolean"] is True


def test_a_cut_result_says_so_and_is_whole_json(narrow: TestClient) -> None:
    answer = narrow.get("/sparql", params={"query": "SELECT * { ?s ?p ?o }"})
    assert answer.headers["x-truncated"] == "true" and len(answer.json()["results"]["bindings"]) == 5
    assert "x-truncated" not in narrow.get("/sparql", params={"query": "SELECT * { ?s ?p ?o } LIMIT 2"}).headers


def test_bytes_of_a_result_are_limited(narrow: TestClient) -> None:
    query = 'SELECT ?long { VALUES ?n { 1 2 3 } BIND("' + "x" * 3000 + '" AS ?long) }'
    answer = narrow.get("/sparql", params={"query": query})
    assert answer.headers["x-truncated"] == "true" and len(answer.content) <= 4000
    assert len(answer.json()["results"]["bindings"]) == 1


def test_long_queries_and_deep_ones_are_refused_unread(client: TestClient) -> None:
    long = "SELECT * { ?s ?p ?o } #" + "x" * LimitSettings().query_length
    headers = {"content-type": "application/sparql-query"}
    assert client.post("/sparql", content=long, headers=headers).status_code == 413
    deep = "SELECT * { FILTER(" + "(" * 5000 + "1" + ")" * 5000 + ") }"
    assert client.get("/sparql", params={"query": deep}).status_code == 400
    assert (
        client.get("/sparql", params={"query": "SELECT * { SERVICE <http://127.0.0.1/> { ?s ?p ?o } }"}).status_code
        == 400
    )


@pytest.mark.parametrize("number", ["²", "9" * 6000])
def test_a_strange_number_of_hits_is_the_clients_mistake(client: TestClient, number: str) -> None:
    for query in (f'SELECT ?p {{ ?p ql:matches ("x" {number}) }}', f'SELECT ?p {{ ?p ql:matches "x" }} LIMIT {number}'):
        answer = client.get("/sparql", params={"query": query})
        assert answer.status_code == 400 and answer.json()["hint"], query[:60]


@pytest.mark.parametrize("path", ["/publish", "/control/seeds", "/control/recrawl", "/subscriptions", "/inspect"])
@pytest.mark.parametrize(
    "body", [b"[" * 2_000_000, b'{"urls":' + b"[" * 400 + b"]" * 400 + b"}", b'{"a":' * 100_000, b'{"urls": ["\xff"]}']
)
def test_a_deep_body_is_the_clients_mistake(client: TestClient, token: str, path: str, body: bytes) -> None:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    answer = client.post(path, content=body, headers=headers)
    assert answer.status_code in (400, 409) and answer.json()["hint"]


def test_the_limit_of_listeners_holds_in_a_burst(warehouse_path: Path) -> None:
    """Forty ask at the same moment; sixteen are accepted, and leaving makes room again."""

    async def burst() -> None:
        site = SiteState(warehouse_path, Settings(web=WebSettings(rate=0)))
        app = create_app(site)
        statuses: Counter[int] = Counter()
        answered = asyncio.Event()

        async def listen() -> None:
            left = asyncio.Event()

            async def receive() -> Message:
                await left.wait()
                return {"type": "http.disconnect"}

            async def send(message: Message) -> None:
                if message["type"] == "http.response.start":
                    statuses[message["status"]] += 1
                    if statuses.total() == 40:
                        answered.set()
                    await answered.wait()
                    left.set()

            scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
                     "path": "/changes/events", "raw_path": b"/changes/events", "query_string": b"", "root_path": "",
                     "scheme": "http", "headers": [(b"host", b"localhost")], "client": ("192.0.2.1", 1),
                     "server": ("127.0.0.1", 80)}  # fmt: skip
            await app(scope, receive, send)

        await asyncio.wait_for(asyncio.gather(*(listen() for _ in range(40))), 60)
        assert statuses == {200: MOST_LISTENERS, 429: 40 - MOST_LISTENERS}
        assert not site.listeners, "all have left"
        await asyncio.get_running_loop().run_in_executor(None, site.close)

    asyncio.run(burst())


def test_many_text_patterns_are_refused(client: TestClient) -> None:
    query = "SELECT (COUNT(*) AS ?n) { " + '?a ql:matches("lighthouse" 10000). ' * 1800 + "}"
    answer = client.post("/sparql", content=query, headers={"content-type": "application/sparql-query"})
    assert answer.status_code == 400 and "1800 text patterns" in answer.json()["error"] and answer.json()["hint"]


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "0.0.0.0", "169.254.169.254", "10.0.0.1",
     "[::ffff:127.0.0.1]"],
)  # fmt: skip
def test_inspect_reaches_nothing_private(client: TestClient, host: str) -> None:
    """A listener is bound to the port on every loopback name and counts connections."""
    with socket.socket() as canary:
        canary.bind(("127.0.0.1", 0))
        canary.listen()
        canary.settimeout(0.2)
        hits: list[object] = []
        stop = threading.Event()

        def listen() -> None:
            while not stop.is_set():
                try:
                    hits.append(canary.accept())
                except TimeoutError:
                    continue

        thread = threading.Thread(target=listen)
        thread.start()
        answer = client.get("/inspect.json", params={"url": f"http://{host}:{canary.getsockname()[1]}/"})
        stop.set()
        thread.join()
    assert hits == []
    refused = answer.status_code == 400 or "guard" in answer.json()["inspection"]["failure"]
    assert refused, answer.text


def test_inspect_of_an_open_server_needs_the_token(warehouse_path: Path, token: str) -> None:
    site = SiteState(warehouse_path, Settings(web=WebSettings(rate=0, host="192.0.2.1")), may_control=True)
    with TestClient(create_app(site), base_url="http://localhost") as client:
        url = {"url": "http://10.0.0.1/"}
        assert client.get("/inspect.json", params=url).status_code == 401
        answer = client.get("/inspect.json", params=url, headers={"authorization": f"Bearer {token}"})
        assert answer.status_code == 200 and "guard" in answer.json()["inspection"]["failure"]
        assert client.post("/inspect", json={"markup": "<title>x</title>"}).status_code == 200, "pasting visits nobody"


def test_a_cookie_alone_lets_no_other_site_act(client: TestClient, token: str) -> None:
    client.cookies.set(COOKIE, token)
    form = {"content-type": "application/x-www-form-urlencoded"}
    for foreign in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        answer = client.post("/control/seeds", content="urls=http://a.example/", headers={**form, **foreign})
        assert answer.status_code == 403
    own = client.post(
        "/control/seeds", content="urls=http://a.example/", headers={**form, "origin": "http://127.0.0.1:7272"}
    )
    assert own.status_code == 409, "our own page may; there is no crawl to hear it"
    client.cookies.clear()


def test_no_page_has_markup_that_the_policy_would_forbid(client: TestClient) -> None:
    """Scripts and styles only by address: with them inline, either the page or the policy would be broken."""
    paths = [
        "/",
        "/search?q=lighthouse",
        "/sparql",
        "/monitor",
        "/inspect",
        "/sites",
        "/site/evil.example",
        "/vocabularies",
        "/topics",
        "/subscriptions",
        "/about",
        "/sign-in",
        "/nowhere",
        f"/page?url={quote(BOOK)}",
        f"/page?url={quote(EVIL)}",
        f"/entity?iri={quote(BOOK)}%23it",
    ]
    for path in paths:
        markup = client.get(path, headers={"accept": "text/html"}).text
        tags = re.findall(r"<[a-z][^>]*>", markup)
        assert tags, path
        assert [tag for tag in tags if re.search(r"\s(on\w+|style)\s*=", re.sub(r'"[^"]*"', '""', tag))] == [], path
        assert [tag for tag in tags if tag.startswith("<script") and "src=" not in tag] == [], path
        assert not re.search(r'(?:href|src|action)="(?!/|#|https?://)', markup), path
