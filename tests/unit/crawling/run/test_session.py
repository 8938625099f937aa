"""A whole crawl in this process: no server, no socket, and a clock that runs a hundred times as fast."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from quadloom.crawling.run.balance import CrawlState, balance
from quadloom.crawling.run.commands import CrawlCommands
from quadloom.crawling.run.control import ControlRequest
from quadloom.crawling.run.session import CrawlSession
from quadloom.errors import SettingsError, StoreError, UsageError
from quadloom.fetching.in_process import respond
from quadloom.fetching.transport import FetchRequest, make_failure
from quadloom.fetching.unit import FetchUnit, FetchUnitFactory, HostAddress, answered_in_process
from quadloom.model.page import Failure, Page
from quadloom.settings import (
    CrawlSettings,
    FreshnessSettings,
    GuardSettings,
    IndexSettings,
    PolitenessSettings,
    Settings,
    TopicSettings,
)
from quadloom.warehouse import Warehouse

SEED = "http://one.example/"
DELAY = 30.0
_SPEED = 100.0
LINKS = {"/": ("/a", "/b"), "/a": ("/b", "http://two.example/"), "/b": (), "two": ()}
SETTINGS = Settings(
    crawl=CrawlSettings(scope="any", workers=1, batch_seconds=0.0, max_wait=4 * DELAY),
    politeness=PolitenessSettings(delay=DELAY, ip_delay=0.0, adaptive=0.0),
    guard=GuardSettings(hosts={"one.example": "192.0.2.1", "two.example": "192.0.2.2"}, allow=["192.0.2.0/24"]),
)


class Clock:
    """Unix time, faster than usual."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._at = time.time()

    def __call__(self) -> float:
        return self._at + _SPEED * (time.monotonic() - self._began)


