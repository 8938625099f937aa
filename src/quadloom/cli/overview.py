"""The options of every command: how they are read, and the pages that list them.

Cyclopts reads the arguments of one command. The options of every command are taken out before, because Cyclopts would
give them to a command that takes any words (`search light -water --json`). Imports neither Cyclopts nor Rich, whose
import takes longer than everything else that `quadloom --help` does.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

from quadloom.errors import UsageError

_TITLE = "Options of every command"
_OPTIONS = (
    ("--warehouse -w PATH", "directory of the warehouse [default: $QUADLOOM_WAREHOUSE or ./quadloom-data]"),
    ("--config PATH", "configuration file [default: ./quadloom.toml]"),
    ("--json", "print one JSON object, or JSON Lines for streams"),
    ("--quiet", "no progress and no messages, only data and errors"),
    ("--verbose", "`serve` logs every request"),
    ("--color --no-color", "colours on a terminal; NO_COLOR switches them off too [default: on]"),
    ("--help -h", "print the help of a command and exit"),
    ("--version", "print the version and exit"),
)
OPTION_NAMES = [name for names, _ in _OPTIONS for name in names.split() if name.startswith("-")]
_PATHS = {"--warehouse": "warehouse", "-w": "warehouse", "--config": "config"}
_SWITCHES = {
    "--json": ("json", True),
    "--quiet": ("quiet", True),
    "--verbose": ("verbose", True),
    "--color": ("color", True),
    "--no-color": ("color", False),
}
_HELP, _VERSION = ("--help", "-h"), "--version"
_HINT = "to see the options of every command: `quadloom --help`"
_MIN_COLUMNS = 40  # columns
_CYAN, _BOLD, _END = "\x1b[36m", "\x1b[1m", "\x1b[0m"


class EveryOption(TypedDict, total=False):
    """The options of every command that were given."""

    warehouse: Path
    config: Path
    json: bool
    quiet: bool
    verbose: bool
    color: bool


class CommandLine(NamedTuple):
    """What was typed after `quadloom`. `words` are the command and its arguments up to `--`; `literal` is what follows
    `--`, where a word that begins with a hyphen is no option."""

    options: EveryOption
    words: list[str]
    literal: list[str]
    wants_help: bool
    wants_version: bool


def command_line(arguments: Sequence[str]) -> CommandLine:
    """Separate the options of every command from the other words. Raises `UsageError` if one has no value, or two."""
    options: EveryOption = {}
    words: list[str] = []
    rest = iter(arguments)
    for word in rest:
        name, equals, value = word.partition("=")
        if word == "--":
            break
        if name in _SWITCHES:
            if equals:
                raise UsageError(f"{name} takes no value", hint=_HINT)
            key, on = _SWITCHES[name]
            options[key] = on  # type: ignore[literal-required]
        elif name in _PATHS:
            key, value = _PATHS[name], value if equals else next(rest, "")
            if not value or value.startswith("--"):
                raise UsageError(f"{name} needs a value", hint=_HINT)
            if key in options:
                raise UsageError(f"{name} is given more than once", hint=_HINT)
            options[key] = Path(value)  # type: ignore[literal-required]
        else:
            words.append(word)
    asked = [word for word in words if word not in (*_HELP, _VERSION)]
    return CommandLine(options, asked, list(rest), not set(words).isdisjoint(_HELP), _VERSION in words)


def overview(
    summary: str, groups: Mapping[str, Mapping[str, tuple[str, str]]], columns: int, *, colour: bool = False
) -> str:
    """All commands by purpose. `groups`: title → command → (where it is, one line of help)."""
    lines = ["Usage: quadloom COMMAND [OPTIONS]", "", *textwrap.wrap(summary, max(columns, _MIN_COLUMNS)), ""]
    for title, commands in groups.items():
        if commands:
            lines += _box(title, [(name, help_) for name, (_, help_) in commands.items()], columns, colour)
    return "\n".join(lines) + "\n" + options_box(columns, colour=colour)


def options_box(columns: int, *, colour: bool = False) -> str:
    """The options of every command, as they stand below the help of each."""
    return "\n".join(_box(_TITLE, _OPTIONS, columns, colour)) + "\n"


def terminal() -> tuple[int, bool]:
    """How wide a page of help may be, and whether it may have colours."""
    return shutil.get_terminal_size().columns, sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _box(title: str, rows: Iterable[tuple[str, str]], columns: int, colour: bool) -> Iterator[str]:
    rows = list(rows)
    width, first = max(columns, _MIN_COLUMNS), max(len(name) for name, _ in rows)
    bold, cyan, end = (_BOLD, _CYAN, _END) if colour else ("", "", "")
    yield f"╭─ {bold}{title}{end} {'─' * (width - len(title) - 5)}╮"
    for name, text in rows:
        for place, line in enumerate(textwrap.wrap(text, width - first - 6, break_on_hyphens=False)):
            cell = f"{cyan}{name:{first}}{end}" if place == 0 else " " * first
            yield f"│ {cell}  {line:{width - first - 6}} │"
    yield f"╰{'─' * (width - 2)}╯"
