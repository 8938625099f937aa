"""`quadloom`: the list of commands and the one place where errors become messages and exit codes.

Exit codes: 0 done, 1 failed, 2 usage, 3 config, 4 empty, 5 limit, 6 unreachable, 7 locked, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from quadloom import __version__
from quadloom.cli.session import Session, begin
from quadloom.errors import QuadloomError

app = App(
    name="quadloom",
    help="Weave the web into a graph you can query: crawl sites, read their data, search it, ask it in SPARQL.",
    version=__version__,
)

# name → where it is; loaded when used, so that `quadloom --version` does not wait for parsers and engines.
COMMANDS = {
    "demo": "quadloom.cli.demo:demo",
    "init": "quadloom.cli.config:init",
    "crawl": "quadloom.cli.crawl:crawl",
    "inspect": "quadloom.cli.inspect:inspect",
    "search": "quadloom.cli.ask:search",
    "sparql": "quadloom.cli.ask:sparql",
    "show": "quadloom.cli.ask:show",
    "why": "quadloom.cli.why:why",
    "refresh": "quadloom.cli.refresh:refresh",
    "scope": "quadloom.cli.scope:scope",
    "subscribe": "quadloom.cli.subscribe:subscribe",
    "changes": "quadloom.cli.subscribe:changes",
    "simulate": "quadloom.cli.simulate:simulate",
    "status": "quadloom.cli.status:status",
    "sites": "quadloom.cli.status:sites",
    "seeds": "quadloom.cli.seeds:seeds",
    "pause": "quadloom.cli.control:pause",
    "resume": "quadloom.cli.control:resume",
    "stop": "quadloom.cli.control:stop",
    "export": "quadloom.cli.exchange:export",
    "import": "quadloom.cli.exchange:import_",
    "verify": "quadloom.cli.upkeep:verify",
    "rebuild": "quadloom.cli.upkeep:rebuild",
    "config": "quadloom.cli.config:config",
    "check": "quadloom.cli.check:check",
    "bench": "quadloom.cli.bench:bench",
}
for _name, _place in COMMANDS.items():
    app.command(_place, name=_name)


@app.meta.default
def launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    warehouse: Annotated[Path | None, Parameter(name=["--warehouse", "-w"])] = None,
    config: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
    quiet: Annotated[bool, Parameter(negative="")] = False,
    verbose: Annotated[bool, Parameter(negative="")] = False,
    color: bool = True,
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
        more messages
    color
        colours on a terminal; NO_COLOR is honoured too
    """
    begin(Session(warehouse=warehouse, config=config, json=json, quiet=quiet, verbose=verbose, color=color))
    result = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    return result if isinstance(result, int) else None


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code instead of leaving the process."""
    try:
        code = app.meta(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
        return code if isinstance(code, int) else 0
    except CycloptsError as error:
        return _complain(str(error).strip(), f"`quadloom {_command(arguments)}--help` shows what it takes", 2)
    except QuadloomError as error:
        return _complain(error.message, error.hint or "`quadloom check` looks for common causes", error.exit_code)
    except KeyboardInterrupt:
        return _complain("interrupted", "run the same command again to go on where it stopped", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader (head, less) has had enough
        return 0
    except OSError as error:
        hint = (
            "make room and run the command again; nothing acknowledged was lost"
            if error.errno == errno.ENOSPC
            else "`quadloom check` looks for common causes"
        )
        return _complain(
            f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""),
            hint,
            6 if error.errno == errno.ENOSPC else 1,
        )


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def _command(arguments: Sequence[str]) -> str:
    return next((f"{word} " for word in arguments if word in COMMANDS), "")


def _complain(message: str, hint: str, code: int) -> int:
    sys.stderr.write(f"quadloom: {message}\nhint: {hint}\n")
    return code
