"""A crash between every two writes (archive, catalog, quads, text, marks): the next run brings all into agreement."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from faults.crawling import command, finish, must_be_read, requests, write_config
from quadloom.process.failpoints import EXIT_CODE, POINTS
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process


@pytest.mark.parametrize("point", POINTS)
def test_crash_between_two_writes(tmp_path: Path, point: str) -> None:
    web = FakeWeb(
        WebSpec(seed=5, pages=90, hosts=6, scale=0.1, links=30, traps=False, slow_seconds=0.0, crawl_delay=0.0)
    )
    with serve_in_process(web, log=tmp_path / "requests.jsonl") as serving:
        warehouse = tmp_path / "warehouse"
        config = write_config(tmp_path, serving, failpoint=f"{point}:2")
        first = subprocess.run(
            command(warehouse, config, "crawl", *serving.web.seeds), capture_output=True, timeout=60, check=False
        )
        assert first.returncode == EXIT_CODE, first.stderr.decode()[-2000:]
        config = write_config(tmp_path, serving)
        finish(warehouse, config, "crawl", "--json")
        verified = finish(warehouse, config, "verify", "--json")
        seen = requests(serving)
        missing = {url for url in must_be_read(serving) if not seen[url]}
    assert verified["ok"], verified["drift"]
    assert not missing, sorted(missing)[:10]
