"""Mistakes in arguments as messages: what is wrong, and which name or help page was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, get_args, get_origin

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)

from quadloom.errors import UsageError

_OF_THE_LAB = ("bench", "simulate")
_VALUES = {int: "a whole number", float: "a number", bool: "true or false"}
_ALIKE = 0.7  # from 0 to 1: --frobnicate and --own-site, which nobody confuses, have 0.6


def no_command(arguments: Sequence[str], word: str, commands: Iterable[str]) -> UsageError:
    """`word` stands where a command is expected."""
    if word in _OF_THE_LAB:
        message = f"`quadloom {word}` is part of the lab, which is not installed"
        return UsageError(message, hint="in a checkout of Quadloom: `pip install -e lab`")
    if word == "version":
        return UsageError("there is no command 'version'", hint="write `quadloom --version`")
    if word == "help":
        others = [one for one in arguments if one != word]
        return UsageError("there is no command 'help'", hint=f"write `{' '.join(['quadloom', *others, '--help'])}`")
    return _no_name((), word, commands)


def refuse_option(_: object, value: object) -> None:
    """A validator of all parameters. They take words that begin with a hyphen, because `-` is standard input and
    `-word` excludes a word from a search; so an option that does not exist arrives as a value."""
    for text in value if isinstance(value, list | tuple) else (value,):
        if isinstance(text, str | Path) and str(text).startswith("--"):
            raise ValueError(str(text))


def usage_error(error: CycloptsError, app: App) -> UsageError:
    """What Cyclopts found, in our words. `app` has all commands."""
    chain = tuple(error.command_chain or ())
    hint = f"to see its arguments: `{' '.join(['quadloom', *chain, '--help'])}`"
    match error:
        case UnknownOptionError(token=token):
            return _no_option(token.keyword or token.value, app, chain, hint)
        case ValidationError(argument=argument, exception_message=option) if (
            argument and not argument.tokens[0].keyword
        ):
            return _no_option(option, app, chain, hint)
        case UnknownCommandError() | UnusedCliTokensError():
            word = next(iter(error.unused_tokens or ()), "")
            if word.startswith("-"):
                return _no_option(word, app, chain, hint)
            if names := [name for name in _named(app, chain) if not name.startswith("-")]:
                return _no_name(chain, word, names)
            return UsageError(f"unexpected argument {word!r}", hint=hint)
    return UsageError(_what(error, chain), hint=hint)


def _no_name(chain: tuple[str, ...], word: str, names: Iterable[str]) -> UsageError:
    group = " ".join(["quadloom", *chain])
    near = difflib.get_close_matches(word.lower(), names, n=1)
    hint = f"did you mean `{group} {near[0]}`?" if near else f"to list the commands: `{group} --help`"
    return UsageError(f"`{group}` has no command {word!r}" if chain else f"there is no command {word!r}", hint=hint)


def _no_option(option: str, app: App, chain: tuple[str, ...], hint: str) -> UsageError:
    apps = [one for one in (_named(app, chain), app.meta) if one.default_command is not None]
    names = [name for one in apps for argument in one.assemble_argument_collection() for name in argument.names]
    near = difflib.get_close_matches(option, names, n=1, cutoff=_ALIKE)
    return UsageError(f"unknown option {option}", hint=f"did you mean {near[0]}?" if near else hint)


def _named(app: App, chain: tuple[str, ...]) -> App:
    for name in chain:
        app = app[name]
    return app


def _what(error: CycloptsError, chain: tuple[str, ...]) -> str:
    match error:
        case MissingArgumentError(keyword=None, argument=argument) if argument is not None and not argument.tokens:
            return f"`{' '.join(['quadloom', *chain])}` needs {argument.name.removeprefix('--').upper()}"
        case MissingArgumentError(argument=argument) if argument is not None:
            return f"{error.keyword or argument.name} needs a value"
        case ValidationError(argument=argument) if argument is not None:
            return f"{argument.tokens[0].keyword} needs a value"
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
