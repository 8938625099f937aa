"""Every code is explained, and its examples are true."""

from __future__ import annotations

import json

import pytest

import quadloom
from quadloom.documents.checks.codes import CodeEntry, codes
from quadloom_lab.markup import markup
from unit import ROOT

EXAMPLES = [
    (entry, syntax) for entry in codes().values() for syntax in entry.syntaxes if entry.wrong or entry.wrong_markup
]


def found(entry: CodeEntry, example: str, as_markup: str, syntax: str) -> list[str]:
    body = f"<!doctype html><title>Example</title><body>{entry.visible}\n" + (
        as_markup or markup(json.loads(example), syntax)
    )
    seen = quadloom.transform(body.encode(), url="https://shop.example/things/1", content_type="text/html")
    return [finding.code for finding in seen.findings if finding.syntax == syntax or entry.visible]


@pytest.mark.parametrize(("entry", "syntax"), EXAMPLES, ids=lambda value: getattr(value, "code", value))
def test_the_wrong_example_has_the_finding_and_the_right_one_has_not(entry: CodeEntry, syntax: str) -> None:
    assert entry.code in found(entry, entry.wrong, entry.wrong_markup, syntax)
    assert entry.code not in found(entry, entry.right, entry.right_markup, syntax)


def test_every_code_of_the_checks_is_explained() -> None:
    sources = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "src/quadloom/documents/checks").glob("*.py")
    )
    for name in ("unknown-type", "unknown-property", "wrong-domain", "wrong-value", "superseded"):
        assert f"schema-{name}" in codes()
        assert f"vocabulary-{name}" in codes()
    for code in ("bad-date", "bad-price", "date-order", "prefix-undeclared", "shacl-violation"):
        assert f'"{code}"' in sources
        assert code in codes()
