"""Plug-ins: installed ones run, broken ones are told, none ends anything."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from quadloom.documents.syntaxes.installed import SYNTAXES
from quadloom.documents.syntaxes.plugins import GROUP, with_plugins
from quadloom.documents.transform import transform

MODULE = """
class Good:
    kinds = ("pdf", "image")
    def extract(self, context):
        context.sink.add(f"<{context.url}>", "<http://vocab.example/bytes>", f'"{len(context.body)}"')
class Failing:
    kinds = ("pdf",)
    def extract(self, context):
        raise ValueError("no such luck")
class Unknown:
    kinds = ("papyrus",)
    def extract(self, context): ...
class Half:
    kinds = ("pdf",)
instance = Good()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "a_plugin_for_tests.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "a_plugin_for_tests", raising=False)
    return "a_plugin_for_tests"


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


@pytest.mark.parametrize("attribute", ["Good", "instance"])
def test_a_plugin_reads_its_kinds(module: str, attribute: str) -> None:
    made = with_plugins(SYNTAXES, [entry("sizes", f"{module}:{attribute}")])
    assert made.findings == ()
    result = transform(b"%PDF-1.4 x", url="https://site.example/a.pdf", content_type=None, syntaxes=made.registry)
    assert result.syntaxes == (("sizes", 1),)
    assert '<http://vocab.example/bytes> "10"' in result.nquads.decode()


def test_broken_plugins_are_left_out_and_told(module: str) -> None:
    broken = [f"{module}:Unknown", f"{module}:Half", f"{module}:Missing", "no_such_module:x"]
    entries = [entry(f"p{number}", value) for number, value in enumerate(broken)]
    made = with_plugins(SYNTAXES, [*entries, entry("sizes", f"{module}:Good")])
    assert [finding.syntax for finding in made.findings] == ["p0", "p1", "p2", "p3"]
    assert all(finding.code == "plugin-broken" for finding in made.findings)
    assert "papyrus" in made.findings[0].message
    assert "sizes" in made.registry.syntaxes


def test_a_plugin_that_fails_costs_only_itself(module: str) -> None:
    made = with_plugins(SYNTAXES, [entry("a", f"{module}:Failing"), entry("b", f"{module}:Good")])
    result = transform(b"%PDF-1.4", url="https://site.example/a.pdf", syntaxes=made.registry)
    assert [finding.code for finding in result.findings] == ["pdf-invalid", "extractor-failed"]
    assert result.syntaxes == (("b", 1),)
