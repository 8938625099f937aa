"""Names matched with the things of the demo, by requests as the Reconciliation API 0.2 writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from quadloom.asking.entity import describe_entity
from quadloom.cli.demo import demo_settings
from quadloom.cli.demo_sites import DemoServer
from quadloom.settings import Settings, WebSettings
from quadloom.warehouse import Warehouse
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState

PERSON = "http://schema.org/Person"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "data"
    with DemoServer() as server:
        settings = demo_settings(Settings(), server.hosts_override())
        with Warehouse.open(path, settings=settings) as made:
            for _ in made.crawl(server.homes):
                pass
    return path


@pytest.fixture(scope="module")
def site(warehouse: Path) -> Iterator[TestClient]:
    settings = Settings(web=WebSettings(rate=0.0, concurrency=0, cors="on"))
    with TestClient(create_app(SiteState(warehouse, settings)), base_url="http://127.0.0.1:7272") as client:
        yield client


def asked(site: TestClient, **queries: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    answer = site.post("/reconcile", data={"queries": json.dumps(queries)})
    assert answer.status_code == 200, answer.text
    return {key: value["result"] for key, value in answer.json().items()}


def written_otherwise(name: str, place: int) -> str:
    """As a librarian's column may have it: as it is, in capitals, turned round, without accents, misspelt."""
    words = name.split()
    match place % 5:
        case 1:
            return name.upper()
        case 2:
            return f"{words[-1]}, {' '.join(words[:-1])}"
        case 3:
            return f" {name}. "
        case 4:
            longest = max(words, key=len)
            return name.replace(longest, longest[:2] + longest[3:]) if len(longest) > 5 else name
    return name


