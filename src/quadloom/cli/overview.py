"""What `quadloom --help` prints: all commands by purpose, and the options of each. Written without Cyclopts and Rich,
whose import takes longer than everything else; a test compares it with what they would print."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping

OPTIONS = "Options of every command"
_EVERYWHERE = (
    ("--warehouse -w PATH", "directory of the warehouse [default: $QUADLOOM_WAREHOUSE or ./quadloom-data]"),
    ("--config PATH", "configuration file [default: ./quadloom.toml]"),
    ("--json", "print one JSON object, or JSON Lines for streams"),
    ("--quiet", "no progress and no messages, only data and errors"),
    ("--verbose", "serve logs every request"),
    ("--color --no-color", "colours on a terminal; NO_COLOR switches them off too [default: on]"),
    ("--help -h", "Display this message and exit."),
    ("--version", "Display application version."),
)
_NARROWEST = 40
_NAME, _TITLE, _END = "\x1b[36m", "\x1b[1m", "\x1b[0m"


def overview(
    summary: str, groups: Mapping[str, Mapping[str, tuple[str, str]]], columns: int, *, colour: bool = False
) -> str:
    """The page. `groups`: title → command → (where it is, one line of help)."""
    width = max(columns, _NARROWEST)
    lines = ["Usage: quadloom COMMAND [OPTIONS]", "", *textwrap.wrap(summary, width), ""]
    for title, commands in groups.items():
        if commands:
            lines += _box(title, [(name, help_) for name, (_, help_) in commands.items()], width, colour)
    lines += _box(OPTIONS, _EVERYWHERE, width, colour)
    return "\n".join(lines) + "\n"


def _box(title: str, rows: Iterable[tuple[str, str]], width: int, colour: bool) -> Iterator[str]:
    rows = list(rows)
    first = max(len(name) for name, _ in rows)
    before, after, end = (_TITLE, _NAME, _END) if colour else ("", "", "")
    yield f"╭─ {before}{title}{end} {'─' * (width - len(title) - 5)}╮"
    for name, text in rows:
        for place, line in enumerate(textwrap.wrap(text, width - first - 6, break_on_hyphens=False)):
            cell = f"{after}{name:{first}}{end}" if place == 0 else " " * first
            yield f"│ {cell}  {line:{width - first - 6}} │"
    yield f"╰{'─' * (width - 2)}╯"
