"""Fails when a source file grows beyond 400 lines: the ceiling that keeps every file one noun (CONTRIBUTING.md)."""

from __future__ import annotations

import sys
from pathlib import Path

LIMIT = 400
SOURCES = ("src", "tools")


def main() -> int:
    root = Path(__file__).resolve().parents[1]
    long = [
        (path.relative_to(root), lines)
        for folder in SOURCES
        for path in sorted((root / folder).rglob("*.py"))
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LIMIT
    ]
    for path, lines in long:
        print(f"{path}: {lines} lines, more than {LIMIT}: split it by noun")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