class Web:
    """Two hosts, and the times at which each was asked for a page."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.asked: dict[str, list[float]] = {}

    def answer(self, request: FetchRequest) -> Page:
        host, _, path = request.href.partition("://")[2].partition("/")
        if path == "robots.txt":
            return respond(request, b"", status=404)
        self.asked.setdefault(host, []).append(self._clock())
        links = LINKS["two" if host.startswith("two") else f"/{path}"]
        body = "".join(f'<a href="{link}">to {link}</a>' for link in links)
        return respond(
            request, f"<title>{host}/{path}</title>{body}".encode(), headers=(("content-type", "text/html"),)
        )

    @property
    def unit(self) -> FetchUnitFactory:
        return answered_in_process(self.answer, clock=self._clock)


def session(warehouse: Warehouse, web: Web, clock: Clock) -> CrawlSession:
    warehouse.requests.add_seeds([SEED])
    return CrawlSession(
        warehouse.stores,
        warehouse.settings,
        warehouse.scope,
        lambda: warehouse.ask.queries,
        fetch=web.unit,
        clock=clock,
    )


def test_everything_is_read_once_and_no_host_early(tmp_path: Path) -> None:
    clock = Clock()
    web = Web(clock)
    began = time.monotonic()
    with Warehouse.open(tmp_path, settings=SETTINGS) as warehouse:
        running = session(warehouse, web, clock)
        settled = [str(item.outcome) for item in running]
        assert settled == ["new"] * 4
        assert running.report().phases["index"] == 4, "the last pages count, too"
        assert warehouse.maintenance.verify().ok
        assert warehouse.search("one.example").total == 3
    gaps = [later - earlier for times in web.asked.values() for earlier, later in itertools.pairwise(times)]
    assert len(gaps) == 2
    assert min(gaps) >= DELAY
    assert time.monotonic() - began < 2 * DELAY, "a minute of politeness did not take a minute"


def test_a_finite_crawl_ends_however_short_the_shortest_interval_is(tmp_path: Path) -> None:
    """Pages that fall due again while it runs wait for the next crawl."""
    clock = Clock()
    web = Web(clock)
    rules = msgspec.structs.replace(
        SETTINGS,
        crawl=msgspec.structs.replace(SETTINGS.crawl, max_seconds=20.0),
        freshness=FreshnessSettings(min_interval="5s", max_interval="1m"),
    )
    with Warehouse.open(tmp_path, settings=rules) as warehouse:
        warehouse.requests.add_seeds([SEED])
        reads = []
        for _ in range(2):
            running = CrawlSession(
                warehouse.stores, rules, warehouse.scope, lambda: warehouse.ask.queries, fetch=web.unit, clock=clock
            )
            reads.append([item.visit.href for item in running])
    assert len(reads[0]) == 4
    assert SEED in reads[1] and len(reads[1]) == len(set(reads[1])), "the next crawl reads what is due, each page once"


def test_a_plugin_that_cannot_be_loaded_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "site" / "broken_plugin-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[quadloom.syntaxes]\npapyri = a_module_that_is_not_there:Reader\n")
    monkeypatch.syspath_prepend(str(installed.parent))
    clock = Clock()
    with Warehouse.open(tmp_path / "w", settings=SETTINGS) as warehouse:
        running = session(warehouse, Web(clock), clock)
        assert len(list(running)) == 4
        (notice,) = running.report().notices
        assert "papyri" in notice and "a_module_that_is_not_there" in notice
        (finding,) = warehouse.ask.findings(codes="plugin-broken")
        assert finding.finding.message == notice


def test_a_crawl_that_is_left_is_resumed_where_it_stopped(tmp_path: Path) -> None:
    clock = Clock()
    web = Web(clock)
    with Warehouse.open(tmp_path, settings=SETTINGS) as warehouse:
        first = next(iter(session(warehouse, web, clock)))
        assert first.visit.href == SEED
    with Warehouse.open(tmp_path, settings=SETTINGS) as warehouse:
        rest = {item.visit.href for item in session(warehouse, web, clock)}
    assert SEED not in rest
    assert sum(map(len, web.asked.values())) == 4, "nothing is asked for twice"


def test_a_session_that_never_ran_can_be_closed(tmp_path: Path) -> None:
    clock = Clock()
    with Warehouse.open(tmp_path, settings=SETTINGS) as warehouse:
        running = session(warehouse, Web(clock), clock)
        running.close()
        running.close()
        assert warehouse.stores.frontier.stats(clock()).queued == 1


def test_commands_are_checked_against_one_table(tmp_path: Path) -> None:
    clock = Clock()

    def ask(commands: CrawlCommands, verb: str, **arguments: object) -> object:
        return commands.answer(ControlRequest(verb, dict(arguments)), lambda action: action())

    with Warehouse.open(tmp_path, settings=SETTINGS) as warehouse:
        running = session(warehouse, Web(clock), clock)
        commands = running._commands
        assert ask(commands, "pause") == "paused"
        assert ask(commands, "resume") == "running"
        assert ask(commands, "seeds", urls=["http://two.example/"]) == {"new": 1, "known": 0, "refused": 0}
        with pytest.raises(UsageError, match="does not know 'dance'"):
            ask(commands, "dance")
        with pytest.raises(UsageError, match="wrong arguments of 'seeds'"):
            ask(commands, "seeds", urls=7)
        running.close()


def test_a_session_that_cannot_begin_leaves_no_thread_behind(tmp_path: Path) -> None:
    def refuse(*_: object, **_named: object) -> FetchUnit:
        raise UsageError("no transport")

    clock = Clock()
    with Warehouse.open(tmp_path, settings=SETTINGS) as warehouse:
        before = {thread.name for thread in threading.enumerate()}
        with pytest.raises(UsageError):
            CrawlSession(
                warehouse.stores,
                warehouse.settings,
                warehouse.scope,
                lambda: warehouse.ask.queries,
                fetch=refuse,
                clock=clock,
            )
        assert {thread.name for thread in threading.enumerate()} <= before


def test_nor_does_one_whose_site_search_cannot_begin(tmp_path: Path) -> None:
    """Settings that a library passes are not checked when they are made, and the fetch unit runs by then."""
    clock = Clock()
    settings = msgspec.structs.replace(
        SETTINGS,
        crawl=msgspec.structs.replace(SETTINGS.crawl, site_search=5),
        topic=TopicSettings(channel_ttl="some days"),
    )
    with Warehouse.open(tmp_path, settings=settings) as warehouse:
        before = {thread.name for thread in threading.enumerate()}
        with pytest.raises(SettingsError, match="channel_ttl"):
            session(warehouse, Web(clock), clock)
        assert {thread.name for thread in threading.enumerate()} <= before


def test_nor_does_one_whose_last_step_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By then everything else is made: workers, indexer, fetch unit, site searches."""

    def fail(*_: object, **_named: object) -> None:
        raise UsageError("no sender")

    monkeypatch.setattr("quadloom.crawling.run.session.NotificationSender", fail)
    clock = Clock()
    settings = msgspec.structs.replace(SETTINGS, crawl=msgspec.structs.replace(SETTINGS.crawl, site_search=5))
    with Warehouse.open(tmp_path, settings=settings) as warehouse:
        before = {thread.name for thread in threading.enumerate()}
        with pytest.raises(UsageError, match="no sender"):
            session(warehouse, Web(clock), clock)
        assert {thread.name for thread in threading.enumerate()} <= before
        monkeypatch.undo()
        running = session(warehouse, Web(clock), clock)
        running.close()


