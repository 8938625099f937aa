"""What the settings name for the checks is read before anything else is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.documents.checks.page import check_audit_settings, left_to_the_complete_pass
from quadloom.errors import SettingsError
from quadloom.settings import AuditSettings

SHAPES = """
@prefix sh: <http://www.w3.org/ns/shacl#> .
<#shape> a sh:NodeShape ; sh:targetClass <http://schema.org/Product> ; {rest} .
"""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (AuditSettings(profiles=["nosuch"]), "the profile nosuch cannot be read: No such file"),
        (AuditSettings(profiles=["nosuch.ttl"]), "the shapes nosuch.ttl cannot be read"),
        (AuditSettings(vocabularies=["nosuch.tsv"]), "the vocabulary nosuch.tsv cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_once(settings: AuditSettings, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        check_audit_settings(settings)


def test_without_checks_nothing_is_read() -> None:
    check_audit_settings(AuditSettings(profiles=["nosuch"], checks=False))


def test_shapes_may_have_relative_names_and_what_is_not_checked_is_named(tmp_path: Path) -> None:
    file = tmp_path / "shapes.ttl"
    file.write_text(SHAPES.format(rest="sh:property [ sh:path <http://schema.org/sku> ; sh:minCount 1 ]"))
    check_audit_settings(AuditSettings(profiles=[str(file)]))
    other = tmp_path / "other.ttl"
    other.write_text(SHAPES.format(rest="sh:sparql []"))
    assert left_to_the_complete_pass(AuditSettings(profiles=[str(file), str(other)])) == {str(other): ("sparql",)}
