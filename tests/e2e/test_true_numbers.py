"""Each number on the demo's site leads to a list with exactly that many entries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from command_line import quadloom
from quadloom.settings import Settings, WebSettings
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder: Path = tmp_path_factory.mktemp("demo")
    done = quadloom("-w", str(folder / "w"), "demo", cwd=folder)
    assert done.returncode == 0, done.stderr
    state = SiteState(folder / "w", Settings(web=WebSettings(rate=0.0, concurrency=0)))
    with TestClient(create_app(state), base_url="http://127.0.0.1:7272") as client:
        yield client


def _get(site: TestClient, path: str, **query: object) -> dict[str, Any]:
    answer = site.get(path, params={name: str(value) for name, value in query.items()})
    assert answer.status_code == 200, (path, query, answer.text)
    return dict(answer.json())


def test_the_tiles_of_the_home_page(site: TestClient) -> None:
    home = _get(site, "/index.json")
    assert home["listed"] == _get(site, "/search.json")["total"] > 0
    assert home["changed"] == len(_get(site, "/changed.json")["pages"]) > 0
    assert home["hosts"] == len(_get(site, "/sites.json")["hosts"]) > 0
    for use in home["types"]:
        assert use["things"] == _get(site, "/type.json", iri=use["iri"])["total"], use["iri"]


def test_findings_by_code_and_severity(site: TestClient) -> None:
    found = _get(site, "/findings.json")
    for name, key in (("codes", "code"), ("severities", "severity")):
        for value, count in found[name].items():
            assert _get(site, "/findings.json", **{key: value})["total"] == count, value


def test_types_their_rows_facets_and_values(site: TestClient) -> None:
    types = _get(site, "/types.json")
    tried = 0
    for use in (*types["types"], *types["parts"]):
        table = _get(site, "/type.json", iri=use["iri"], limit=1000)
        assert use["things"] == table["total"] == len(table["rows"]), use["iri"]
        for facet in table["facets"]:
            for value in facet["values"]:
                where = f"{facet['path']} is {value['value']}"
                assert _get(site, "/type.json", iri=use["iri"], where=where)["total"] == value["count"], where
                tried += 1
        for column in table["columns"]:
            for value in _get(site, "/ask.json", type=use["short"], property=column["path"])["values"][:5]:
                where = f"{column['path']} is {value['value']}"
                assert _get(site, "/ask.json", type=use["short"], where=where)["things"] == value["count"], where
                tried += 1
    assert tried > 300
