"""Two workers seen and steered from a third directory: status, monitor, metrics, requests to all and to one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from starlette.testclient import TestClient

from e2e.test_cluster import Cluster, stop
from faults.crawling import command, finish, kill_group
from quadloom.crawling.cluster.view import WorkerView, cluster_view
from quadloom.errors import QuadloomError
from quadloom.settings.loading import load
from quadloom.stores.backends import open_cluster
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process

pytestmark = pytest.mark.cluster
WEB = WebSpec(seed=9, pages=260, hosts=24, scale=0.05, links=20, faults=False, traps=False, crawl_delay=0.0)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers at work, and slowly: nothing ends while the tests look."""
    folder = tmp_path_factory.mktemp("steered")
    with serve_in_process(FakeWeb(WEB), log=folder / "requests.jsonl") as serving:
        made = Cluster(folder, serving, delay=1.5)
        workers = [made.worker(name) for name in ("one", "two")]
        try:
            made.tell("seeds", "add", *serving.web.homes)
            made.wait("two shares", lambda: made.shared_by(2))
            made.wait_for_requests(30)
            yield made
            for worker in workers:
                stop(worker)
        finally:
            for worker in workers:
                if worker.poll() is None:
                    kill_group(worker)


def names(cluster: Cluster) -> list[str]:
    return sorted((cluster.folder / name / "worker").read_text().strip() for name in ("one", "two"))


def waited(cluster: Cluster, what: str, reached: Callable[[dict[str, WorkerView]], bool]) -> None:
    with closing(open_cluster(load(config=cluster.config).settings)) as reader:
        cluster.wait(what, lambda: reached({one.name: one for one in cluster_view(reader.workers()).workers}))


def test_any_machine_sees_all_workers_and_totals(cluster: Cluster) -> None:
    seen: list[dict[str, Any]] = []

    def whole() -> bool:
        """One look for the wait and for the test: shards move with the work, and for a moment nobody owns them."""
        seen[:] = [cluster.tell("status")]
        found = seen[0]["cluster"]
        return all(worker["pages"] for worker in found["workers"]) and found["totals"]["shards"] == 256

    cluster.wait("both have read something, and no shard is on its way from one to the other", whole)
    status = seen[0]
    view = status["cluster"]
    workers, totals = view["workers"], view["totals"]
    assert sorted(worker["name"] for worker in workers) == names(cluster)
    for worker in workers:
        assert worker["state"] == "running" and worker["version"] and worker["host"] and worker["shards"]
        assert worker["memory_total"] > worker["memory_free"] > 0 and worker["disk_free"] > 0 and worker["memory_used"]
        assert worker["phases"] == ["fetch", "detect", "transform", "index", "extract"]
    assert totals["pages"] == sum(worker["pages"] for worker in workers)
    assert status["running"] is True and status["pages"] == totals["pages"]


def test_the_monitor_and_the_metrics_of_any_machine_show_them(cluster: Cluster) -> None:
    settings = load(config=cluster.config).settings
    with TestClient(create_app(SiteState(cluster.folder / "desk", settings)), base_url="http://localhost") as client:
        monitor = client.get("/monitor.json").json()
        assert monitor["running"] is True
        assert sorted(worker["name"] for worker in monitor["cluster"]["workers"]) == names(cluster)
        page = client.get("/monitor", headers={"accept": "text/html"}).text
        metrics = client.get("/metrics").text
    for name in names(cluster):
        assert name in page
        assert f'quadloom_worker_up{{worker="{name}"}} 1' in metrics
    assert "all 2 alive" in page


