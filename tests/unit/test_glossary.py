"""The glossary is short and leads to the code, and names in the code are words of the trade."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import quadloom

PACKAGE = Path(quadloom.__file__).parent
GLOSSARY = Path(__file__).resolve().parents[2] / "docs/reference/glossary.md"
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| `([^`|]+)` \|$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
# Words that once were names here and need explaining; the plain word is in the glossary.
DIALECT = frozenset((
    "woven", "weave", "weaver", "rewoven", "told", "tend", "kept", "desk", "shelf", "shelving", "errand", "standings",
    "brought", "plainly", "patiently", "mend", "anew", "beside", "abouts", "unmarked", "companion",
))  # fmt: skip
_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _words(name: str) -> set[str]:
    """The words of a name in snake_case or CamelCase."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def _public_names() -> Iterator[tuple[str, str]]:
    """Modules, classes, functions and methods of the package, each with its place."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = str(path.relative_to(PACKAGE))
        yield path.stem, place
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
        for node in (node for body in (tree.body, *(item.body for item in classes)) for node in body):
            if isinstance(node, _NAMED) and not node.name.startswith("_"):
                yield node.name, f"{place}:{node.lineno}"


def test_every_row_of_the_glossary_is_read() -> None:
    lines = [line for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(lines) - 1  # the head of the table
    assert 40 < len(ROWS) <= 60, "a reader remembers few words"


@pytest.mark.parametrize("word,module", [(word, module) for word, _, module in ROWS])
def test_the_module_of_an_entry_exists(word: str, module: str) -> None:
    assert (PACKAGE / module).is_file(), f"glossary: `{word}` is said to be in {module}"


def test_entries_are_unique_and_in_order() -> None:
    words = [word.removeprefix("χ, ").lower() for word, _, _ in ROWS]
    assert len(set(words)) == len(words)
    in_place = [word for (entry, _, _), word in zip(ROWS, words, strict=True) if not entry.startswith("χ")]
    assert in_place == sorted(in_place)


def test_public_names_are_words_of_the_trade() -> None:
    assert [f"{name} ({place})" for name, place in _public_names() if _words(name) & DIALECT] == []


@pytest.mark.parametrize("name,words", [("TransformPool", {"transform", "pool"}), ("read_desk", {"read", "desk"})])
def test_names_are_split_into_words(name: str, words: set[str]) -> None:
    assert _words(name) == words
