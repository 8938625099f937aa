"""Files and standard input with one URL per line."""

from __future__ import annotations

import sys
from pathlib import Path

from quadloom.errors import UsageError


def urls_from_file(path: Path | None) -> list[str]:
    if path is None:
        return []
    if str(path) == "-":
        text = sys.stdin.read()
    elif path.is_file():
        text = path.read_text(encoding="utf-8")
    else:
        raise UsageError(
            f"there is no file {path}", hint="give a text file with one URL per line, or - for standard input"
        )
    return url_lines(text)


def url_lines(text: str) -> list[str]:
    """One URL per line; empty lines and lines that begin with # are ignored."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
