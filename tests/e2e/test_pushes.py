"""WebSub whole: a feed names a hub on loopback, `quadloom serve --crawl` subscribes, is pushed, renews and leaves."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from command_line import quadloom
from fakeweb.hub import Hub, hub_on_loopback
from fakeweb.scripted import Answer, ScriptedSite
from quadloom.crawling.run.control import ask
from quadloom.crawling.subscriptions.websub import HubSubscription, read_topics
from quadloom.errors import QuadloomError, StoreError
from quadloom.model.url import fingerprint
from quadloom.stores.backends import DATABASE
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase
from waiting import wait_until


def feed(hub: str, title: str) -> Answer:
    link = f'<link rel="hub" href="{hub}"/><link rel="self" href="/feed?self"/>' if hub else ""
    body = f'<feed xmlns="http://www.w3.org/2005/Atom"><title>{title}</title>{link}</feed>'
    return Answer(body.encode(), "application/atom+xml")


class Serving:
    def __init__(self, folder: Path, site: ScriptedSite) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.warehouse, self.base = folder / "data", f"http://127.0.0.1:{port}"
        self.config, self.log = folder / "quadloom.toml", folder / "log"
        web = {"port": port, "public_url": f"{self.base}/", "rate": 0.0}
        freshness = {"min_interval": "30d", "max_interval": "60d", "prior_interval": "30d"}
        sections: dict[str, dict[str, object]] = {}
        given = site.settings(web={**web}, subscriptions={"websub": True}, freshness={**freshness})
        for name, value in given.items():
            section, _, key = name.partition(".")
            sections.setdefault(section, {})[key] = value
        self.config.write_text(
            "".join(
                f"[{section}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
                for section, values in sections.items()
            )
        )

    @contextmanager
    def running(self, *urls: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "quadloom", "-w", str(self.warehouse), "--config", str(self.config)]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*command, "serve", "--crawl", *urls], stdout=log, stderr=log, start_new_session=True
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(60)

    def topics(self) -> list[HubSubscription]:
        """None before the crawl has made its database."""
        with suppress(StoreError), closing(SqliteDatabase.read_only(self.warehouse / DATABASE)) as database:
            return read_topics(SqliteCatalog(database))
        return []

    def is_up(self) -> bool:
        with suppress(OSError, QuadloomError), urllib.request.urlopen(f"{self.base}/health/live", timeout=5):
            return ask(self.warehouse, "status") is not None
        return False

    def title(self, url: str) -> str:
        with closing(SqliteDatabase.read_only(self.warehouse / DATABASE)) as database:
            row = SqliteCatalog(database).page(fingerprint(url))
            return row.title if row is not None else ""

    def wait(self, condition: Callable[[], bool], what: str, seconds: float = 40.0) -> None:
        wait_until(
            condition, lambda: f"{what}: not within {seconds} s\n{self.log.read_text()[-3000:]}", seconds=seconds
        )


def test_a_push_is_read_at_once_and_all_survives_a_kill(tmp_path: Path) -> None:
    with hub_on_loopback() as hub, ScriptedSite({}) as site:
        site.pages["/feed"] = feed(hub.url, "first")
        serving = Serving(tmp_path, site)
        topic = site.url("/feed?self")
        with serving.running(site.url("/feed")) as process:
            _subscribed(serving, hub, site, topic)
            _pushed(serving, hub, site, topic)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        hub.is_eager = True
        with serving.running():
            serving.wait(serving.is_up, "the crawl and its site run again")
            site.pages["/feed"] = feed(hub.url, "third")
            time.sleep(1.0)
            before = site.paths().count("/feed")
            assert hub.distribute(topic, b"<feed>third</feed>") == [202], "the callback is known after a kill"
            serving.wait(lambda: site.paths().count("/feed") > before, "the third version is read", 60.0)
            serving.wait(lambda: serving.title(site.url("/feed")) == "third", "and settled")
            _left(serving, hub, site)


def _subscribed(serving: Serving, hub: Hub, site: ScriptedSite, topic: str) -> None:
    serving.wait(lambda: bool(hub.subscribers), "the hub has verified us")
    (asked,) = hub.asked
    assert (asked.mode, asked.topic, asked.lease) == ("subscribe", topic, 864000)
    assert asked.callback.startswith(f"{serving.base}/websub/") and len(asked.callback.rpartition("/")[2]) >= 32
    (kept,) = serving.topics()
    assert kept.active_until > time.time() + 863_000
    forged = asked._replace(topic=site.url("/another"))
    assert hub.verify(forged) == 404, "only what we asked for"
    assert hub.verify(asked._replace(callback=f"{serving.base}/websub/guessed")) == 404
    assert hub.verify(asked._replace(mode="unsubscribe")) == 404
    listed = quadloom("-w", str(serving.warehouse), "subscribe", "hubs", "--json", cwd=serving.warehouse.parent)
    shown = json.loads(listed.stdout)
    assert (shown["page"], shown["hub"], shown["state"]) == (site.url("/feed"), hub.url, "active")
    assert asked.secret not in listed.stdout and kept.id not in listed.stdout


def _pushed(serving: Serving, hub: Hub, site: ScriptedSite, topic: str) -> None:
    assert site.paths().count("/feed") == 1, "without a push it would be read again in a month"
    site.pages["/feed"] = feed(hub.url, "second")
    assert hub.distribute(topic, b"<feed>forged</feed>", secret="guessed") == [202], "a forger learns nothing"
    time.sleep(1.0)
    assert site.paths().count("/feed") == 1
    assert hub.distribute(topic, b"<feed>second</feed>") == [202]
    serving.wait(lambda: site.paths().count("/feed") == 2, "the pushed page is read")
    serving.wait(lambda: serving.topics()[0].pushes == 1, "the push is counted")


def _left(serving: Serving, hub: Hub, site: ScriptedSite) -> None:
    site.pages["/feed"] = feed("", "last, without a hub")
    assert ask(serving.warehouse, "refresh", urls=[site.url("/feed")]) == 1
    serving.wait(lambda: not hub.subscribers, "the hub has been told goodbye")
    assert hub.asked[-1].mode == "unsubscribe"
    serving.wait(lambda: serving.topics() == [], "and nothing is kept")


def test_a_hub_in_a_private_network_is_not_asked(tmp_path: Path) -> None:
    """The feed may be read, as its port is open to us; its hub's is not."""
    with hub_on_loopback() as hub, ScriptedSite({}) as site:
        site.pages["/feed"] = feed(hub.url, "first")
        serving = Serving(tmp_path, site)
        serving.config.write_text(serving.config.read_text().replace("[guard]\n", f"[guard]\nports = [{site.port}]\n"))
        with serving.running(site.url("/feed")):
            serving.wait(lambda: any(topic.error for topic in serving.topics()), "the refusal is noted")
            (topic,) = serving.topics()
        assert hub.asked == [] and topic.state(time.time()) == "failing"
        assert topic.next_at > time.time() + 80_000, "and not tried again soon"


