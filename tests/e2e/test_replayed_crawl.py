"""A crawl repeated from its own archive: the same pages and the same statements, and no server is asked."""

from __future__ import annotations

import json
from pathlib import Path

from fakeweb.request_log import RequestLog
from faults.crawling import finish, run_config
from quadloom.model.outcome import PageRow
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process

PAGES_GRAPH = b" <urn:quadloom:pages> ."
SPEC = WebSpec(seed=11, pages=120, hosts=6, scale=0.1, links=30, traps=False, slow_seconds=0.0, crawl_delay=0.0)
POLITENESS: dict[str, str | int | float] = {
    "delay": 0.0,
    "ip_delay": 0.0,
    "per_site": 4,
    "adaptive": 0.0,
    "retries": 0,
    "backoff": 0.2,
}


def _without_noarchive(rows: dict[str, PageRow]) -> dict[str, PageRow]:
    """A page that asks not to be archived cannot be replayed."""
    return {href: row for href, row in rows.items() if row.archive is not None}


def _exported(folder: Path, warehouse: Path, config: Path) -> list[bytes]:
    """All statements but those about the pages' place in the crawl, which depends on what was read first."""
    target = folder / f"{warehouse.name}.nq"
    finish(warehouse, config, "export", str(target), "--json")
    return [line for line in target.read_bytes().splitlines() if not line.endswith(PAGES_GRAPH)]


def _rows(warehouse: Path) -> dict[str, PageRow]:
    with Warehouse.open(warehouse, settings=Settings()) as opened:
        return {row.href: row for row in opened.stores.catalog.scan() if row.quads_digest or row.text_digest}


def test_a_crawl_is_replayed_from_its_archive(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with serve_in_process(FakeWeb(SPEC), log=tmp_path / "requests.jsonl") as serving:
        config = run_config(tmp_path, serving, crawl={"max_wait": 1.0}, politeness=POLITENESS)
        finish(first, config, "crawl", *serving.web.seeds, "--json")
        seeds = serving.web.seeds
    asked = RequestLog(tmp_path / "requests.jsonl").count_by_url()
    offline = tmp_path / "offline.toml"  # without the addresses of the fake web, and with the usual pauses
    crawl = {"contact": "test@quadloom.invalid", "scope": "any", "workers": 1, "max_wait": 1.0}
    crawl["transport"] = f"replay:{first}"
    offline.write_text("[crawl]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in crawl.items()))
    finish(second, offline, "crawl", *seeds, "--json")
    assert RequestLog(tmp_path / "requests.jsonl").count_by_url() == asked
    everything, after = _rows(first), _rows(second)
    before = _without_noarchive(everything)
    lost = {f"<{row.final_url}>".encode() for href, row in everything.items() if href not in before}
    assert len(lost) < 3 and len(before) > 100
    assert before.keys() == after.keys()
    for href, row in before.items():
        again = after[href]
        assert (again.status, again.fetched_at, again.final_url) == (row.status, row.fetched_at, row.final_url)
        assert (again.quads_digest, again.text_digest) == (row.quads_digest, row.text_digest), href
    exported = [line for line in _exported(tmp_path, first, config) if line.split(b" ")[-2] not in lost]
    assert len(exported) > 1000
    assert _exported(tmp_path, second, offline) == exported
    assert finish(second, offline, "verify", "--json")["ok"]
