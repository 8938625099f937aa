"""The command line as Cyclopts reads it: all commands of the table in `quadloom.cli.main`, and the options of each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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


def application() -> App:
    """The application with every command that the table has by now."""
    for title, commands in groups.items():
        for name, (where, help_) in commands.items():
            if name not in _added:
                _added.add(name)
                _app.command(where, name=name, help=help_, group=_groups[title], sort_key=len(_added))
    return _app


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