def test_nor_does_one_that_cannot_answer_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control socket is opened when the crawl begins to run."""

    def fail(*_: object) -> None:
        raise StoreError("no socket", hint="none")

    monkeypatch.setattr("quadloom.crawling.run.session.ControlServer", fail)
    clock = Clock()
    with Warehouse.open(tmp_path, settings=SETTINGS) as warehouse:
        before = {thread.name for thread in threading.enumerate()}
        running = session(warehouse, Web(clock), clock)
        with pytest.raises(StoreError, match="no socket"):
            next(iter(running))
        assert {thread.name for thread in threading.enumerate()} <= before


class FailingWeb(Web):
    """Four sites of three pages each. After a while, nobody answers for some `seconds`: the network of this machine is
    away, as a look at the network finds out."""

    HOSTS = ("one", "two", "three", "four")

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__(clock)
        self._seconds = seconds
        self.away_from = 6  # pages
        self.more: list[str] = []  # further links of every page
        self.back_at: float | None = None
        self.probes = 0
        self.refused = 0

    @property
    def is_away(self) -> bool:
        return self.back_at is not None and time.monotonic() < self.back_at

    def respond(self, request: FetchRequest) -> Page | Failure:
        host, _, path = request.href.partition("://")[2].partition("/")
        if self.back_at is None and sum(map(len, self.asked.values())) >= self.away_from:
            self.back_at = time.monotonic() + self._seconds
        if self.is_away:
            self.refused += 1
            return make_failure(request.href, "connect", "no route to host", fetched_at=self._clock(), seconds=0.1)
        if path == "robots.txt":
            return respond(request, b"", status=404)
        self.asked.setdefault(host, []).append(self._clock())
        links = ["/a", "/b", *(f"http://{name}.example/" for name in self.HOSTS)]
        body = "".join(f'<a href="{link}">to {link}</a>' for link in links)
        return respond(
            request, f"<title>{host}/{path}</title>{body}".encode(), headers=(("content-type", "text/html"),)
        )

    def reaches(self, _endpoints: Sequence[HostAddress]) -> bool:
        self.probes += 1
        return not self.is_away

    @property
    def unit(self) -> FetchUnitFactory:
        return answered_in_process(self.respond, clock=self._clock, reaches=self.reaches)


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "ends"])
def test_no_url_dies_while_the_network_is_away(tmp_path: Path, waits: bool) -> None:
    """One retry is allowed, for the failures that come before the network is suspected; a second one would kill."""
    clock, hosts = Clock(), {f"{name}.example": f"192.0.2.{n}" for n, name in enumerate(FailingWeb.HOSTS, 1)}
    settings = msgspec.structs.replace(
        SETTINGS,
        crawl=msgspec.structs.replace(SETTINGS.crawl, max_wait=60.0 if waits else 3.0),
        politeness=PolitenessSettings(delay=1.0, ip_delay=0.0, adaptive=0.0, retries=1, backoff=1.0, max_backoff=2.0),
        freshness=FreshnessSettings(dead_span="0s"),
        guard=GuardSettings(hosts=hosts, allow=["192.0.2.0/24"]),
    )
    web = FailingWeb(clock, 2.0 if waits else 600.0)
    with Warehouse.open(tmp_path, settings=settings) as warehouse:
        crawl = session(warehouse, web, clock)
        for _ in crawl:
            pass
        assert web.refused >= 1 and web.probes >= 1
        stats = warehouse.stores.frontier.stats(clock())
        assert stats.dead == 0
        read = sum(map(len, web.asked.values()))
        notices = " ".join(crawl.report().notices)
        assert "network seems to be down" in notices
        if waits:
            assert read == 3 * len(web.HOSTS) and "network is back" in notices
        else:
            assert read < 3 * len(web.HOSTS) and stats.queued + stats.waiting > 0, "the rest stays in the queue"


@pytest.mark.parametrize(
    ("forever", "by", "named"),
    [(True, "bandwidth", "freshness.bandwidth"), (False, "hosts", "pauses between requests")],
    ids=["bandwidth", "hosts"],
)
def test_the_report_says_what_a_crawl_waits_for(tmp_path: Path, forever: bool, by: str, named: str) -> None:
    """Delays, and a bandwidth, that leave the machine idle. The clock runs a hundred times as fast."""
    clock, hosts = Clock(), {f"{name}.example": f"192.0.2.{n}" for n, name in enumerate(FailingWeb.HOSTS, 1)}
    settings = msgspec.structs.replace(
        SETTINGS,
        politeness=PolitenessSettings(delay=0.1 if forever else 60.0, ip_delay=0.0, adaptive=0.0),
        freshness=FreshnessSettings(bandwidth=0.1, min_interval="1s"),
        guard=GuardSettings(hosts=hosts, allow=["192.0.2.0/24"]),
    )
    web = FailingWeb(clock, 0.0)
    web.away_from = 1 << 30
    web.more = [f"/{number}" for number in range(200)] if forever else []
    with Warehouse.open(tmp_path, settings=settings) as warehouse:
        warehouse.requests.add_seeds([SEED])
        running = CrawlSession(
            warehouse.stores,
            warehouse.settings,
            warehouse.scope,
            lambda: warehouse.ask.queries,
            forever=forever,
            fetch=web.unit,
            clock=clock,
        )
        waits: dict[str, float] = {}
        for count, _ in enumerate(running, 1):
            waits = running.report().waits
            if count >= (40 if forever else 8):
                break
        assert waits[by] >= 0.3, waits  # the rest is the time before the first links are known
        assert forever or "bandwidth" not in waits
        state = CrawlState(
            dict.fromkeys(("fetch", "transform"), 100), {"fetch": 0.1}, {"fetch": 1.0}, waits={by: 1.0}, bandwidth=9.0
        )
        assert named in balance(state).advice


def test_what_came_of_every_visit_can_be_asked_for(tmp_path: Path) -> None:
    clock = Clock()
    settings = msgspec.structs.replace(
        SETTINGS,
        index=IndexSettings(visits=True),
        politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0, retries=0),
    )
    with Warehouse.open(tmp_path, settings=settings) as warehouse:
        web = MixedWeb(clock)
        for _ in session(warehouse, web, clock):
            pass
        found = warehouse.sparql(
            "SELECT ?url ?outcome ?reason ?type { GRAPH ql:visits { ?url ql:outcome ?outcome "
            "OPTIONAL { ?url ql:reason ?reason } OPTIONAL { ?url ql:contentType ?type } } } ORDER BY ?url",
            format="csv",
        )
        rows = b"".join(found).decode().splitlines()[1:]
        assert rows == [
            "http://one.example/,new,,text/html",
            "http://one.example/a,gone,status: HTTP 404,",
            "http://one.example/b,denied,robots: robots.txt of one.example disallows /b,",
        ]
        assert warehouse.maintenance.verify().ok
        warehouse.maintenance.rebuild()
        assert warehouse.maintenance.verify().ok
        left = warehouse.sparql(
            "SELECT (COUNT(*) AS ?n) { GRAPH ql:visits { ?url ql:outcome ?outcome } }", format="csv"
        )
        assert b"".join(left).split() == [b"n", b"3"], "a rebuild keeps it"


class MixedWeb(Web):
    def answer(self, request: FetchRequest) -> Page:
        path = request.href.partition("://")[2].partition("/")[2]
        if path == "robots.txt":
            return respond(request, b"User-agent: *\nDisallow: /b\n", headers=(("content-type", "text/plain"),))
        if path == "a":
            return respond(request, b"", status=404)
        return respond(request, b'<a href="/a">a</a><a href="/b">b</a>', headers=(("content-type", "text/html"),))
