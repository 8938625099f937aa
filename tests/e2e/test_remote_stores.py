"""A warehouse whose bodies are on S3 and whose quads are on a SPARQL server: crawled, killed, resumed, kept in order.

The graph that comes out is compared with that of a crawl of the same web into one directory.
"""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from faults.crawling import command, finish, kill_group, must_be_read, requests, start, wait_for_requests, write_config
from quadloom.maintenance.archive_order import all_pages
from quadloom.process.failpoints import EXIT_CODE
from quadloom.settings.loading import load
from quadloom.stores.archive.s3_bucket import S3Address, S3Bucket
from quadloom.warehouse import Warehouse
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from quadloom_lab.fakeweb import FakeWeb, FakeWebServer, WebSpec, serve_in_process
from servers import Server, new_bucket, sparql_server

SPEC = WebSpec(seed=5, pages=60, hosts=5, scale=0.1, links=30, traps=False, slow_seconds=0.0, crawl_delay=0.0)


class Remote:
    """A SPARQL server, a bucket, a fake web, and configurations that name them."""

    def __init__(self, folder: Path, serving: FakeWebServer, sparql: Server, bucket: S3Address) -> None:
        self.serving = serving
        self.bucket = bucket
        self.sparql = sparql
        self.warehouse = folder / "remote"
        self._folder = folder

    def config(self, **crawl: str | int | float) -> Path:
        folder = self._folder / "remote-config"
        folder.mkdir(exist_ok=True)
        path = write_config(folder, self.serving, **crawl)
        stores = {
            "archive": f"s3://{self.bucket.bucket}/{self.bucket.prefix}",
            "archive_endpoint": self.bucket.endpoint,
            "archive_file_bytes": 200_000,
            "quads": f"sparql+{self.sparql.url}",
        }
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in stores.items())
        path.write_text(f"{path.read_text(encoding='utf-8')}[stores]\n{lines}", encoding="utf-8")
        return path

    def local_files(self) -> list[Path]:
        return list((self.warehouse / "archive").glob("*.warc.gz*"))


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Remote]:
    bucket = new_bucket()
    sparql = sparql_server("--location", str(tmp_path / "server"))
    with serve_in_process(FakeWeb(SPEC), log=tmp_path / "requests.jsonl") as serving:
        yield Remote(tmp_path, serving, sparql, bucket)
    sparql.stop()


def graph(warehouse: Path, config: Path) -> set[str]:
    """All statements of pages, once they are verified. What describes pages holds times and is left out."""
    stream = io.BytesIO()
    with Warehouse.read(warehouse, settings=load(config=config).settings) as stores:
        verified = stores.maintenance.verify()
        assert verified.ok, verified.drifts
        stores.maintenance.export(stream)
    lines = stream.getvalue().decode().split("\n")
    return {line for line in lines if line and not line.endswith("<urn:quadloom:pages> .")}


def test_a_killed_crawl_resumes_and_gives_the_same_graph(remote: Remote, tmp_path: Path) -> None:
    config = remote.config()
    seeds = remote.serving.web.seeds
    process = start(remote.warehouse, config, "crawl", *seeds)
    assert wait_for_requests(remote.serving, 60, process)
    kill_group(process)
    finish(remote.warehouse, config, "crawl", *seeds, "--json")
    seen = requests(remote.serving)
    assert not {url for url in must_be_read(remote.serving) if not seen[url]}
    assert remote.local_files() == []
    assert len(S3Bucket(remote.bucket).files()) > 1

    embedded = write_config(tmp_path, remote.serving)
    finish(tmp_path / "embedded", embedded, "crawl", *seeds, "--json")
    mine = graph(remote.warehouse, config)
    assert mine == graph(tmp_path / "embedded", embedded)
    assert len(mine) > 500


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("after-archive:2", marks=pytest.mark.slow),
        "after-quads:1",  # a quick crawl writes them only once
        pytest.param("after-marks:1", marks=pytest.mark.slow),
    ],
)
def test_crash_between_two_writes(remote: Remote, point: str) -> None:
    broken = remote.config(failpoint=point)
    first = subprocess.run(
        command(remote.warehouse, broken, "crawl", *remote.serving.web.seeds),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert first.returncode == EXIT_CODE, first.stderr.decode()[-2000:]
    config = remote.config()
    finish(remote.warehouse, config, "crawl", "--json")
    assert graph(remote.warehouse, config)


def test_upkeep_and_questions(remote: Remote) -> None:
    config = remote.config()
    finish(remote.warehouse, config, "crawl", *remote.serving.web.seeds, "--json")
    before = graph(remote.warehouse, config)
    settings = load(config=config).settings
    with Warehouse.open(remote.warehouse, settings=settings) as stores:
        # Drift: a page's graph is lost, another one was of a page that is known no more.
        rows = all_pages(stores.stores.catalog)
        lost = next(row.final_url or row.href for row in rows if row.archive is not None and row.quads_digest)
        stray = "http://gone.example/"
        stores.stores.quads.remove(lost)
        line = f'<{stray}> <http://schema.org/name> "gone" <%s> .\n'
        stores.stores.quads.describe("urn:quadloom:pages", [(stray, (line % "urn:quadloom:pages").encode())])
        stores.stores.quads.insert_new([], (line % stray).encode())
        drifts = {(drift.what, drift.subject) for drift in stores.maintenance.verify().drifts}
        assert drifts == {("quads", lost), ("stray-graph", stray), ("stray-description", stray)}
        stores.maintenance.rebuild()
        # Pages that may not be archived wait for their next visit.
        assert {drift.what for drift in stores.maintenance.verify().drifts} <= {"unindexed"}
        assert not list(stores.stores.quads.match(f"<{stray}>", None, None, None))
        assert stores.sparql("SELECT (COUNT(DISTINCT ?g) AS ?n) { GRAPH ?g { ?s ?p ?o } }").values() != [("0",)]
        found = stores.sparql(
            'SELECT ?page ?t { (?page ?s) ql:matches ("the" 3) GRAPH ql:pages { ?page dcterms:title ?t } }'
        )
        assert len(found.rows()) > 0
        (somebody,) = stores.sparql("SELECT ?s { ?s a schema:Person FILTER isIRI(?s) } LIMIT 1").values()
    finish(remote.warehouse, config, "crawl", "--json")
    finish(remote.warehouse, config, "prune", "--json")
    assert graph(remote.warehouse, config) == before
    with TestClient(create_app(SiteState(remote.warehouse, settings)), base_url="http://127.0.0.1:7272") as client:
        query = {"query": "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"}
        answer = client.get("/sparql", params=query, headers={"accept": "text/csv"})
        assert int(answer.text.split()[1]) > 500, answer.text
        assert client.get("/metrics").status_code == 200
        assert client.get("/entity", params={"iri": somebody[0]}).status_code == 200
