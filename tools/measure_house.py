"""Prints how `src/quadloom` is divided: folders, modules, classes and lines that ask for a second look.

    python tools/measure_house.py [SOURCE]

A report, not a gate: the rules that it counts are those of CONTRIBUTING.md. SOURCE is another package's folder.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ENTRIES = 16  # of a folder
SHORT, LONG = 60, 450  # lines of a module
PARAMETERS, METHODS = 10, 20  # of a class
IGNORED = {"__pycache__"}


class Module(NamedTuple):
    """A source file; `name` is dotted, a package has the name of its folder."""

    path: Path
    name: str
    lines: int
    skips: int
    tree: ast.Module


class Row(NamedTuple):
    what: str
    number: int
    details: list[str]


def main() -> int:
    default = Path(__file__).resolve().parents[1] / "src" / "quadloom"
    source = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else default
    modules = [read(path, source) for path in sorted(source.rglob("*.py"))]
    if not modules:
        print(f"no Python files in {source}", file=sys.stderr)
        return 1
    rows = list(measure(source, modules))
    width = max(len(row.what) for row in rows)
    for row in rows:
        print(f"{row.what:<{width}}  {row.number:>7,}")
    for row in rows:
        if row.details:
            print(f"\n{row.what}: {row.number}")
            print("\n".join(f"  {line}" for line in row.details))
    return 0


def read(path: Path, source: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    parts = [source.name, *path.relative_to(source).with_suffix("").parts]
    if parts[-1] == "__init__":
        parts.pop()
    return Module(path, ".".join(parts), len(text.splitlines()), text.count("# fmt: skip"), ast.parse(text))


def measure(source: Path, modules: list[Module]) -> Iterator[Row]:
    yield Row("modules", len(modules), [])
    yield Row("lines", sum(module.lines for module in modules), [])
    yield counted(f"folders above {ENTRIES} entries", crowded(source))
    yield counted(f"modules under {SHORT} lines with one importer, in the same folder", overflow(modules))
    skips = [(module.skips, module.name) for module in modules if module.skips]
    details = [f"{count:>4}  {name}" for count, name in sorted(skips, key=lambda skip: (-skip[0], skip[1]))]
    yield Row("`# fmt: skip`", sum(count for count, _ in skips), details)
    yield counted("public class names defined more than once", repeated(modules))
    yield counted(f"files above {LONG} lines", [f"{m.lines:>4}  {m.name}" for m in modules if m.lines > LONG])
    yield counted(f"classes with more than {PARAMETERS} constructor parameters", wide(modules))
    yield counted(f"classes with more than {METHODS} public methods, own or inherited", rich(modules))


def counted(what: str, details: list[str]) -> Row:
    return Row(what, len(details), details)


def crowded(source: Path) -> list[str]:
    """What a reader sees in a folder: files of all kinds and folders, without caches."""
    found = []
    for folder in [source, *sorted(path for path in source.rglob("*") if path.is_dir())]:
        if IGNORED & set(folder.relative_to(source).parts):
            continue
        entries = sum(1 for entry in folder.iterdir() if entry.name not in IGNORED)
        if entries > ENTRIES:
            found.append((entries, str(folder.relative_to(source.parent))))
    return [f"{entries:>4}  {name}" for entries, name in sorted(found, reverse=True)]


def overflow(modules: list[Module]) -> list[str]:
    """Short modules that only one module next door imports. Packages and `__main__` are left out."""
    names = {module.name for module in modules}
    importers: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for target in imported(module, names):
            importers[target].add(module.name)
    found = []
    for module in modules:
        if module.lines >= SHORT or module.path.stem in ("__init__", "__main__"):
            continue
        by = importers[module.name] - {module.name}
        folder = module.name.rpartition(".")[0]
        if len(by) == 1 and folder in (next(iter(by)), next(iter(by)).rpartition(".")[0]):
            found.append(f"{module.lines:>4}  {module.name}  ← {next(iter(by))}")
    return found


def imported(module: Module, names: set[str]) -> Iterator[str]:
    """Modules of the package that are imported anywhere in a file, or named by a dotted string that is loaded later."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in names else node.module
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.partition(":")[0]
            if name in names:
                yield name


def repeated(modules: list[Module]) -> list[str]:
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.name)
    return [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]


def wide(modules: list[Module]) -> list[str]:
    """`__init__` without `self`. Records, whose fields are their data, have no constructor of their own."""
    found = []
    for module, node in classes(modules):
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                given = method.args
                count = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) - 1
                if count > PARAMETERS:
                    found.append(f"{count:>4}  {module.name}.{node.name}")
    return found


def rich(modules: list[Module]) -> list[str]:
    """Public methods and properties, with those of base classes in the package (found by name)."""
    own: dict[str, set[str]] = {}
    bases: dict[str, list[str]] = {}
    named: dict[str, list[str]] = defaultdict(list)
    for module, node in classes(modules):
        place = f"{module.name}.{node.name}"
        functions = [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
        own[place] = {item.name for item in functions if not item.name.startswith("_")}
        bases[place] = [base.id for base in node.bases if isinstance(base, ast.Name)]
        named[node.name].append(place)

    def methods(place: str, seen: frozenset[str] = frozenset()) -> set[str]:
        inherited = (parent for base in bases[place] if len(named[base]) == 1 for parent in named[base])
        return own[place].union(*(methods(parent, seen | {place}) for parent in inherited if parent not in seen))

    found = [(len(methods(place)), len(own[place]), place) for place in own]
    return [f"{all_:>4} ({mine} own)  {place}" for all_, mine, place in sorted(found, reverse=True) if all_ > METHODS]


def classes(modules: list[Module]) -> Iterator[tuple[Module, ast.ClassDef]]:
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                yield module, node


if __name__ == "__main__":
    sys.exit(main())
