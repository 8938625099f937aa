"""One public class name, one thing: a name in a stack trace or an import tells where it is from."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import quadloom


def test_no_public_class_name_is_defined_twice() -> None:
    root = Path(quadloom.__file__).parent
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(root)}:{node.lineno}")
    assert len(places) > 400
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
