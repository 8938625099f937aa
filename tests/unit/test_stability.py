"""What docs/reference/stability.md lists as public is there, with its parameters, and nothing public is left out."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
from importlib import import_module

import pytest
import yaml

import quadloom
from quadloom.maintenance.former_names import FORMER
from unit import ROOT

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


OF_0_2 = [
    "quadloom.settings.loading.load",
    "quadloom.syntaxes.rdfa.extract",
    "quadloom.syntaxes.microdata.extract",
    "quadloom.syntaxes.microformats.extract",
    "quadloom.syntaxes.jsonld.extract",
    "quadloom.syntaxes.rdf.extract",
    "quadloom.asking.questions.WarehouseQueries",
    "quadloom.crawl.requests.CrawlRequests",
    "quadloom.crawl.scope.CrawlScope",
    "quadloom.subscriptions.service.Subscriptions",
    "quadloom.maintenance.maintenance.Maintenance",
    "quadloom.syntaxes.registry.Context",
    "quadloom.syntaxes.terms.iri",
    "quadloom.syntaxes.terms.literal",
    "quadloom.model.link.Link",
    "quadloom.errors.QuadloomError",
    "quadloom.errors.SyntaxInvalid",
]


@pytest.mark.parametrize("name", OF_0_2)
def test_names_of_the_last_version_still_work(name: str) -> None:
    """In a process of its own, since an import happens once. What has moved says where to."""
    module, attribute = name.rsplit(".", 1)
    script = f"from {module} import {attribute} as x; print(x.__module__)"
    done = subprocess.run([sys.executable, "-W", "always", "-c", script], capture_output=True, text=True, check=True)
    has_moved = any(module == former or module.startswith(f"{former}.") for former in FORMER)
    assert has_moved == ("its former name works until version 0.4" in done.stderr), done.stderr
    assert not done.stdout.strip().startswith(tuple(f"{former}." for former in FORMER))


def test_the_table_of_former_names_is_complete() -> None:
    assert dict(re.findall(r"^\| `(quadloom[\w.]+)` \| `(quadloom[\w.]+)` \|$", PAGE, re.MULTILINE)) == FORMER


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
