"""ARCHITECTURE.md is true: the files it names exist, in the order it says, and its recipes lead somewhere."""

from __future__ import annotations

import ast
import re
import tomllib
from typing import get_args

import pytest

from quadloom.documents.syntaxes.installed import SYNTAXES
from quadloom.planning.policy import objectives
from quadloom.settings import Settings
from quadloom.stores import backends
from quadloom.web import routes
from unit import ROOT

SOURCE = ROOT / "src/quadloom"
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def _section(title: str) -> str:
    return PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_every_file_it_names_exists() -> None:
    named = set(re.findall(r"`([\w/.-]+\.(?:py|toml|md))`", PAGE))
    assert len(named) > 50
    assert not [name for name in named if not ((ROOT / name).exists() or (SOURCE / name).exists())]


def test_every_folder_it_names_exists() -> None:
    named = set(re.findall(r"`([\w/-]+/)`", PAGE)) - {"quads/", "text/", "links/", "spool/"}
    assert not [name for name in named if not ((ROOT / name).is_dir() or (SOURCE / name).is_dir())]


def test_it_fits_two_screens() -> None:
    assert PAGE.count("\n") <= 110


def test_every_entry_is_in_the_picture() -> None:
    picture = _section("The fourteen entries")
    entries = [path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert not [name for name in entries if f"{name}/" not in picture]


def test_the_entries_are_the_layers_that_are_checked() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(item["layers"] for item in linter["contracts"] if item["name"] == "read order is import order")
    checked = {name.strip() for layer in layers for name in layer.split("|")}
    rooms = {path.stem for path in SOURCE.iterdir() if not path.name.startswith(("_", "py.typed"))}
    assert rooms == checked


def test_the_records_of_the_walk_are_classes() -> None:
    records = re.findall(r"`(\w+)`", _section("The walk of one page").partition("in order:")[2].partition(".\n")[0])
    classes = {
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    assert 10 <= len(records) <= 16
    assert set(records) <= classes


@pytest.mark.parametrize("seam", re.findall(r"^\| (\w+), `([\w/.]+)`.*`(tests/[\w/.]+)` \|$", PAGE, re.MULTILINE))
def test_each_seam_is_a_protocol_with_a_suite(seam: tuple[str, str, str]) -> None:
    name, module, suite = seam
    tree = ast.parse((SOURCE / module).read_text(encoding="utf-8"))
    (protocol,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    assert any(isinstance(base, ast.Name) and base.id == "Protocol" for base in protocol.bases)
    assert "def test_" in (ROOT / suite).read_text(encoding="utf-8")


def test_the_recipes_name_what_is_there() -> None:
    assert SYNTAXES.reading("html", Settings().transform).run
    assert {"oxigraph", "sparql+http"} <= set(backends.QUAD_STORES)
    assert set(get_args(objectives.Policy)) == set(objectives.POLICIES)
    for policy in objectives.POLICIES:
        assert objectives.ideal_period(policy, 1.0, 1e-3, 1e-3, Settings().freshness.alpha) > 0.0
    assert all(hasattr(objectives, name) for name in ("value", "rate_at_price", "objective", "ideal_period"))
    assert "/search" in {endpoint.path for endpoint in routes.ROUTES}
