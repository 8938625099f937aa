"""Extractors of other packages, by entry points of the group `quadloom.syntaxes`; and all syntaxes of an installation.

An entry point names an object with `kinds` (document kinds it reads) and `extract(context)`; `syntax` is optional and
is the entry point's own name otherwise. A plug-in that cannot be loaded is a finding, and one that fails on a page
costs that page this one syntax: `quadloom.documents.transform` runs each behind a boundary. docs/howto/plugins.md has
an example."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, get_args, runtime_checkable

import msgspec

from quadloom.documents.syntaxes.external import with_services
from quadloom.documents.syntaxes.installed import SYNTAXES
from quadloom.documents.syntaxes.registry import Context, Extractor, Registry
from quadloom.errors import SettingsError
from quadloom.model.document import Kind
from quadloom.model.finding import Finding
from quadloom.settings import Settings

GROUP = "quadloom.syntaxes"
_KINDS: frozenset[str] = frozenset(get_args(Kind))


@runtime_checkable
class Plugin(Protocol):
    """What an entry point names. `extract` reads `context` and writes to its sink, links, facts and findings."""

    kinds: Iterable[str]

    def extract(self, context: Context) -> None: ...


class AssembledSyntaxes(msgspec.Struct, frozen=True):
    """All syntaxes of an installation, and the defects of plug-ins that could not be loaded."""

    registry: Registry
    findings: tuple[Finding, ...] = ()


def assemble(registry: Registry, settings: Settings) -> AssembledSyntaxes:
    """The registry with the external services of the settings and all installed plug-ins.

    Called once per process: plug-ins are imported here.
    """
    return with_plugins(with_services(registry, settings.service))


def with_plugins(registry: Registry, entries: Iterable[EntryPoint] | None = None) -> AssembledSyntaxes:
    """The registry with plug-ins added, in the order of their names."""
    findings: list[Finding] = []
    found = entry_points(group=GROUP) if entries is None else entries
    for entry in sorted(found, key=lambda one: one.name):
        try:
            plugin = entry.load()
            if isinstance(plugin, type):
                plugin = plugin()
            registry = _added(registry, entry.name, plugin)
        except Exception as error:  # noqa: BLE001 - importing a stranger's package may raise anything
            message = f"plug-in {entry.name} ({entry.value}) was left out: {type(error).__name__}: {str(error)[:200]}"
            findings.append(
                Finding(
                    "plugin-broken", message, "error", "transform", advice="correct or uninstall it", syntax=entry.name
                )
            )
    return AssembledSyntaxes(registry, tuple(findings))


def _added(registry: Registry, name: str, plugin: object) -> Registry:
    if not isinstance(plugin, Plugin):
        raise TypeError("it has no `kinds` and `extract(context)`")
    unknown = sorted(set(plugin.kinds) - _KINDS)
    if unknown:
        raise ValueError(f"no such document kind: {', '.join(unknown)}")
    syntax = getattr(plugin, "syntax", name)
    kinds = [kind for kind in get_args(Kind) if kind in set(plugin.kinds)]
    return registry.adding(Extractor(str(syntax), plugin.extract), kinds)


def all_syntaxes(settings: Settings) -> AssembledSyntaxes:
    """Every syntax of this installation: built-in ones, configured services and plug-ins. Called once per process."""
    return assemble(SYNTAXES, settings)


def check_syntaxes(settings: Settings) -> None:
    """Raises `SettingsError` for a name in `transform.syntaxes` that no syntax of this installation has: at the start
    of a command, since a page cannot show that a syntax was not read."""
    chosen = settings.transform.syntaxes
    if not set(chosen).difference(SYNTAXES.names):
        return  # without a look at plug-ins, which are imported then
    assembled = all_syntaxes(settings)
    broken = {one.syntax for one in assembled.findings}  # reported in its own words, by the workers
    known = assembled.registry.names
    for name in chosen:
        if name not in known and name not in broken:
            near = get_close_matches(name.lower(), known, n=1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise SettingsError(
                f"transform.syntaxes: there is no syntax {name!r}",
                hint=f"{meant}It takes {', '.join(known)}; empty = all",
            )
