"""An outgoing proxy, by a real one for HTTP and SOCKS5: everything goes through it, and no rule for addresses falls."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from fetch_server import Seen, Server, reply

from quadloom.errors import SettingsError
from quadloom.fetching.http.proxy import proxy_of
from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.transport import FetchRequest, Result
from quadloom.model.page import Failure, Page
from quadloom.settings import FetchSettings, GuardSettings, PolitenessSettings, Settings
from servers import free_port
from waiting import wait_until

pytest.importorskip("pproxy")
SCHEMES = ["http", "socks5"]


@pytest.fixture(scope="module")
def proxies() -> Iterator[dict[str, int]]:
    """Ports of an open proxy and of one that asks for a login; each speaks both protocols."""
    ports = {"open": free_port(), "closed": free_port()}
    with running(ports["open"], ""), running(ports["closed"], "#reader:geheim"):
        yield ports


@contextmanager
def running(port: int, login: str) -> Iterator[None]:
    child = subprocess.Popen(
        [sys.executable, "-m", "pproxy", "-v", "-l", f"http+socks5://127.0.0.1:{port}{login}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(partial(_answers, port))
        yield
    finally:
        child.terminate()
        child.wait(10)


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def settings(proxy: str, *, allow: bool = True, **more: str | bool) -> Settings:
    return Settings(
        fetch=FetchSettings(proxy=proxy, **more),  # type: ignore[arg-type]
        guard=GuardSettings(allow=["127.0.0.0/8"] if allow else [], hosts={"*.test": "127.0.0.1"}),
        politeness=PolitenessSettings(ip_delay=0.0),
    )


def fetch(settings: Settings, *hrefs: str) -> list[Result]:
    results: dict[str, Result] = {}
    with closing(CurlTransport(settings)) as client:
        for href in hrefs:
            client.submit(FetchRequest(href=href, redirects=True), partial(results.__setitem__, href))
        while client.in_flight:
            client.step(1.0)
    return [results[href] for href in hrefs]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_pages_come_through_the_proxy(scheme: str, proxies: dict[str, int]) -> None:
    with Server(lambda seen: reply(seen.path.encode())) as server:
        found = fetch(settings(f"{scheme}://127.0.0.1:{proxies['open']}"), *(server.url(f"/{n}") for n in range(30)))
        assert [isinstance(page, Page) and page.body for page in found] == [f"/{n}".encode() for n in range(30)]
        assert "proxy-authorization" not in server.log[0].headers


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_proxy_that_is_down_is_not_passed_by(scheme: str) -> None:
    with Server(lambda seen: reply(b"x")) as server:
        (failure,) = fetch(settings(f"{scheme}://127.0.0.1:{free_port()}"), server.url())
        assert isinstance(failure, Failure) and failure.kind == "connect"
        assert server.connections == 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_private_addresses_are_refused_behind_a_proxy(scheme: str, proxies: dict[str, int]) -> None:
    with Server(lambda seen: reply(b"secret")) as server:
        (failure,) = fetch(settings(f"{scheme}://127.0.0.1:{proxies['open']}", allow=False), server.url())
        assert isinstance(failure, Failure) and failure.kind == "guard" and "loopback" in failure.message
        assert server.connections == 0


@pytest.mark.parametrize("scheme", [*SCHEMES, "socks5h"])
def test_names_may_be_left_to_the_proxy(scheme: str, proxies: dict[str, int]) -> None:
    """A name that only the proxy can resolve; here it cannot either, and says so. Local names are never asked for."""
    rules = settings(f"{scheme}://127.0.0.1:{proxies['open']}", allow=False, proxy_resolves=True)
    far, local, spelt = fetch(rules, "http://quadloom.invalid/", "http://printer.local/", "http://127.0.0.1/")
    assert isinstance(far, Failure) and far.kind != "dns" and not far.address.startswith("127.")
    assert isinstance(local, Failure) and local.kind == "guard" and "local network" in local.message
    assert isinstance(spelt, Failure) and spelt.kind == "guard"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_missing_login_is_the_fault_of_nobody_else(scheme: str) -> None:
    """A proxy of its own: this one lets an address in for days that has once shown a login."""
    port = free_port()
    with Server(lambda seen: reply(b"x")) as server, running(port, "#reader:geheim"):
        (refused,) = fetch(settings(f"{scheme}://127.0.0.1:{port}"), server.url())
        assert isinstance(refused, Failure) and refused.kind == "connect" and not refused.status
        assert "proxy" in refused.message and server.connections == 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_login_comes_from_a_file_or_the_environment(
    scheme: str, proxies: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "login").write_text("# of the library\nreader:geheim\n", encoding="utf-8")
    monkeypatch.setenv("LIBRARY_PROXY", f"{scheme}://reader:geheim@127.0.0.1:{proxies['closed']}")
    address = f"{scheme}://127.0.0.1:{proxies['closed']}"
    with Server(lambda seen: reply(b"x")) as server:
        for rules in (settings(address, proxy_login=str(tmp_path / "login")), settings("$LIBRARY_PROXY")):
            (page,) = fetch(rules, server.url())
            assert isinstance(page, Page) and page.body == b"x"
            assert "geheim" not in repr(rules)


def test_redirects_are_checked_again(proxies: dict[str, int]) -> None:
    def answer(seen: Seen) -> bytes:
        return b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n"

    with Server(answer) as server:
        (failure,) = fetch(settings(f"http://127.0.0.1:{proxies['open']}"), server.url())
        assert isinstance(failure, Failure) and failure.kind == "guard" and "metadata" in failure.message


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("http://reader:geheim@127.0.0.1:1", "has a login in it"),
        ("ftp://127.0.0.1:1", "not the address of a proxy"),
        ("http://[::1", "not the address of a proxy"),
        ("$QUADLOOM_NO_SUCH_VARIABLE", "is not set"),
    ],
)
def test_mistakes_are_named_without_the_secret(proxy: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words) as raised:
        proxy_of(FetchSettings(proxy=proxy))
    assert "geheim" not in str(raised.value) and raised.value.hint
