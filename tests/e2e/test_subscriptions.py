"""Subscriptions while a crawl runs: refused, shown, steering the plan, and told over every way there is."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from pathlib import Path

import pytest

from command_line import quadloom
from fakeweb.receiver import receiving
from fakeweb.scripted import Answer, ScriptedSite, html
from quadloom.crawling.run.control import ask
from quadloom.errors import QuadloomError
from quadloom.model.event import Notice
from quadloom.model.url import canonical, fingerprint
from quadloom.model.wire import decode
from quadloom.planning.policy.page_row import PageScheduleRow
from quadloom.settings import Settings
from quadloom.settings.loading import load
from quadloom.stores.backends import DATABASE
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.warehouse import Warehouse
from waiting import wait_until

PAGES = 60
STEPS = (1, 7, 20)
FRESHNESS = {
    "bandwidth": 40.0, "min_interval": "1s", "max_interval": "120s", "prior_interval": "10s", "importance_every": "1s",
}  # fmt: skip


def alike() -> dict[str, Answer]:
    """Every page links to three others and is linked from three, so none is better than another."""
    links = {n: "".join(f"<a href='/{(n + step) % PAGES}'>on</a>" for step in STEPS) for n in range(PAGES)}
    return {f"/{n}": html(f"<h1>Page {n}</h1>{links[n]}") for n in range(PAGES)}


def settings_of(site: ScriptedSite, **sections: dict[str, object]) -> Settings:
    return load(overrides=site.settings(crawl={"scope": "any", "max_seconds": 60.0}, **sections)).settings  # type: ignore[arg-type]


class Crawling:
    """A continuous crawl in a thread of its own."""

    def __init__(self, path: Path, settings: Settings, *seeds: str) -> None:
        self.path = path
        self._thread = threading.Thread(target=self._run, args=(settings, seeds), daemon=True)

    def _run(self, settings: Settings, seeds: tuple[str, ...]) -> None:
        with Warehouse.open(self.path, settings=settings) as warehouse:
            for _ in warehouse.crawl(seeds, forever=True):
                pass

    def __enter__(self) -> Crawling:
        self._thread.start()
        wait_until(lambda: ask(self.path, "status") is not None, "the crawl runs")
        return self

    def __exit__(self, *_: object) -> None:
        ask(self.path, "stop")
        self._thread.join(60)
        assert not self._thread.is_alive()


def test_a_subscribed_page_is_read_more_often_from_then_on(tmp_path: Path) -> None:
    with ScriptedSite(alike()) as site:
        settings = settings_of(site, freshness={**FRESHNESS})
        with Crawling(tmp_path / "data", settings, site.url("/0")) as crawl:
            wait_until(lambda: len(set(site.paths())) > PAGES, "all pages were read once")
            assert ask(crawl.path, "subscribe", id="s", urls=[site.url("/17")]) == "s"
            wait_until(lambda: _pause(crawl.path, site, 17) < 0.8 * _pause(crawl.path, site, 40), "planned more often")


def _pause(warehouse: Path, site: ScriptedSite, page: int) -> float:
    """Seconds between two visits, as the running crawl plans them: what it can then keep depends on this machine."""
    key = fingerprint(canonical(site.url(f"/{page}")))
    with closing(SqliteDatabase.read_only(warehouse / DATABASE)) as database:
        return decode(SqliteCatalog(database).pages([key])[key].schedule, PageScheduleRow).plan.period


def test_one_change_is_told_by_webhook_command_and_query(tmp_path: Path) -> None:
    with ScriptedSite({"/": html("<p vocab='http://schema.org/' typeof=Event><b property=name>first</b>")}) as site:
        settings = settings_of(site)
        with Warehouse.open(tmp_path / "data", settings=settings) as warehouse:
            warehouse.stores.outbox.append([Notice(at=1.0, subscription="long ago", kind="new")])
        with receiving("secret") as received, Crawling(tmp_path / "data", settings, site.url("/")) as crawl:
            with pytest.raises(QuadloomError, match="does not parse at line 1"):
                ask(crawl.path, "subscribe", id="wrong", query="SELECT ?s { ?s a }")
            ask(
                crawl.path,
                "subscribe",
                id="hook",
                sites=[f"127.0.0.1:{site.port}"],
                webhook=received.url,
                secret="secret",
            )
            ask(crawl.path, "subscribe", id="names", query="SELECT ?n { ?e a schema:Event ; schema:name ?n }")
            wait_until(lambda: "first" in _changes(crawl.path, "names"), "the query's first answer")
            site.pages["/"] = html("<p vocab='http://schema.org/' typeof=Event><b property=name>second</b>")
            ask(crawl.path, "refresh", urls=[site.url("/")])
            wait_until(lambda: "second" in _changes(crawl.path, "names"), "the query's new answer")
            wait_until(lambda: "second" in str(received.bodies), "the webhook")
            assert ask(crawl.path, "unsubscribe", id="names") == "names"
        assert received.badly_signed == 0
    told = [json.loads(line) for line in _changes(tmp_path / "data", "hook").splitlines()]
    changed = [notice for notice in told if notice["kind"] == "changed"]
    everything = quadloom("-w", str(tmp_path / "data"), "--json", "changes", cwd=tmp_path).stdout
    assert "second" in everything and "long ago" not in everything, "trimmed by the crawl's upkeep"
    assert min(notice["id"] for notice in told) > 1, "but its id is not used again"
    assert len(changed) == 1 and "second" in str(changed[0]["added"]) and "first" in str(changed[0]["removed"])


def _changes(warehouse: Path, subscription: str) -> str:
    done = quadloom("-w", str(warehouse), "--json", "changes", "--subscription", subscription, cwd=warehouse.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout
