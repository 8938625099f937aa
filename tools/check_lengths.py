"""Fail if files, folders or modules grow out of shape (CONTRIBUTING.md): long files, crowded folders, slices.

Four rules over src and lab, because each alone can be met by breaking another:

- a file has at most 450 lines;
- a folder has at most 16 modules and sub-packages. The top of src/quadloom is exempt: its entries are the rooms of the
  whole program. Data files are not counted;
- `# fmt: skip` stands only on tables of data, which are assignments outside of functions;
- a module under 60 lines is not imported by only one module of its own folder: then it is part of that module. Modules
  that are started by name (`python -m`, entry points, the table of commands) or that the package's `__init__` exports
  have other users.

Exceptions, each with its reason, are in tools/shape_exceptions.toml.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src/quadloom", "lab/quadloom_lab")
EXCEPTIONS = ROOT / "tools/shape_exceptions.toml"
MOST_LINES, MOST_ENTRIES, SMALL = 450, 16, 60
_NAMED = re.compile(r"\b(quadloom(?:_lab)?(?:\.\w+)+)")


def sources() -> dict[str, str]:
    """Path from the root → text, of every module."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            found[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
    return found


def long_files(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    for path, text in texts.items():
        if (lines := len(text.splitlines())) > MOST_LINES:
            yield path, f"{lines} lines, more than {MOST_LINES}: split it by concern"


def crowded_folders(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    entries: defaultdict[str, set[str]] = defaultdict(set)
    for path in texts:
        folder, _, name = path.rpartition("/")
        if name != "__init__.py":
            entries[folder].add(name)
        entries[folder.rpartition("/")[0]].add(folder)
    for folder, names in sorted(entries.items()):
        if len(names) > MOST_ENTRIES and folder != "src/quadloom":
            yield folder, f"{len(names)} modules and packages, more than {MOST_ENTRIES}: group them"


def skipped_formatting(texts: dict[str, str]) -> Iterator[str]:
    """Places with `# fmt: skip` in a function."""
    for path, text in texts.items():
        lines = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# fmt: skip")]
        if lines:
            nodes = ast.walk(ast.parse(text))
            functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
            for number in lines:
                if any(node.lineno <= number <= (node.end_lineno or 0) for node in functions):
                    yield f"{path}:{number}"


def slices(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Small modules with one importer, in the same folder."""
    users = _users(texts)
    for path, text in texts.items():
        if len(text.splitlines()) >= SMALL or path.endswith(("__init__.py", "__main__.py")):
            continue
        importers = users[_module(path)]
        user = next(iter(importers), "")
        folder, _, name = user.rpartition("/")
        if len(importers) == 1 and folder == path.rpartition("/")[0] and name != "__init__.py":
            yield path, f"{len(text.splitlines())} lines, used by {name} alone: make it part of that"


def _users(texts: dict[str, str]) -> defaultdict[str, set[str]]:
    """Module → paths of the modules that import it, or name it in a string."""
    modules = {_module(path) for path in texts}
    users: defaultdict[str, set[str]] = defaultdict(set)
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
                names = _NAMED.findall(node.value)
            for name in modules.intersection(names):
                users[name].add(path)
    return users


def _module(path: str) -> str:
    name = path.removeprefix("src/").removeprefix("lab/").removesuffix(".py").removesuffix("/__init__")
    return name.replace("/", ".")


RULES = {"lines": long_files, "entries": crowded_folders, "slices": slices}


def main() -> int:
    texts = sources()
    exceptions = tomllib.loads(EXCEPTIONS.read_text(encoding="utf-8"))
    failed = False
    for rule, check in RULES.items():
        allowed = dict(exceptions.get(rule, {}))
        for path, message in check(texts):
            if allowed.pop(path, None) is None:
                failed = True
                print(f"{path}: {message}")
        for path in allowed:
            print(f"{path}: no longer an exception; remove it from [{rule}] in {EXCEPTIONS.relative_to(ROOT)}")
    places, pinned = list(skipped_formatting(texts)), exceptions["formatting"]["in_functions"]
    if len(places) > pinned:
        failed = True
        print(f"{len(places)} `# fmt: skip` in functions, more than {pinned}: let `ruff format` lay these out")
        print("\n".join(places))
    elif len(places) < pinned:
        print(f"{len(places)} `# fmt: skip` in functions; lower in_functions in {EXCEPTIONS.relative_to(ROOT)} to that")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
