"""Documentation that the code can check: settings, commands, decisions, finding codes."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from quadloom.cli.main import COMMANDS
from quadloom.settings_loading import fields

ROOT = Path(__file__).resolve().parents[2]


def _builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_reference", ROOT / "tools/build_reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_pages_are_up_to_date() -> None:
    builder = _builder()
    folder = ROOT / "docs/reference"
    assert (folder / "settings.md").read_text(encoding="utf-8") == builder.settings_page(), "run `make docs`"
    assert (folder / "commands.md").read_text(encoding="utf-8") == builder.commands_page(), "run `make docs`"


def test_every_setting_has_a_meaning() -> None:
    assert not [name for name, _, meaning in fields() if not meaning]


def test_every_command_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    assert not [name for name in COMMANDS if f"## quadloom {name}\n" not in page]


def test_every_argument_has_a_meaning() -> None:
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    assert not [line for line in page.splitlines() if line.startswith("| `") and line.endswith("|  |")]


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs/decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert not [path.name for path in folder.glob("0*.md") if path.name not in index]


def test_the_readme_commands_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    used = set(re.findall(r"^(?:\$ )?quadloom (?:-w \S+ )?([a-z]+)", text, re.MULTILINE))
    assert used and used <= set(COMMANDS)


def test_no_download_addresses_and_no_machine_paths() -> None:
    suspicious = re.compile(r'"resolved": *"http|--(extra-)?index-url|' + re.escape(str(Path.home())) + "/")
    here = Path(__file__)
    for path in (*ROOT.glob("*.*"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py"), *ROOT.glob("tests/**/*.py")):
        if path.is_file() and path != here and path.suffix in (".py", ".md", ".toml", ".txt", ".json"):
            assert not suspicious.search(path.read_text(encoding="utf-8")), path


PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert not [target for target in targets if not (page.parent / target).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_source_files_that_pages_name_exist(page: Path) -> None:
    """Named from the root, from the package, or without a folder for a file anywhere in the package."""
    package = ROOT / "src/quadloom"
    named = set(re.findall(r"`([\w/*.-]+\.py)`", page.read_text(encoding="utf-8")))
    missing = [
        name
        for name in named
        if not (list(ROOT.glob(name)) or list(package.glob(name)) or ("/" not in name and list(package.rglob(name))))
    ]
    assert not missing
