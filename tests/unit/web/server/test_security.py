"""Who may ask what: names, origins, tokens, rates, sizes."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from quadloom.errors import SettingsError
from quadloom.settings import Settings, WebSettings
from quadloom.web.app import create_app
from quadloom.web.server.security import BODY_BYTES, RateLimit, is_loopback, known_hosts
from quadloom.web.server.state import SiteState
from quadloom.web.server.tokens import Tokens


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "", "127.0.0.1@evil.example", "[::2]", "[::1", "::1]", "localhost:x",
     "evil.example:80@127.0.0.1", "localhost/", "localhost\\", "localhost?", "local host"],
)  # fmt: skip
def test_other_names_are_not_ours(client: TestClient, host: str) -> None:
    answer = client.get("/health/live", headers={"host": host})
    assert answer.status_code == 421 and answer.json()["hint"]


@pytest.mark.parametrize("host", ["localhost", "localhost:7272", "127.0.0.1:1", "[::1]:7272", "LOCALHOST"])
def test_names_of_loopback_are_ours(client: TestClient, host: str) -> None:
    assert client.get("/health/live", headers={"host": host}).status_code == 200


def test_further_names_by_setting() -> None:
    assert "data.example" in known_hosts(WebSettings(host="0.0.0.0", hosts=["Data.example"]))
    assert "0.0.0.0" not in known_hosts(WebSettings(host="0.0.0.0"))
    assert is_loopback("127.3.2.1") and is_loopback("::1") and not is_loopback("10.0.0.1") and not is_loopback("x")


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"},
     {"origin": "http://127.0.0.1:7272", "sec-fetch-site": "same-site"}, {"origin": "http://[::1"}, {"origin": ""},
     {"origin": "http://evil.example@127.0.0.1:7272"}],
)  # fmt: skip
def test_foreign_pages_change_nothing(client: TestClient, token: str, headers: dict[str, str]) -> None:
    for path in ("/control/pause", "/publish", "/subscriptions", "/sign-in", "/inspect"):
        answer = client.post(path, json={}, headers={"authorization": f"Bearer {token}", **headers})
        assert answer.status_code == 403, path


@pytest.mark.parametrize("path", ["/control/pause", "/publish", "/subscriptions"])
def test_control_needs_a_token(client: TestClient, token: str, path: str) -> None:
    assert client.post(path, json={}).status_code == 401
    wrong = client.post(path, json={}, headers={"authorization": "Bearer wrong"})
    assert wrong.status_code == 401 and "Bearer" in wrong.headers["www-authenticate"]
    assert client.post(path, json={}, headers={"authorization": f"Basic {token}"}).status_code == 401
    right = client.post(path, json={"urls": ["http://a.example/"]}, headers={"authorization": f"Bearer {token}"})
    assert right.status_code == 409, "the token is good, but no crawl is running"


def test_a_reading_server_controls_nothing(warehouse_path: Path, token: str) -> None:
    with TestClient(create_app(SiteState(warehouse_path, Settings())), base_url="http://localhost") as client:
        answer = client.post("/control/pause", headers={"authorization": f"Bearer {token}"})
        assert answer.status_code == 403 and "--control" in answer.json()["hint"]
        assert client.post("/sign-in", data={"token": token}).status_code == 401


def test_sign_in_keeps_the_token_from_scripts_and_other_sites(client: TestClient, token: str) -> None:
    assert client.post("/sign-in", data={"token": "wrong"}).status_code == 401
    answer = client.post("/sign-in", data={"token": token})
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert client.post("/control/pause", json={}).status_code == 409
    assert "Sign out" in client.get("/sign-in", headers={"accept": "text/html"}).text
    assert client.post("/sign-in", data={"out": "1"}).status_code == 303
    assert client.post("/control/pause", json={}).status_code == 401, "signed out"


def test_tokens_are_stored_hashed(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens")
    assert not tokens
    token = tokens.make("first")
    text = tokens.path.read_text()
    assert token not in text and text.startswith("sha256:")
    assert stat.S_IMODE(tokens.path.stat().st_mode) == 0o600
    again = Tokens(tokens.path)
    assert again.accepts(token) and not again.accepts(token[:-1]) and not again.accepts("")


def test_a_plain_token_in_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("hunter2\n")
    with pytest.raises(SettingsError, match="not a hashed token"):
        Tokens(tmp_path / "tokens")


def test_every_answer_carries_the_policy(client: TestClient) -> None:
    for path in ("/", "/nowhere", "/static/quadloom.css", "/sparql?query=ASK{}", "/metrics", "/export.nq"):
        headers = client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "same-origin"


def test_bodies_are_limited_announced_or_not(client: TestClient) -> None:
    large = b"x" * (BODY_BYTES + 1)
    assert client.post("/inspect", content=large, headers={"content-type": "text/html"}).status_code == 413

    def parts() -> Iterator[bytes]:
        for _ in range(BODY_BYTES // 65536 + 1):
            yield b"x" * 65536

    answer = client.post("/inspect", content=parts(), headers={"content-type": "text/html"})
    assert answer.status_code == 413


def test_two_lengths_of_a_body_are_refused(client: TestClient) -> None:
    """Request smuggling: a proxy and this server would disagree where the next request begins."""
    headers = {"content-length": "5", "transfer-encoding": "chunked"}
    answer = client.request("POST", "/sparql", content=b"0\r\n\r\nGET /", headers=headers)
    assert answer.status_code == 400 and answer.headers["connection"] == "close"
    assert "twice" in answer.json()["error"]


def test_rate_limit_by_client() -> None:
    now = 0.0
    limit = RateLimit(2.0, lambda: now)
    assert [limit.wait("a") for _ in range(4)] == [0, 0, 0, 0], "two seconds' worth at once"
    assert limit.wait("a") == pytest.approx(0.5)
    assert limit.wait("b") == 0
    now = 0.5
    assert limit.wait("a") == 0


def test_rate_limit_is_told(warehouse_path: Path) -> None:
    site = SiteState(warehouse_path, Settings(web=WebSettings(rate=1.0)))
    with TestClient(create_app(site), base_url="http://localhost") as client:
        answers = [client.get("/health/live") for _ in range(5)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused and refused[0].json()["status"] == 429 and int(refused[0].headers["retry-after"]) >= 1


def test_static_files_come_from_a_list(client: TestClient) -> None:
    for name in ("../app.py", "..%2fapp.py", "/etc/passwd", "vendor/manifest.json", "nothing.css"):
        assert client.get(f"/static/{name}").status_code == 404
    first = client.get("/static/quadloom.css")
    assert client.get("/static/quadloom.css", headers={"if-none-match": first.headers["etag"]}).status_code == 304


def test_queries_under_way_are_limited_per_client(warehouse_path: Path) -> None:
    site = SiteState(warehouse_path, Settings(web=WebSettings(rate=0, concurrency=1)))
    with TestClient(create_app(site), base_url="http://localhost") as client:
        with site.queries.ask("SELECT * { ?s ?p ?o }", client="testclient"):
            answer = client.get("/sparql", params={"query": "ASK {}"})
            assert answer.status_code == 503 and "retry-after" in answer.headers
        assert client.get("/sparql", params={"query": "ASK {}"}).status_code == 200
