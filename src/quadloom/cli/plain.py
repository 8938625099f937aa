"""Arguments as most people write them, read without Cyclopts, whose import and first use take .06 CPU-s.

The options of every command are always read here, before or after its name. Of the command's own only what is certain
is: words, switches, and `--name value` of the types below, for a command that is one function with options by name. For
everything else (help, `--name=value`, other types, mistakes) the answer is None, and Cyclopts reads the arguments; a
test compares the two.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from quadloom.errors import UsageError

_SWITCHES = {
    "--json": ("json", True),
    "--quiet": ("quiet", True),
    "--verbose": ("verbose", True),
    "--color": ("color", True),
    "--no-color": ("color", False),
}
_WITH_PATH = {"--warehouse": "warehouse", "-w": "warehouse", "--config": "config"}
_LEFT = ("--help", "-h", "--version")  # to Cyclopts
_HINT = "to see the options of every command: `quadloom --help`"

# By annotation, as the function has it in writing: which values are plain, and what they become.
_READERS: dict[str, tuple[re.Pattern[str], Callable[[str], object]]] = {
    "str": (re.compile(r"[^-].*", re.DOTALL), str),
    "int": (re.compile(r"[0-9]{1,18}"), int),
    "float": (re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?"), float),
    "Path": (re.compile(r"[^-].*", re.DOTALL), Path),
}
_LISTS: dict[str, Callable[[list[str]], object]] = {"list[str]": list, "tuple[str, ...]": tuple}


class EveryOption(TypedDict, total=False):
    """The options of every command that were given."""

    warehouse: Path
    config: Path
    json: bool
    quiet: bool
    verbose: bool
    color: bool


def plain_options(arguments: Sequence[str]) -> tuple[EveryOption, list[str]] | None:
    """The options of every command, and all other words; None if help or the version is asked for. Raises
    `UsageError` for an option without its value, or with two. What follows `--` is left as it is."""
    options: EveryOption = {}
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--":
            return options, [*rest, word, *words]
        if word in _LEFT:
            return None
        if name in _SWITCHES:
            if equals:
                raise UsageError(f"{name} takes no value", hint=_HINT)
            key, on = _SWITCHES[name]
            options[key] = on  # type: ignore[literal-required]
        elif name in _WITH_PATH:
            key, value = _WITH_PATH[name], value if equals else next(words, "")
            if not value or value.startswith("--"):
                raise UsageError(f"{name} needs a value", hint=_HINT)
            if key in options:
                raise UsageError(f"{name} is given more than once", hint=_HINT)
            options[key] = Path(value)  # type: ignore[literal-required]
        else:
            rest.append(word)
    return options, rest


def plain_arguments(
    function: Callable[..., object], words: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, object]] | None:
    """The positional and named arguments of a command's function; None if it needs Cyclopts to read them."""
    parameters = inspect.signature(function).parameters
    positional, given = _divided(parameters, iter(words))
    if positional is None or (positional and not _takes_words(parameters)):
        return None
    named: dict[str, object] = {}
    for name, values in given.items():
        value = _value(str(parameters[name].annotation).removesuffix(" | None"), values)
        if value is None:
            return None
        named[name] = value
    missing = (p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters.values())
    return None if any(missing) else (tuple(positional), named)


def _divided(
    parameters: Mapping[str, inspect.Parameter], words: Iterator[str]
) -> tuple[list[str] | None, dict[str, list[str]]]:
    """Words without a name, and values by the name of their parameter; None if a word is not understood."""
    positional: list[str] = []
    given: dict[str, list[str]] = {}
    for word in words:
        if not word.startswith("-"):
            positional.append(word)
            continue
        name = word.removeprefix("--").replace("-", "_")
        parameter = parameters.get(name)
        if parameter is None or parameter.kind is not parameter.KEYWORD_ONLY or f"--{name.replace('_', '-')}" != word:
            return None, {}
        given.setdefault(name, []).append("" if parameter.annotation == "bool" else next(words, ""))
    return positional, given


def _takes_words(parameters: Mapping[str, inspect.Parameter]) -> bool:
    first = next(iter(parameters.values()), None)
    return first is not None and first.kind is first.VAR_POSITIONAL and first.annotation == "str"


def _value(annotation: str, values: list[str]) -> object:
    """None if it is not plain."""
    if annotation == "bool":
        return True if len(values) == 1 else None
    several = _LISTS.get(annotation)
    pattern, read = _READERS.get("str" if several else annotation, (None, None))
    if pattern is None or read is None or not all(map(pattern.fullmatch, values)):
        return None
    if several:
        return several(values)
    return read(values[0]) if len(values) == 1 else None
