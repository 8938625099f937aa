"""Wrong arguments as messages: what is wrong, and which name or help page was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Literal, get_args, get_origin

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnusedCliTokensError,
)

from quadloom.cli.overview import OPTION_NAMES
from quadloom.errors import UsageError

_LAB_COMMANDS = ("bench", "simulate")
_VALUES = {int: "a whole number", float: "a number", bool: "true or false"}
_MIN_SIMILARITY = 0.7  # from 0 to 1: --frobnicate and --own-site, which nobody confuses, have 0.6


def unknown_command(word: str, words: Sequence[str], names: Iterable[str], chain: Sequence[str] = ()) -> UsageError:
    """`word` stands where the name of a command is expected. `words` is all that was typed, `names` the commands that
    there are, `chain` the command of which they are parts."""
    if word.startswith("-"):
        return unknown_option(word, None, chain)
    group = " ".join(["quadloom", *chain])
    message = f"`{group}` has no command {word!r}" if chain else f"there is no command {word!r}"
    if not chain and word in _LAB_COMMANDS:
        message = f"`quadloom {word}` is part of the lab, which is not installed"
        return UsageError(message, hint="in a checkout of Quadloom: `pip install -e lab`")
    if not chain and word in ("help", "version"):
        others = [one for one in words if one != word] if word == "help" else []
        return UsageError(message, hint=f"write `{' '.join(['quadloom', *others, f'--{word}'])}`")
    near = difflib.get_close_matches(word.lower(), names, n=1)
    hint = f"did you mean `{group} {near[0]}`?" if near else f"to list the commands: `{group} --help`"
    return UsageError(message, hint=hint)


def missing_value(parameter: str, chain: Sequence[str]) -> UsageError:
    """An option has another option where its value is expected."""
    return UsageError(f"--{parameter.replace('_', '-')} needs a value", hint=_help_hint(chain))


def unknown_option(option: str, app: App | None, chain: Sequence[str]) -> UsageError:
    """Name the option that was probably meant, or the help page of the command. `app` None = before any command."""
    names = _options(_command(app, chain)) if app else OPTION_NAMES
    near = difflib.get_close_matches(option, names, n=1, cutoff=_MIN_SIMILARITY)
    return UsageError(f"unknown option {option}", hint=f"did you mean {near[0]}?" if near else _help_hint(chain))


def usage_error(error: CycloptsError, app: App, words: Sequence[str]) -> UsageError:
    """Convert a Cyclopts error to a `UsageError`. An unknown option in `words` is the cause of whatever follows."""
    chain = tuple(error.command_chain or ())
    command = _command(app, chain)
    for word in words:
        if word.startswith("--") and word.partition("=")[0] not in _options(command):
            return unknown_option(word.partition("=")[0], app, chain)
    if isinstance(error, UnknownCommandError | UnusedCliTokensError):
        word = next(iter(error.unused_tokens or ()), "")
        if names := [name for name in command if not name.startswith("-")]:
            return unknown_command(word, words, names, chain)
        return UsageError(f"unexpected argument {word!r}", hint=_help_hint(chain))
    return UsageError(_message(error, chain), hint=_help_hint(chain))


def _options(command: App) -> list[str]:
    arguments = command.assemble_argument_collection() if command.default_command else ()
    return [*(name for argument in arguments for name in argument.names), *OPTION_NAMES]


def _command(app: App, chain: Iterable[str]) -> App:
    for name in chain:
        app = app[name]
    return app


def _help_hint(chain: Sequence[str]) -> str:
    return f"to see its arguments: `{' '.join(['quadloom', *chain, '--help'])}`"


def _message(error: CycloptsError, chain: Sequence[str]) -> str:
    match error:
        case MissingArgumentError(keyword=None, argument=argument) if argument is not None and not argument.tokens:
            return f"`{' '.join(['quadloom', *chain])}` needs {argument.name.removeprefix('--').upper()}"
        case MissingArgumentError(argument=argument) if argument is not None:
            return f"{error.keyword or argument.name} needs a value"
        case CoercionError(token=token, target_type=kind) if token is not None and kind is not None:
            name = token.keyword or (error.argument.name.removeprefix("--").upper() if error.argument else "it")
            return f"{name} takes {_values(kind)}, not {token.value!r}"
        case RepeatArgumentError(token=token):
            return f"{token.keyword} is given more than once"
    return str(error).strip()


def _values(kind: type) -> str:
    if get_origin(kind) is Literal:
        *most, last = map(str, get_args(kind))
        return f"{', '.join(most)} or {last}" if most else last
    return _VALUES.get(kind, f"a {kind.__name__.lower()}")