def test_fifty_names_of_the_demo_are_found_first(site: TestClient, warehouse: Path) -> None:
    query = (
        "SELECT DISTINCT ?name ?type WHERE { GRAPH ?g { ?thing a ?type ; schema:name ?name } VALUES ?type"
        " { schema:Person schema:Book schema:Event schema:Recipe schema:Product }"
        " FILTER(isIRI(?thing)) } ORDER BY ?name"
    )
    with Warehouse.read(warehouse) as read:
        rows = [(str(row["name"].value), str(row["type"].value)) for row in read.sparql(query).rows() if row["name"]]  # type: ignore[union-attr]
        rows = rows[:: max(1, len(rows) // 50)][:50]
        assert len(rows) == 50
        queries: dict[str, Any] = {
            f"q{place}": {"query": written_otherwise(name, place), "type": type, "limit": 3}
            for place, (name, type) in enumerate(rows)
        }
        found = asked(site, **queries)
        wrong = []
        for place, (name, type) in enumerate(rows):
            first = found[f"q{place}"][:1]
            known = describe_entity(read.stores.quads, first[0]["id"], consolidate=True) if first else None
            names = {one.value.text for item in known.properties for one in item.statements} if known else set()
            if not known or name not in names or type not in known.types:
                wrong.append((queries[f"q{place}"]["query"], first))
    assert len(wrong) <= 2, wrong


def test_the_manifest_names_what_the_specification_requires(site: TestClient) -> None:
    answer = site.get("/reconcile", headers={"origin": "http://refine.example"})
    manifest = answer.json()
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "0.2" in manifest["versions"]
    assert {"name", "identifierSpace", "schemaSpace", "view", "preview", "suggest", "extend"} <= set(manifest)
    assert "{{id}}" in manifest["view"]["url"] and "{{id}}" in manifest["preview"]["url"]
    assert all({"id", "name"} == set(found) for found in manifest["defaultTypes"])
    for service in (*manifest["suggest"].values(), manifest["extend"]["propose_properties"]):
        path = service["service_url"] + service["service_path"]
        assert site.get(path, params={"prefix": "a", "type": PERSON}).status_code == 200


def test_candidates_have_scores_and_reasons(site: TestClient) -> None:
    found = asked(site, a={"query": "Ada Yamada", "type": [PERSON], "type_strict": "any"}, b={"query": "Yamada"})
    first = found["a"][0]
    assert first["name"] == "Ada Yamada" and first["match"] and first["score"] == 100
    assert {"id": PERSON, "name": "Person"} in first["type"]
    assert {"id": "type_match", "value": True} in first["features"]
    assert not any(one["match"] for one in found["b"])
    assert [one["score"] for one in found["b"]] == sorted((one["score"] for one in found["b"]), reverse=True)


def test_what_else_is_known_decides(site: TestClient) -> None:
    known = [{"pid": "schema:birthDate", "v": "1952-07-21"}]
    found = asked(site, a={"query": "A. Yamada", "properties": known}, b={"query": "Yamada", "properties": known})
    assert found["a"][0]["name"] == found["b"][0]["name"] == "Ada Yamada"


def test_an_identifier_finds_its_thing(site: TestClient) -> None:
    iri = asked(site, a={"query": "Ada Yamada"})["a"][0]["id"]
    assert asked(site, a={"query": iri})["a"][0] == {**asked(site, a={"query": iri})["a"][0], "id": iri, "match": True}
    assert site.get("/reconcile/suggest/entity", params={"prefix": iri}).json()["result"][0]["id"] == iri


def test_suggestions_begin_with_what_was_typed(site: TestClient) -> None:
    def names(kind: str, prefix: str) -> list[str]:
        return [
            one["name"] for one in site.get(f"/reconcile/suggest/{kind}", params={"prefix": prefix}).json()["result"]
        ]

    assert names("entity", "ada yam")[0] == "Ada Yamada"
    assert names("type", "per") == ["Person"]
    assert "birth date" in names("property", "birth")
    assert site.get("/reconcile/suggest/wrong", params={"prefix": "a"}).status_code == 404


def test_values_come_with_their_sources(site: TestClient) -> None:
    iri = asked(site, a={"query": "Ada Yamada", "type": PERSON})["a"][0]["id"]
    columns = ["schema:birthDate", "schema:birthPlace", "ql:source", "ql:visited", "ql:record"]
    wanted = {"ids": [iri, "urn:nothing"], "properties": [{"id": name} for name in columns]}
    answer = site.post("/reconcile", data={"extend": json.dumps(wanted)}).json()
    assert [column["id"] for column in answer["meta"]] == columns
    row = answer["rows"][iri]
    assert {"str": "1952-07-21"} in row["schema:birthDate"] and row["schema:birthPlace"] == [{"str": "Bergen"}]
    assert len(row["ql:source"]) == len(row["ql:visited"]) == len(row["ql:record"]) > 3
    assert all(re.fullmatch(r"quadloom-\d+\.warc\.gz@\d+\+\d+", cell["str"]) for cell in row["ql:record"])
    assert answer["rows"]["urn:nothing"] == {name: [] for name in columns}


def test_a_preview_may_stand_in_a_frame_and_runs_nothing(site: TestClient) -> None:
    iri = asked(site, a={"query": "Ada Yamada", "type": PERSON})["a"][0]["id"]
    answer = site.get("/reconcile/preview", params={"id": iri})
    policy = answer.headers["content-security-policy"]
    assert "Ada Yamada" in answer.text and "<script" not in answer.text
    assert "frame-ancestors http: https:" in policy and "sandbox" in policy and "default-src 'none'" in policy
    assert site.get("/reconcile/preview", params={"id": "urn:nothing"}).status_code == 404


@pytest.mark.parametrize(
    ("field", "text", "status"),
    [
        ("queries", "{", 400),
        ("queries", "[]", 400),
        ("queries", '{"q": {"query": 7}}', 400),
        ("queries", '{"q": {"query": "a", "properties": [{"pid": "no thing", "v": 1}]}}', 400),
        ("queries", json.dumps({str(place): {"query": "a"} for place in range(51)}), 413),
        ("extend", '{"ids": []}', 400),
        ("extend", json.dumps({"ids": ["urn:x"] * 51, "properties": []}), 413),
    ],
)
def test_bad_requests_are_refused_with_a_cure(site: TestClient, field: str, text: str, status: int) -> None:
    answer = site.post("/reconcile", data={field: text})
    assert answer.status_code == status and answer.json()["hint"]


def test_a_batch_ends_after_its_time(site: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadloom.web.api.reconciliation._BATCH_SECONDS", -1.0)
    answer = site.post("/reconcile", data={"queries": '{"q": {"query": "Ada"}}'})
    assert answer.status_code == 503 and "fewer" in answer.json()["hint"] and answer.headers["retry-after"]


@pytest.mark.parametrize("text", ["", "*", "\u202e", "a" * 5000, "🙂 🙂", "-x OR (", "\x00"])
def test_any_name_gets_an_answer(site: TestClient, text: str) -> None:
    assert isinstance(asked(site, q={"query": text})["q"], list)
