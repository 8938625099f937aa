"""A user's own link strategy, asked of the page and of an index that is on a SPARQL server."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from quadloom.crawling.ingest.index.indexer import IndexJob
from quadloom.crawling.ingest.link_queries import UserQueryRunner
from quadloom.model.quads import Quads
from quadloom.settings import CrawlSettings, Settings
from quadloom.stores.protocols.queries import QuerySource, SparqlServer
from quadloom.stores.quads.sparql import SparqlQuads
from quadloom.stores.quads.sparql_client import SparqlClient
from servers import shared_sparql_server

PAGE, OTHER = "http://a.example/page", "http://b.example/other"


@pytest.mark.parametrize("over", ["page", "index"])
def test_links_found_by_query(tmp_path: Path, over: str) -> None:
    url = shared_sparql_server().url
    server = SparqlServer(query=f"{url}/query", update=f"{url}/update", union="union-default-graph=true")
    with closing(SparqlClient(server)) as client:
        client.update("DROP ALL")
    page = Quads.of(PAGE, f"<{PAGE}> <http://schema.org/about> <{PAGE}#thing> <{PAGE}> .\n".encode())
    other = Quads.of(OTHER, f"<{PAGE}#thing> <http://schema.org/url> <http://c.example/found> <{OTHER}> .\n".encode())
    with closing(SparqlQuads(server)) as quads:
        quads.insert_new([page, other])
    links = f"<{PAGE}> <http://schema.org/url> <http://c.example/linked> <{PAGE}> .\n".encode()
    strategy = tmp_path / "about.rq"
    pattern = "?page schema:about ?x . ?x schema:url ?target" if over == "index" else "?page schema:url ?target"
    strategy.write_text(f"# over: {over}\nSELECT ?target {{ {pattern} }}\n", encoding="utf-8")
    notices: list[str] = []
    runner = UserQueryRunner(
        Settings(crawl=CrawlSettings(strategies=[str(strategy)])), QuerySource(servers=(server,)), notices.append
    )
    try:
        found = runner.discoveries([IndexJob(1, page, None, b"", fresh=True, links=links)])
    finally:
        runner.close()
    expected = "http://c.example/found" if over == "index" else "http://c.example/linked"
    assert ([item.href for item in found], notices) == ([expected], [])