class HostileHub(BaseHTTPRequestHandler):
    """Answers by its path: slowly, without end, or with a redirect to an address inside."""

    protocol_version = "HTTP/1.1"
    inside = ""
    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.asked.append(self.path)
        self.close_connection = True
        if self.path == "/inside":
            self.send_response(307)
            self.send_header("location", self.inside)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        self.send_response(202)
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b"x" * (1 if self.path == "/slow" else 1 << 16))
                self.wfile.flush()
                time.sleep(0.2 if self.path == "/slow" else 0.0)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_hostile_hubs_delay_no_other_hub_and_reach_nothing_inside(tmp_path: Path) -> None:
    """One answers a byte at a time, one without end, one redirects to an address that the guard refuses."""
    addresses = {"slow": "127.0.0.3", "endless": "127.0.0.4", "inside": "127.0.0.5"}
    HostileHub.asked.clear()
    with ExitStack() as opened:
        hub, site = opened.enter_context(hub_on_loopback()), opened.enter_context(ScriptedSite({}))
        inside = opened.enter_context(socket.create_server(("127.0.0.2", 0)))
        inside.setblocking(False)
        HostileHub.inside = f"http://127.0.0.2:{inside.getsockname()[1]}/"
        for kind, address in addresses.items():
            server = opened.enter_context(ThreadingHTTPServer((address, 0), HostileHub))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            opened.callback(server.shutdown)
            site.pages[f"/{kind}"] = feed(f"http://{address}:{server.server_address[1]}/{kind}", kind)
        site.pages["/feed"] = feed(hub.url, "good")
        serving = Serving(tmp_path, site)
        allowed = json.dumps([f"{address}/32" for address in ("127.0.0.1", *addresses.values())])
        text = serving.config.read_text().replace('["127.0.0.0/8"]', allowed)
        serving.config.write_text(text.replace("[subscriptions]\n", "[subscriptions]\nwebhook_seconds = 3.0\n"))
        with serving.running(*(site.url(path) for path in site.pages)):
            serving.wait(lambda: bool(hub.subscribers), "the honest hub has verified us", 120.0)
            serving.wait(lambda: set(HostileHub.asked) == {f"/{kind}" for kind in addresses}, "all were asked", 120.0)
            serving.wait(lambda: any(topic.error for topic in serving.topics()), "the redirect is refused", 120.0)
            (refused,) = [topic for topic in serving.topics() if topic.error]
            assert refused.hub.endswith("/inside") and refused.next_at > time.time() + 80_000
            with pytest.raises(BlockingIOError):
                inside.accept()
            asked = list(HostileHub.asked)
            time.sleep(5.0)
            assert asked == HostileHub.asked, "none of them is asked again at once"
