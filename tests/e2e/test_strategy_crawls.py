"""The user's own link strategies, on the fake web: they find pages, survive a crash, and mistakes are told at once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from command_line import quadloom
from faults.crawling import command, finish, requests, write_config
from quadloom.process.failpoints import EXIT_CODE
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process

# The same as `all`, asked of the page's own graph.
EVERYTHING = """
SELECT DISTINCT ?target ?anchor WHERE {
  GRAPH ?page { ?source ?kind ?target . FILTER(STRSTARTS(STR(?kind), "urn:quadloom:link:"))
                FILTER(?kind NOT IN (<urn:quadloom:link:image>, <urn:quadloom:link:vocabulary>,
                                     <urn:quadloom:link:other>, <urn:quadloom:link:stylesheet>,
                                     <urn:quadloom:link:search>))
                OPTIONAL { ?target rdfs:label ?anchor } }
}"""


def small_web() -> FakeWeb:
    return FakeWeb(
        WebSpec(seed=8, pages=60, hosts=3, scale=0.1, links=10, traps=False, slow_seconds=0.0, crawl_delay=0.0)
    )


@pytest.mark.parametrize("failpoint", ["", "after-text:1"])
def test_a_query_of_the_user_finds_what_the_strategy_all_finds(tmp_path: Path, failpoint: str) -> None:
    query = tmp_path / "mine.rq"
    query.write_text(EVERYTHING, encoding="utf-8")
    read = []
    for strategy in ("all", str(query)):
        folder = tmp_path / ("native" if strategy == "all" else "query")
        folder.mkdir()
        with serve_in_process(small_web(), log=folder / "requests.jsonl") as serving:
            arguments = ("crawl", *serving.web.seeds)
            if failpoint and strategy != "all":
                config = write_config(folder, serving, strategies=[strategy], sitemaps=False, failpoint=failpoint)
                crashed = subprocess.run(
                    command(folder / "w", config, *arguments), capture_output=True, timeout=60, check=False
                )
                assert crashed.returncode == EXIT_CODE
            config = write_config(folder, serving, strategies=[strategy], sitemaps=False)
            finish(folder / "w", config, *arguments, "--json")
            read.append({url.replace(str(serving.port), "") for url in requests(serving)})
    assert read[0] == read[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT ?target { ?page nope:x ?target }", "unknown prefix"),
        ("ASK { ?s ?p ?o }", "not a SELECT"),
        ("# over: moon\nSELECT ?x { ?x ?y ?z }", "over: moon"),
        ("SELECT ?t { SERVICE <http://127.0.0.1/> { ?t ?p ?o } }", "SERVICE"),
    ],
)
def test_mistakes_are_told_at_the_start(tmp_path: Path, text: str, words: str) -> None:
    query = tmp_path / "mine.rq"
    query.write_text(text, encoding="utf-8")
    config = tmp_path / "quadloom.toml"
    config.write_text(f'[crawl]\ncontact = "a@b.example"\nstrategies = ["{query}"]\n', encoding="utf-8")
    place = ("-w", str(tmp_path / "w"), "--config", str(config))
    done = quadloom(*place, "crawl", "http://127.0.0.1:9/", cwd=tmp_path)
    assert done.returncode in (2, 3)
    assert words in done.stderr
    assert "hint:" in done.stderr
