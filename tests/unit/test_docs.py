"""Documentation that the code can check: settings, commands, decisions, finding codes."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import get_type_hints

import pytest

from quadloom.cli.main import COMMANDS
from quadloom.settings.loading import fields
from quadloom.warehouse import Warehouse
from unit import ROOT


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
    pages = {path.name: path.read_text(encoding="utf-8") for path in (folder / "findings").iterdir()}
    assert pages == builder.finding_pages(), "run `make docs`"


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


def test_every_decision_has_a_status_and_a_date() -> None:
    status = re.compile(r"\A# \d{4} .+\n\nStatus: (accepted|replaced by \d{4}), \d{4}-\d\d-\d\d")
    pages = sorted((ROOT / "docs/decisions").glob("0*.md"))
    assert [path.name for path in pages if not status.match(path.read_text(encoding="utf-8"))] == []


def test_the_readme_commands_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    used = set(re.findall(r"^(?:\$ )?quadloom (?:-w \S+ )?([a-z]+)", text, re.MULTILINE))
    assert used and used <= set(COMMANDS)


def _examples(page: Path) -> list[list[str]]:
    """Words of every `quadloom …` line in a page's code blocks, comments and what follows a pipe left out."""
    # All fences in one pass: a closing one looks like the opening one of a block without a language.
    blocks = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    shell = "".join(text for language, text in blocks if language in ("", "console"))
    lines: Iterable[str] = (line.strip().removeprefix("$ ") for line in shell.replace("\\\n", " ").splitlines())
    lines = (re.sub(r"^(?:[A-Z_]+=\S+ )+", "", line) for line in lines)
    return [_words(line) for line in lines if line.startswith("quadloom ")]


def _words(line: str) -> list[str]:
    quoted = re.sub(r"'[^']*('|$)|\"[^\"]*(\"|$)", "…", line)  # a query may go on over several lines
    words = re.split(r" +#| [|&>]", quoted)[0].split()[1:]
    return words[2:] if words[0] == "-w" else words


def _sections() -> dict[str, set[str]]:
    """Options of each command, by its words."""
    parts = re.split(
        r"^##+ quadloom (.*)$", (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8"), flags=re.M
    )
    return {name: set(re.findall(r"`(--?[a-z-]+)`", body)) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize("page", [ROOT / "README.md", *ROOT.glob("docs/**/*.md")], ids=lambda path: path.name)
def test_commands_in_pages_exist_with_their_options(page: Path) -> None:
    known = _sections()
    everywhere = {"--json", "--quiet", "--verbose", "--no-color", "--warehouse", "-w", "--config", "--help"}
    for words in _examples(page):
        name = " ".join(words[:2]) if " ".join(words[:2]) in known else words[0]
        assert name in known, words
        options = {word.split("=")[0] for word in words if word.startswith("--")}
        assert options <= known[name] | everywhere, words


@pytest.mark.parametrize("page", [ROOT / "README.md", *ROOT.glob("docs/**/*.md")], ids=lambda path: path.name)
def test_members_of_a_warehouse_in_python_examples_exist(page: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    parts = get_type_hints(Warehouse)
    for part, member in re.findall(r"\bwarehouse\.(\w+)(?:\.(\w+))?", "".join(blocks)):
        if part in parts:
            assert not member or hasattr(parts[part], member), f"warehouse.{part}.{member}"
        else:
            assert hasattr(Warehouse, part), f"warehouse.{part}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = [
        path
        for folder in ("tutorial", "howto", "reference", "explanation")
        for path in ROOT.glob(f"docs/{folder}/*.md")
    ]
    assert not [path.name for path in pages if f"({path.parent.name}/{path.name})" not in index]


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
    named = set(re.findall(r"(?<!New file )`([\w/*.-]+\.py)`", page.read_text(encoding="utf-8")))
    missing = [
        name
        for name in named
        if not (list(ROOT.glob(name)) or list(package.glob(name)) or ("/" not in name and list(package.rglob(name))))
    ]
    assert not missing
