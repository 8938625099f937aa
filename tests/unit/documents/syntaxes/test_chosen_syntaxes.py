"""`transform.syntaxes`: which names it takes, what each means, and what a misspelt one does."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from quadloom.documents.syntaxes import plugins
from quadloom.documents.syntaxes.installed import SYNTAXES
from quadloom.documents.syntaxes.plugins import check_syntaxes
from quadloom.documents.transform import transform
from quadloom.errors import SettingsError
from quadloom.settings import ServiceSettings, Settings, TransformSettings
from quadloom.warehouse import Warehouse
from unit import ROOT

URL = "https://site.example/data"
FILES = {
    "turtle": (b'<#a> <http://v.example/p> "x" .', "text/turtle"),
    "trig": (b'<http://g.example/> { <#a> <http://v.example/p> "x" . }', "application/trig"),
    "ntriples": (b'<http://a.example/> <http://v.example/p> "x" .', "application/n-triples"),
    "nquads": (b'<http://a.example/> <http://v.example/p> "x" <http://g.example/> .', "application/n-quads"),
    "rdfxml": (
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:v="http://v.example/">'
        b'<rdf:Description rdf:about="#a" v:p="x"/></rdf:RDF>',
        "application/rdf+xml",
    ),
}


def choosing(*names: str) -> Settings:
    return Settings(transform=TransformSettings(syntaxes=list(names)))


def is_read(kind: str, settings: Settings) -> bool:
    body, content_type = FILES[kind]
    return b"http://v.example/p" in transform(body, url=URL, content_type=content_type, settings=settings).nquads


@pytest.mark.parametrize("name", FILES)
def test_a_format_of_rdf_means_that_format_alone(name: str) -> None:
    check_syntaxes(choosing(name))
    assert [kind for kind in FILES if is_read(kind, choosing(name))] == [name]


def test_rdf_means_all_formats_and_formats_add_up() -> None:
    assert [kind for kind in FILES if is_read(kind, choosing("rdf"))] == [*FILES]
    assert [kind for kind in FILES if is_read(kind, choosing("jsonld", "turtle", "rdfxml"))] == ["turtle", "rdfxml"]
    assert not any(is_read(kind, choosing("jsonld")) for kind in FILES)


def test_every_syntax_may_be_named() -> None:
    check_syntaxes(Settings())
    check_syntaxes(choosing(*SYNTAXES.syntaxes))


@pytest.mark.parametrize(("name", "meant"), [("json-ld", "jsonld"), ("RDFa", "rdfa"), ("n-triples", "ntriples")])
def test_a_misspelt_name_is_an_error_with_a_proposal(name: str, meant: str) -> None:
    with pytest.raises(SettingsError, match=name) as caught:
        check_syntaxes(choosing("microdata", name))
    assert caught.value.hint.startswith(f"did you mean {meant}? It takes html, ")


def test_a_name_like_no_other_is_an_error_with_the_list() -> None:
    with pytest.raises(SettingsError, match="'papyri'") as caught:
        check_syntaxes(choosing("papyri"))
    assert set(caught.value.hint.removeprefix("It takes ").removesuffix("; empty = all").split(", ")) == {
        *SYNTAXES.names
    }
    assert {*SYNTAXES.names} == {*SYNTAXES.syntaxes, *FILES}


def test_the_reference_lists_all_names() -> None:
    reference = ROOT / "docs/reference/vocabulary.md"
    section = reference.read_text(encoding="utf-8").partition("## Names of syntaxes")[2].partition("\n## ")[0]
    listed = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in section.splitlines() if row.startswith("| `")]
    assert sorted(name for names in listed for name in names) == sorted(SYNTAXES.names)


def test_services_and_plugins_have_names_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError):
        check_syntaxes(choosing("external"))
    check_syntaxes(
        Settings(
            transform=TransformSettings(syntaxes=["external"]), service=[ServiceSettings(url="http://127.0.0.1:1/")]
        )
    )
    broken = EntryPoint("papyri", "a_module_that_is_not_there:Reader", plugins.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [broken])
    check_syntaxes(choosing("papyri"))  # that it cannot be loaded is a finding of its own


def test_a_warehouse_is_not_opened_for_work_with_such_a_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="'ttl'"):
        Warehouse.open(tmp_path / "warehouse", settings=choosing("ttl"))
    assert not (tmp_path / "warehouse").exists()
