"""What docs/reference/stability.md lists as public is there, with its parameters, and nothing public is left out."""

from __future__ import annotations

import inspect
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import yaml

import quadloom

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/stability.md").read_text(encoding="utf-8")
LISTED = re.findall(r"^- `(quadloom[\w.]+)(?:\(([^)]*)\))?`$", PAGE, re.MULTILINE)


def found(name: str) -> object:
    """The object of a dotted name: the longest prefix that is a module, then attributes."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            value = getattr(value, attribute)
        return value
    raise AssertionError(name)


@pytest.mark.parametrize(("name", "parameters"), LISTED, ids=[name for name, _ in LISTED])
def test_what_is_promised_is_there(name: str, parameters: str) -> None:
    value = found(name)
    if parameters:
        assert callable(value)
        missing = set(parameters.split(", ")) - set(inspect.signature(value).parameters)
        assert not missing, f"parameters of {name} that the page promises"


def test_nothing_public_is_left_out() -> None:
    names = {name for name, _ in LISTED}
    assert len(names) == len(LISTED) > 50
    members = {f"quadloom.Warehouse.{name}" for name in vars(quadloom.Warehouse) if not name.startswith("_")}
    functions = {f"quadloom.{name}" for name in quadloom.__all__ if name != "Warehouse"}
    assert members | functions <= names, "add it to docs/reference/stability.md, or give it an underscore"


def test_one_version_everywhere() -> None:
    version = quadloom.__version__
    for file in ("pyproject.toml", "lab/pyproject.toml"):
        assert tomllib.loads((ROOT / file).read_text())["project"]["version"] == version, file
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == version
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    assert released[0] == (version, str(citation["date-released"]))
    assert sorted(released, key=lambda one: [int(part) for part in one[0].split(".")], reverse=True) == released
