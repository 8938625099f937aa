"""Settings from files, environment and flags, each value with its origin.

Precedence: flags > environment > `./quadloom.toml` (or --config) > `~/.config/quadloom/config.toml` > what all machines
of a cluster share > defaults.
No other module reads settings from the environment. An unknown key is an error that names the closest known one,
because a misspelt limit that is silently ignored is worse than no limit.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from quadloom.errors import SettingsError, UsageError
from quadloom.settings.data import IndexSettings, ServiceSettings, TopicSettings
from quadloom.settings.reading import STRATEGY_NAMES, CrawlSettings, PolitenessSettings, SiteSettings
from quadloom.settings.tree import Settings, without_password

PREFIX = "QUADLOOM_"
_SHOWN = 200  # characters of a bad value
_MOST_SECONDS = 10 * 365 * 86400.0

_SHARDED_COMMIT_SECONDS, _SHARDED_COMMIT_PAGES = 30.0, 20_000  # of text, if it has an index for each shard
_FIXED_WHEN_OPENED = frozenset(("max_pages_per_host", "order"))  # keys of [crawl] that the frontier is opened with

Value = str | int | float | bool | list["Value"] | dict[str, "Value"]
Tree = dict[str, Value]
_Followed = TypeVar("_Followed", PolitenessSettings, IndexSettings)


class LoadedSettings(msgspec.Struct, frozen=True):
    """Settings, and where each value came from: `{"crawl.max_pages": "environment QUADLOOM_CRAWL__MAX_PAGES"}`."""

    settings: Settings
    origins: dict[str, str]


class SettingField(NamedTuple):
    """One setting as documented. `name` is dotted: `crawl.max_pages`."""

    name: str
    default: object
    meaning: str


def load(
    *,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Value] | None = None,
    directory: Path | None = None,
    shared: Tree | None = None,
) -> LoadedSettings:
    """Read all sources. `overrides` maps dotted names (`crawl.max_pages`) to values given as flags. `shared`: settings
    that all machines of a cluster share; everything but a default comes before them.

    Raises `SettingsError` for a missing file, damaged TOML, unknown keys, values of the wrong type, and values that
    contradict each other.
    """
    environ = os.environ if environ is None else environ
    tree: Tree = {}
    origins: dict[str, str] = {}
    if shared is not None:
        _check_tree(shared, "shared settings of the cluster")
        _merge(tree, origins, shared, "shared settings of the cluster")
    for path in _files(config, environ, directory):
        _merge(tree, origins, _read(path), str(path))
    for name, raw in sorted(environ.items()):
        # Variables without "__" are no settings: QUADLOOM_WAREHOUSE, QUADLOOM_CONFIG and secrets.
        if name.startswith(PREFIX) and "__" in name:
            dotted = name[len(PREFIX) :].lower().replace("__", ".")
            _check_known(dotted, f"environment {name}")
            _put(tree, origins, dotted, _from_text(dotted, raw), f"environment {name}")
    for dotted, value in (overrides or {}).items():
        _check_known(dotted, "flag")
        _put(tree, origins, dotted, value, "flag")
    _check_values(tree, "", origins)
    try:
        settings = msgspec.convert(tree, Settings)
    except msgspec.ValidationError as error:
        raise _explained(error, origins) from None
    settings = _with_followers(settings, origins)
    _check_services(settings)
    check_strategy_names(settings.crawl.strategies)
    if settings.guard.authorities and not os.path.isfile(settings.guard.authorities):  # `Path` raises
        raise SettingsError(
            f"guard.authorities: there is no file {settings.guard.authorities[:_SHOWN]!r}",
            hint="name a file of PEM certificates",
        )
    return LoadedSettings(settings, origins)


def _with_followers(settings: Settings, origins: dict[str, str]) -> Settings:
    """Settings whose default depends on another one, unless they are set themselves.

    An explicit `politeness.delay` is meant as such: the pace of addresses and the adaptive pace, whose defaults would
    slow the crawl down again, follow it. An index for each shard makes every commit expensive: there are fewer."""
    politeness, index = settings.politeness, settings.index
    if "politeness.delay" in origins:
        paces = {"ip_delay": min(politeness.ip_delay, politeness.delay), "adaptive": 0.0}
        politeness = _followed(politeness, "politeness", "politeness.delay", paces, origins)
    if settings.stores.text.startswith("tantivy+shards:"):
        commits = {"text_commit_seconds": _SHARDED_COMMIT_SECONDS, "text_commit_pages": _SHARDED_COMMIT_PAGES}
        index = _followed(index, "index", "stores.text", commits, origins)
    return msgspec.structs.replace(settings, politeness=politeness, index=index)


def _followed(
    section: _Followed, name: str, leader: str, values: Mapping[str, float | int], origins: dict[str, str]
) -> _Followed:
    changes = {key: value for key, value in values.items() if f"{name}.{key}" not in origins}
    origins |= {f"{name}.{key}": f"follows {leader} ({origins[leader]})" for key in changes}
    return msgspec.structs.replace(section, **changes)


_Section = TypeVar("_Section", CrawlSettings, TopicSettings)


def with_limits(section: _Section, limits: Mapping[str, int | float | str]) -> _Section:
    """The settings of `[crawl]` or `[topic]` with the arguments of a call. Raises `UsageError` for unknown names and
    bad values."""
    name = "crawl" if isinstance(section, CrawlSettings) else "topic"
    known = {field.name for field in msgspec.structs.fields(type(section))} - _FIXED_WHEN_OPENED
    unknown = sorted(set(limits) - known)
    if unknown:
        raise UsageError(
            f"{name}() does not take {unknown[0]!r}", hint=f"settings of [{name}] are {', '.join(sorted(known))}"
        )
    try:
        return msgspec.convert({**msgspec.structs.asdict(section), **limits}, type(section))
    except msgspec.ValidationError as error:
        hint = f"docs/reference/settings.md lists the settings of [{name}]"
        raise UsageError(f"{name}(): {error}", hint=hint) from None


def check_strategy_names(names: Sequence[str]) -> None:
    """Raises `SettingsError` for a link strategy that is neither a standard one nor the name of a .rq file."""
    for name in names:
        parts = re.split(r"\s*[,;]\s*", name)
        is_joined = len(parts) > 1 and all(part in STRATEGY_NAMES or part.endswith(".rq") for part in parts)
        if name in STRATEGY_NAMES or (name.endswith(".rq") and not is_joined):
            continue
        hint = f"known are {', '.join(STRATEGY_NAMES)}, and paths to .rq files"
        if is_joined:
            flags = " ".join(f"--strategy {part}" for part in parts)
            hint = f"name each on its own: `{flags}`, or in a file crawl.strategies = {json.dumps(parts)}"
        elif near := difflib.get_close_matches(name.lower(), STRATEGY_NAMES, n=2, cutoff=0.5):
            hint = f"did you mean {' or '.join(near)}? {hint[0].upper()}{hint[1:]}"
        raise SettingsError(f"unknown link strategy {name[:_SHOWN]!r}", hint=hint)


def warehouse_path(environ: Mapping[str, str] | None = None) -> Path:
    """Default warehouse: QUADLOOM_WAREHOUSE or ./quadloom-data."""
    environ = os.environ if environ is None else environ
    return Path(environ.get("QUADLOOM_WAREHOUSE") or "quadloom-data")


def secret(name: str, environ: Mapping[str, str] | None = None) -> str:
    """A key or token from the environment (`QUADLOOM_<NAME>`); secrets are never in config files."""
    environ = os.environ if environ is None else environ
    return environ.get(PREFIX + name, "")


def fields() -> Iterator[SettingField]:
    """Every plain setting in order; the reference page and `config show` are made from it."""
    for section in msgspec.structs.fields(Settings):
        if section.name in ("site", "service"):
            continue
        struct = type(getattr(Settings(), section.name))
        hints = get_type_hints(struct, include_extras=True)
        for field in msgspec.structs.fields(struct):
            default = getattr(struct(), field.name)
            yield SettingField(f"{section.name}.{field.name}", default, _meaning(hints[field.name]))


def _meaning(hint: object) -> str:
    if get_origin(hint) is Annotated:
        for extra in get_args(hint)[1:]:
            if isinstance(extra, msgspec.Meta) and extra.description:
                return extra.description
    return ""


def _files(config: Path | None, environ: Mapping[str, str], directory: Path | None) -> list[Path]:
    chosen = config or (Path(environ["QUADLOOM_CONFIG"]) if environ.get("QUADLOOM_CONFIG") else None)
    home = Path(environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME", "/")) / ".config") / "quadloom/config.toml"
    local = (directory or Path()) / "quadloom.toml"
    if chosen is not None and not chosen.is_file():
        raise SettingsError(f"no config file at {chosen}", hint="to write a commented one: `quadloom init`")
    return [path for path in (home, chosen or local) if path.is_file()]


def _read(path: Path) -> Tree:
    try:
        tree: Tree = tomllib.loads(path.read_text(encoding="utf-8-sig"))  # some editors begin a file with a mark
    except ValueError as error:  # of TOML, of UTF-8, or of an integer that is too long
        raise SettingsError(
            f"{path} is not valid TOML: {error}", hint="correct that line; for a valid example: `quadloom init`"
        ) from None
    except RecursionError:
        raise SettingsError(
            f"{path} is not valid TOML: lists or tables within each other, hundreds of them",
            hint="no setting is nested deeper than three; for a valid example: `quadloom init`",
        ) from None
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}", hint="check the file's permissions") from None
    _check_tree(tree, str(path))
    return tree


def shareable(path: Path) -> Tree:
    """The content of a configuration file, to be shared by all machines: without the address of the database, which
    each needs to find it. Raises `SettingsError` for a value with a password, and for a file that is not valid."""
    load(config=path, environ={}, directory=path.parent)
    tree = _read(path)
    stores = tree.get("stores")
    if isinstance(stores, dict):
        stores.pop("frontier", None)
    for section, content in tree.items():
        for key, value in content.items() if isinstance(content, dict) else ():
            if isinstance(value, str) and without_password(value) != value:
                raise SettingsError(
                    f"{section}.{key} has a password, which must not be shared",
                    hint="leave it out of the address, and give it to each machine by its environment",
                )
    return tree


def _check_tree(tree: Tree, origin: str) -> None:
    for section, content in tree.items():
        if isinstance(content, dict):
            for key in content:
                _check_known(f"{section}.{key}", origin)
        else:
            _check_known(section, origin)


def _check_values(value: Value, name: str, origins: Mapping[str, str]) -> None:
    """What the system would refuse later, each at another place: null characters in texts, and more seconds than its
    clocks count. Only of what people write: the product itself sets some waits to infinity."""
    origin = f" ({origins[name]})" if name in origins else ""
    if isinstance(value, str) and "\0" in value:
        raise SettingsError(f"bad value for {name}: it has a null character{origin}", hint="remove it")
    if name.endswith("seconds") and isinstance(value, int | float) and value > _MOST_SECONDS:
        raise SettingsError(f"bad value for {name}: {value:g} seconds is more than ten years{origin}", hint="lower it")
    inner = (
        value.items()
        if isinstance(value, dict)
        else ((name, item) for item in value)
        if isinstance(value, list)
        else ()
    )
    for key, item in inner:
        _check_values(item, key if isinstance(value, list) or not name else f"{name}.{key}", origins)


@cache
def _defaults() -> dict[str, object]:
    """Every plain setting by its dotted name. Without its meaning, which takes 8 ms to read from the annotations."""
    sections = {name: getattr(Settings(), name) for name in Settings.__struct_fields__}
    return {
        f"{name}.{key}": getattr(section, key)
        for name, section in sections.items()
        if isinstance(section, msgspec.Struct)
        for key in section.__struct_fields__
    }


def _check_known(dotted: str, origin: str) -> None:
    known = _defaults().keys() | {"site", "service"}
    if dotted in known:
        return
    if dotted.split(".")[0] in ("site", "service") and "." not in dotted:
        return
    near = difflib.get_close_matches(dotted, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else "to list all settings: `quadloom config show`"
    raise SettingsError(f"unknown setting {dotted[:_SHOWN]!r} ({origin})", hint=hint)


def _merge(tree: Tree, origins: dict[str, str], layer: Tree, origin: str) -> None:
    for section, content in layer.items():
        if isinstance(content, dict):
            for key, value in content.items():
                _put(tree, origins, f"{section}.{key}", value, origin)
        else:
            tree[section] = content
            origins[section] = origin


def _put(tree: Tree, origins: dict[str, str], dotted: str, value: Value, origin: str) -> None:
    section, _, key = dotted.partition(".")
    inner = tree.setdefault(section, {})
    if not isinstance(inner, dict):
        raise SettingsError(
            f"{section} must be a table ({origin})", hint=f"write [{section}] and its keys on the lines below"
        )
    inner[key] = value
    origins[dotted] = origin


def _from_text(dotted: str, raw: str) -> Value:
    """The value of an environment variable, read by the type of the default. Lists are separated by commas."""
    default = _defaults()[dotted]
    if isinstance(default, bool):
        if raw.lower() in ("1", "true", "yes", "on"):
            return True
        if raw.lower() in ("0", "false", "no", "off"):
            return False
        return raw
    if isinstance(default, int | float):
        try:
            number = float(raw)
        except ValueError:
            return raw  # the type check will explain
        return int(number) if isinstance(default, int) and number.is_integer() else number
    if isinstance(default, list):
        items: list[Value] = [part.strip() for part in raw.split(",") if part.strip()]
        return (
            [int(part) if part.isdecimal() and len(part) < 6 else part for part in map(str, items)]
            if dotted == "guard.ports"
            else items
        )
    if isinstance(default, dict):
        return {
            name.strip(): value.strip() for name, _, value in (pair.partition("=") for pair in raw.split(",")) if name
        }
    return raw


def _check_services(settings: Settings) -> None:
    """Check that each service is either a URL or a command."""
    for service in settings.service:
        if bool(service.url.split()) == bool(service.command):
            raise SettingsError(
                "each [[service]] needs a url or a command, and not both",
                hint='url = "http://127.0.0.1:9001/", or command = ["program", "argument"]',
            )


def _explained(error: msgspec.ValidationError, origins: Mapping[str, str]) -> SettingsError:
    text = str(error)
    place = text.rpartition("`$.")[2].rstrip("`") if "`$." in text else ""
    origin = origins.get(place, "")
    known = sorted(field.name for struct in (SiteSettings, ServiceSettings) for field in msgspec.structs.fields(struct))
    problem, hint = text.split(" - at")[0], "to see every setting with its default: `quadloom config show`"
    if "unknown field" in text:
        hint = f"keys of [[site]] and [[service]]: {', '.join(known)}"
    elif "Expected `str`, got `int`" in text or "Expected `str`, got `float`" in text:
        hint = f'write it in quotes, a length of time with its unit: {place.rpartition(".")[2] or "name"} = "5s"'
    elif "Expected `object`, got `array`" in text:
        hint = f"write one table, [{place or 'section'}], instead of a list"
    elif "matching regex" in text:  # only lengths of time have a pattern
        problem, hint = "not a length of time", "write `90d`, `12h`, `30m` or `forever`"
    if len(problem) > _SHOWN:
        problem = f"{problem[:_SHOWN]}…"
    return SettingsError(
        f"bad value for {place or 'a setting'}: {problem}" + (f" ({origin})" if origin else ""), hint=hint
    )
