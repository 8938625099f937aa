"""The command line as Cyclopts reads it: all commands of the table in `quadloom.cli.main`, and the options of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypedDict

from cyclopts import App, Group, Parameter

from quadloom import __version__
from quadloom.cli.main import SUMMARY, groups
from quadloom.cli.overview import OPTIONS
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
    # No --empty-site: leaving out --site means the same.
    default_parameter=Parameter(negative_iterable=(), show_default=_default),
)
_OPTIONS = Group(OPTIONS, sort_key=len(groups))
_EVERYWHERE = Parameter(group=_OPTIONS)
_app["--help"].group = _app["--version"].group = _OPTIONS
_groups = {title: Group(title, sort_key=place) for place, title in enumerate(groups)}
_added: set[str] = set()
_SWITCHES = {"--json": "json", "--quiet": "quiet", "--verbose": "verbose"}
_WITH_PATH = {"--warehouse": "warehouse", "-w": "warehouse", "--config": "config"}
_LEFT = ("--", "--help", "-h", "--version", "--color", "--no-color")  # to Cyclopts


def application() -> App:
    """The application with every command that the table has so far."""
    for title, commands in groups.items():
        for name, (where, help_) in commands.items():
            if name not in _added:
                _added.add(name)
                _app.command(where, name=name, help=help_, group=_groups[title], sort_key=len(_added))
    return _app


def run_command(arguments: Sequence[str]) -> int | None:
    """Run a command; raises what Cyclopts and the command raise.

    Cyclopts reads the options of every command by calling `launch`, which takes it .02 s. As most people write them
    they are read here, with the same result, and the command starts at once."""
    application()
    plain = plain_options(arguments)
    if plain is None:
        code = _app.meta(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
        return code if isinstance(code, int) else None
    options, rest = plain
    return launch(*rest, **options)


class EveryOption(TypedDict, total=False):
    """The options of every command that were given."""

    warehouse: Path
    config: Path
    json: bool
    quiet: bool
    verbose: bool


def plain_options(arguments: Sequence[str]) -> tuple[EveryOption, list[str]] | None:
    """The options of every command, and all other words; None if one is not written in the plain way, or is wrong."""
    options: EveryOption = {}
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in _SWITCHES:
            options[_SWITCHES[word]] = True  # type: ignore[literal-required]
        elif word in _WITH_PATH and _WITH_PATH[word] not in options:
            value = next(words, "")
            if not value or value.startswith("-"):
                return None
            options[_WITH_PATH[word]] = Path(value)  # type: ignore[literal-required]
        elif word in _LEFT or word.startswith((*_SWITCHES, *_WITH_PATH)):
            return None
        else:
            rest.append(word)
    return options, rest


@_app.meta.default
def launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    warehouse: Annotated[Path | None, _EVERYWHERE, Parameter(name=["--warehouse", "-w"])] = None,
    config: Annotated[Path | None, _EVERYWHERE] = None,
    json: Annotated[bool, _EVERYWHERE, Parameter(negative="")] = False,
    quiet: Annotated[bool, _EVERYWHERE, Parameter(negative="")] = False,
    verbose: Annotated[bool, _EVERYWHERE, Parameter(negative="")] = False,
    color: Annotated[bool, _EVERYWHERE] = True,
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
