"""The arguments of a command, read by Cyclopts."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from inspect import BoundArguments
from pathlib import Path

from cyclopts import App, CycloptsError, Parameter

from quadloom.cli.main import COMMANDS
from quadloom.cli.overview import CommandLine, options_box, terminal
from quadloom.cli.session import Session, begin


def application(names: Iterable[str] = COMMANDS) -> App:
    """An application with these commands. To run one command it needs no others."""
    app = App(
        name="quadloom",
        version_flags=(),
        # Neither --no-watch nor --empty-site: leaving out --watch or --site means the same. Values may begin with a
        # hyphen, because `-` is standard input and `-word` excludes a word from a search; see `_refuse_options`.
        default_parameter=Parameter(
            negative_bool=(), negative_iterable=(), show_default=_default, allow_leading_hyphen=True
        ),
    )
    app["--help"].show = False
    for name in names:
        where, help_ = COMMANDS[name]
        app.command(where, name=name)
        if not app[name].help:  # it has commands of its own, and no function with a docstring
            app[name].help = help_
    return app


def run_command(line: CommandLine) -> int | None:
    """Run a command; raises what the command raises, and `UsageError` for arguments that it does not have."""
    app = application(line.words[:1])
    after = ["--help"] if line.wants_help else ["--", *line.literal] if line.literal else []
    try:
        command, bound, _ = app.parse_args([*line.words, *after], exit_on_error=False, print_error=False)
    except CycloptsError as error:
        from quadloom.cli.usage_errors import usage_error

        raise usage_error(error, app, line.words) from None
    if command == app.help_print:
        _print_help(app, line.words)
        return None
    _refuse_options(bound, line, app)
    begin(Session(**line.options))
    result = command(*bound.args, **bound.kwargs)
    return result if isinstance(result, int) else None


def _refuse_options(bound: BoundArguments, line: CommandLine, app: App) -> None:
    """Raise `UsageError` if an option was taken for a value. `crawl --contact --depth 3` gives no contact, and
    `search light --fuzy` has an unknown option. Words after `--` are values."""
    literal = Counter(line.literal)
    for name, value in bound.arguments.items():
        by_name = bound.signature.parameters[name].kind is bound.signature.parameters[name].KEYWORD_ONLY
        for one in value if isinstance(value, list | tuple) else (value,):
            text = str(one) if isinstance(one, str | Path) else ""
            if not text.startswith("--") or (literal[text] and not by_name):
                literal[text] -= 1
                continue
            from quadloom.cli.usage_errors import missing_value, unknown_option

            chain = app.parse_commands(line.words)[0]
            raise missing_value(name, chain) if by_name else unknown_option(text, app, chain)


def _print_help(app: App, words: list[str]) -> None:
    from rich.console import Console  # .03 s

    columns, colour = terminal()
    app.help_print(words, console=Console(width=columns))
    sys.stdout.write(options_box(columns, colour=colour))


def _default(value: object) -> str | None:
    """An option's default in the help: nothing if it is off, empty or none, as everybody expects."""
    if value is True:
        return "on"
    return None if value is None or value is False or value in ("", (), []) else str(value)
