"""The command line as Cyclopts reads it: all commands of the table in `quadloom.cli.main`, and the options of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Group, Parameter, UnknownCommandError

from quadloom import __version__
from quadloom.cli.main import COMMANDS, SUMMARY, first_word, groups
from quadloom.cli.mistakes import no_command, refuse_option, usage_error
from quadloom.cli.overview import OPTIONS
from quadloom.cli.plain import plain_options
from quadloom.cli.session import Session, begin


def _default(value: object) -> str | None:
    """What the help says as an option's default: nothing if it is off, empty or none, as anybody expects."""
    if value is True:
        return "on"
    return None if value is None or value is False or value in ("", (), []) else str(value)


_app = App(
    name="quadloom",
    help=SUMMARY,
    version=__version__,
    # Neither --no-watch nor --empty-site: leaving out --watch or --site means the same.
    default_parameter=Parameter(
        negative_bool=(),
        negative_iterable=(),
        show_default=_default,
        allow_leading_hyphen=True,
        validator=refuse_option,
    ),
)
_OPTIONS = Group(OPTIONS, sort_key=len(groups))
_EVERYWHERE = Parameter(group=_OPTIONS)
_app["--help"].group = _app["--version"].group = _OPTIONS
_groups = {title: Group(title, sort_key=place) for place, title in enumerate(groups)}
_added: set[str] = set()
_HELP = {"--help", "-h"}


def application() -> App:
    """The application with every command that the table has so far."""
    for title, commands in groups.items():
        for name, (where, help_) in commands.items():
            if name not in _added:
                _added.add(name)
                _app.command(where, name=name, help=help_, group=_groups[title], sort_key=len(_added))
    return _app


def run_command(arguments: Sequence[str]) -> int | None:
    """Run a command; raises what the command raises, and `UsageError` for arguments that it does not have.

    The options of every command are read in `quadloom.cli.plain`; Cyclopts only prints them with the help. It would
    take them for words of a command that takes any number of those."""
    application()
    if (word := first_word(arguments)) and word not in COMMANDS and not _HELP.isdisjoint(arguments):
        raise no_command(arguments, word, COMMANDS)  # Cyclopts would print the help of everything
    plain = plain_options(arguments)
    try:
        if plain is None:
            code = _app.meta(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
            return code if isinstance(code, int) else None
        options, rest = plain
        return launch(*rest, **options)
    except UnknownCommandError as error:
        word = next(iter(error.unused_tokens or arguments), "")
        if error.command_chain or word.startswith("-"):
            raise usage_error(error, _app) from None
        raise no_command(arguments, word, COMMANDS) from None
    except CycloptsError as error:
        raise usage_error(error, _app) from None


@_app.meta.default
def launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True, validator=())],
    warehouse: Annotated[Path | None, _EVERYWHERE, Parameter(name=["--warehouse", "-w"])] = None,
    config: Annotated[Path | None, _EVERYWHERE] = None,
    json: Annotated[bool, _EVERYWHERE] = False,
    quiet: Annotated[bool, _EVERYWHERE] = False,
    verbose: Annotated[bool, _EVERYWHERE] = False,
    color: Annotated[bool, _EVERYWHERE, Parameter(negative="--no-color")] = True,
) -> int | None:
    """Options of every command.

    Parameters
    ----------
    warehouse
        directory of the warehouse [default: $QUADLOOM_WAREHOUSE or ./quadloom-data]
    config
        configuration file [default: ./quadloom.toml]
    json
        print one JSON object, or JSON Lines for streams
    quiet
        no progress and no messages, only data and errors
    verbose
        `serve` logs every request
    color
        colours on a terminal; NO_COLOR switches them off too
    """
    begin(Session(warehouse=warehouse, config=config, json=json, quiet=quiet, verbose=verbose, color=color))
    result = _app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    return result if isinstance(result, int) else None
