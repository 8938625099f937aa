"""Every command on a cluster, from a machine where no worker runs: those of the guide's table, and no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.test_cluster import Cluster
from faults.crawling import kill_group
from quadloom.cli.main import COMMANDS, run
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process
from servers import sparql_server

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
WEB = WebSpec(seed=4, pages=60, hosts=6, scale=0.05, links=15, faults=False, traps=False, crawl_delay=0.0)
ELSEWHERE = {
    "demo",
    "init",
    "contexts",
    "serve",
    "worker",
    "bench",
    "simulate",
}  # not about this warehouse, or tried elsewhere


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One worker at work, with a SPARQL server."""
    folder = tmp_path_factory.mktemp("commands")
    sparql = sparql_server()
    with serve_in_process(FakeWeb(WEB), log=folder / "requests.jsonl") as serving:
        made = Cluster(folder, serving, delay=0.1, quads=f"sparql+{sparql.url}")
        with made.config.open("a", encoding="utf-8") as config:
            config.write('[index]\nretention = "1d"\n[transform]\nschemas = "schemas"\n')
        text = made.config.read_text(encoding="utf-8")
        made.config.write_text(text.replace("[cluster]\n", f'[cluster]\nlinks = "{folder}/links"\n'), encoding="utf-8")
        worker = made.worker("one")
        try:
            made.tell("seeds", "add", *serving.web.homes)
            made.wait("nothing left", lambda: made.settled() != set() and made.left() == 0, 120.0)
            made.wait("all indexed", lambda: made.behind() == 0)
            yield made
        finally:
            if worker.poll() is None:
                kill_group(worker)
            sparql.stop()


def test_all_commands(cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = sorted(cluster.settled())[0]
    warc, dump, seeds = tmp_path / "pages.warc.gz", tmp_path / "all.nq", tmp_path / "sites.txt"
    seeds.write_text("\n".join(cluster.serving.web.homes[:2]), encoding="utf-8")
    done: set[str] = set()

    def does(*arguments: str, code: int = 0) -> str:
        done.add(arguments[0])
        found = run(["-w", str(cluster.folder / "desk"), "--config", str(cluster.config), "--json", *arguments])
        written = capfd.readouterr()
        assert found == code, f"{arguments}: {found}\n{written.err}\n{written.out[-2000:]}"
        return written.out

    # While a worker runs.
    stats = json.loads(does("stats"))
    assert stats["classes"] and stats["properties"] and stats["vocabularies"], "counted by the worker"
    assert json.loads(does("status"))["cluster"]["totals"]["shards"] == 256
    assert "of 256 shards" in does("logs")
    does("subscribe", "add", "--url", page)
    does("changes")
    for arguments in (
        ("check",), ("config", "show"), ("search", "the"), ("sparql", "ASK {}"), ("show", page), ("findings",),
        ("audit",), ("why", page), ("sites",), ("seeds", "list"), ("scope", "show"), ("queries",),
        ("inspect", page), ("export", str(dump)), ("export", str(warc)), ("verify",), ("refresh", page),
        ("scope", "add", "--exclude", "*/never/*"), ("scope", "remove", "--exclude", "*/never/*"),
        ("pause", "--all-workers"), ("resume", "--all-workers"), ("freshness", "--all-workers"),
        ("strategies", "--all-workers"), ("report", "-o", str(tmp_path / "report.html")), ("schemas", "list"),
        ("lake", "sync"), ("lake", "query", "SELECT count(*) FROM quads"), ("prune", "--dry-run"),
        ("importance",), ("importance", "--workers", "2"),
    ):  # fmt: skip
        does(*arguments)
    does("table", stats["classes"][0][0])
    does("topic", "shops", "lamp", "--seeds", str(seeds), "--budget", "30")
    cluster.wait("the worker has its shards again", lambda: set(cluster.owners().values()) == {256})
    does("recover", code=6)
    does("prune", code=7)
    does("rebuild", code=7)
    does("rebuild", "--workers", "2", code=7)
    does("stats", "--recount", code=7)
    together = tmp_path / "together.nq"
    does("export", str(together), "--workers", "2")
    does("import", str(warc), code=7)
    # After that.
    does("stop", "--all-workers")
    cluster.wait("no worker", lambda: not cluster.owners())
    assert json.loads(does("status"))["running"] is False
    for arguments in (
        ("rebuild",), ("rebuild", "--workers", "2"), ("stats", "--recount", "--workers", "2"), ("import", str(warc)),
        ("prune",), ("fetch",), ("detect",), ("transform",), ("index",), ("extract",), ("crawl", page), ("verify",),
    ):  # fmt: skip
        does(*arguments)
    assert json.loads(does("stats"))["classes"][0] == stats["classes"][0], "a rebuild counts the same"
    assert done == COMMANDS.keys() - ELSEWHERE