def test_all_workers_or_one_are_paused_from_elsewhere(cluster: Cluster) -> None:
    first, second = names(cluster)
    told = cluster.tell("pause", "--worker", first)
    assert told == {"workers": [{"worker": first, "answer": "paused", "error": "", "hint": ""}]}
    waited(cluster, "only one", lambda found: (found[first].state, found[second].state) == ("paused", "running"))
    cluster.tell("pause", "--all-workers")
    waited(cluster, "both", lambda found: {worker.state for worker in found.values()} == {"paused"})
    cluster.tell("resume", "--all-workers")
    waited(cluster, "all go on", lambda found: {worker.state for worker in found.values()} == {"running"})


def test_the_site_of_any_machine_steers_all_workers(cluster: Cluster) -> None:
    site = SiteState(cluster.folder / "desk", load(config=cluster.config).settings, may_control=True)
    try:
        assert site.send("pause") == "paused"
        waited(cluster, "both", lambda found: {worker.state for worker in found.values()} == {"paused"})
        assert site.send("resume") == "running"
        added = site.send("seeds", urls=[cluster.serving.web.homes[0]])
        assert isinstance(added, dict) and {added["known"], added["new"]} == {0, 1}, "one worker does it for all"
        with pytest.raises(QuadloomError, match="between 0 and"):
            site.send("freshness", bandwidth=-1.0)
    finally:
        site.close()


@pytest.mark.slow
def test_a_worker_that_joins_a_paused_cluster_is_paused(cluster: Cluster) -> None:
    cluster.tell("pause", "--all-workers")
    third = cluster.worker("third")
    try:
        waited(cluster, "one that joins", lambda found: [one.state for one in found.values()] == ["paused"] * 3)
        stop(third)
    finally:
        if third.poll() is None:
            kill_group(third)
    cluster.tell("resume", "--all-workers")
    waited(cluster, "all go on", lambda found: {worker.state for worker in found.values()} == {"running"})


def test_shares_and_strategies_reach_all(cluster: Cluster) -> None:
    told = cluster.tell("freshness", "--all-workers", "--bandwidth", "7")
    assert [reply["answer"]["bandwidth"] for reply in told["workers"]] == [7.0, 7.0]
    told = cluster.tell("strategies", "--all-workers", "same-site", "feeds")
    assert [reply["answer"]["strategies"] for reply in told["workers"]] == [["same-site", "feeds"]] * 2
    cluster.tell("strategies", "--all-workers", "all")


@pytest.mark.slow
def test_what_cannot_be_done_is_said(cluster: Cluster) -> None:
    def refused(*arguments: str) -> str:
        done = subprocess.run(
            command(cluster.folder / "desk", cluster.config, *arguments), capture_output=True, text=True, check=False
        )
        assert done.returncode == 2, done.stderr
        return done.stderr

    assert "--all-workers" in refused("pause"), "nothing runs in this directory, and the way out is named"
    assert names(cluster)[0] in refused("stop", "--worker", "nobody"), "who is there"


@pytest.mark.slow
def test_a_dead_worker_is_shown_as_such(cluster: Cluster) -> None:
    third = cluster.worker("killed")
    name = cluster.folder / "killed/worker"
    waited(cluster, "it is seen", lambda found: name.exists() and name.read_text().strip() in found)
    kill_group(third)
    waited(cluster, "it is dead", lambda found: found[name.read_text().strip()].state == "dead")
    shown = subprocess.run(
        command(cluster.folder / "desk", cluster.config, "status"), capture_output=True, text=True, check=True
    )
    assert f"{name.read_text().strip()}\tdead" in shown.stdout and "1 of 3 workers is dead" in shown.stderr
    assert finish(cluster.folder / "killed", cluster.config, "--json", "status")["running"] is True


def test_one_log_has_what_all_workers_report(cluster: Cluster) -> None:
    done = subprocess.run(
        command(cluster.folder / "desk", cluster.config, "--json", "logs"), capture_output=True, text=True, check=True
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    owned = {event["data"]["worker"] for event in events if "of 256 shards" in event["subject"]}
    assert owned >= set(names(cluster))
    assert not [event for event in events if event["kind"] == "settled"], "pages only if they are asked for"
