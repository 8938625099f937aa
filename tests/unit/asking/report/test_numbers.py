"""One vocabulary of numbers: terminal, site, API and documents name the same five counts and give the same values."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient

from quadloom.asking.report.numbers import LABELS, WarehouseNumbers, labelled
from quadloom.cli.main import run
from quadloom.settings import Settings, WebSettings
from quadloom.warehouse import Warehouse
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from unit import ROOT

GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
PAGE = (
    '<https://a.example/x> <http://schema.org/name> "X" <https://a.example/> .\n'
    "<https://a.example/x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://schema.org/Thing> "
    "<https://a.example/> .\n"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "dump.nq").write_text(PAGE)
    with Warehouse.open(folder / "data") as warehouse:
        warehouse.maintenance.import_(folder / "dump.nq")
    return folder / "data"


@pytest.fixture(scope="module")
def numbers(path: Path) -> WarehouseNumbers:
    with Warehouse.read(path) as warehouse:
        found = warehouse.ask.numbers()
        assert found.statements_by_pages + (found.statements_about_pages or 0) == len(warehouse.stores.quads)
    assert (found.pages_visited, found.documents_indexed, found.statements_by_pages) == (1, 1, 2)
    assert found.statements_about_pages, "Quadloom describes the page"
    return found


def test_the_library_the_terminal_and_the_api_agree(
    path: Path, numbers: WarehouseNumbers, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = msgspec.structs.asdict(numbers)
    for command in ("status", "stats"):
        assert run(["-w", str(path), command, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["numbers"] == expected, command
    assert run(["-w", str(path), "stats"]) == 0
    printed = dict(line.split("\t")[:2] for line in capsys.readouterr().out.splitlines()[1 : len(expected) + 1])
    assert printed == {label: str(count) for label, count in labelled(numbers)}
    site = SiteState(path, Settings(web=WebSettings(rate=0.0, concurrency=0)))
    with TestClient(create_app(site), base_url="http://127.0.0.1:7272") as client:
        for address in ("/index.json", "/monitor.json"):
            assert client.get(address).json()["numbers"] == expected, address
        for address in ("/", "/monitor"):
            shown = unescape(re.sub(r"<[^>]+>", " ", client.get(address, headers={"accept": "text/html"}).text))
            for name in ("documents_indexed", "statements_by_pages"):
                assert re.search(rf"\b{expected[name]}\s+{LABELS[name]}\b", shown), (address, name)


def test_the_documents_define_each_number() -> None:
    glossary = GLOSSARY.read_text(encoding="utf-8")
    assert set(LABELS) == set(WarehouseNumbers.__struct_fields__)
    for label in LABELS.values():
        assert f"| {label} | " in glossary
