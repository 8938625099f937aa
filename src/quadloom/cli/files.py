"""Files and standard input that commands are given."""

from __future__ import annotations

import sys
from pathlib import Path

from quadloom.errors import UsageError


def bytes_of(path: Path, hint: str) -> bytes:
    """The content of a file. `hint`: what to give if there is no such file. Raises `UsageError`."""
    if not path.exists() or path.is_dir():  # a pipe is fine: --seeds <(command)
        raise UsageError(f"there is no file {path}", hint=hint)
    return path.read_bytes()


def text_of(path: Path, hint: str) -> str:
    """The same as text. `-` is standard input."""
    return sys.stdin.read() if str(path) == "-" else bytes_of(path, hint).decode("utf-8")


def urls_from_file(path: Path | None) -> list[str]:
    """The URLs in a file or on standard input; None = none."""
    return url_lines(text_of(path, "give a text file with one URL per line, or - for standard input")) if path else []


def url_lines(text: str) -> list[str]:
    """One URL per line; empty lines and lines that begin with # are ignored."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
