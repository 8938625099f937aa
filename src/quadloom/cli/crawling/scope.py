"""`quadloom scope`: which URLs may be visited, also while a crawl runs."""

from __future__ import annotations

import msgspec
from cyclopts import App

from quadloom.cli.session import session
from quadloom.crawling.run.scope import ScopeEdits
from quadloom.errors import UsageError

scope = App(name="scope")
Patterns = list[str] | None


@scope.command
def show() -> None:
    """Print scope, depth, seeds and all patterns, and where each comes from."""
    s = session()
    with s.read() as warehouse:
        rules, edits = warehouse.scope.current.record, warehouse.scope.edits()
    if s.json:
        s.emit({"rules": rules, "added": edits})
        return
    rows: list[tuple[str, str, str]] = [
        ("reach", rules.reach, "crawl.scope"),
        ("depth", str(rules.max_depth), "crawl.max_depth"),
        *(("seed", seed, "seeds add") for seed in rules.seeds),
    ]
    for name, patterns, own in (
        ("include", rules.include, edits.include),
        ("exclude", rules.exclude, edits.exclude),
        ("host", rules.hosts, edits.host),
    ):
        rows += [(name, text, "scope add" if text in own else f"crawl.{name}") for text in patterns]
    s.table(["rule", "value", "from"], rows)


@scope.command
def add(*, include: Patterns = None, exclude: Patterns = None, host: Patterns = None) -> None:
    """Add rules. Queued URLs that are now out of scope are parked; parked ones that are in scope again are queued.

    Parameters
    ----------
    include
        follow only URLs matching this glob (or `re:` expression); may be repeated
    exclude
        never follow URLs matching this glob (or `re:` expression); may be repeated
    host
        glob of hosts that are in scope like the hosts of seeds; may be repeated
    """
    _change(include, exclude, host, remove=False)


@scope.command
def remove(*, include: Patterns = None, exclude: Patterns = None, host: Patterns = None) -> None:
    """Remove rules that `scope add` added.

    Parameters
    ----------
    include
        pattern as it was added
    exclude
        pattern as it was added
    host
        glob as it was added
    """
    _change(include, exclude, host, remove=True)


def _change(include: Patterns, exclude: Patterns, host: Patterns, *, remove: bool) -> None:
    s = session()
    rules = ScopeEdits(tuple(include or ()), tuple(exclude or ()), tuple(host or ()))
    if not any(rules.rules):
        raise UsageError("no rule is given", hint="give --include, --exclude or --host with a pattern")
    request = {"remove": remove, "rules": msgspec.to_builtins(rules)}
    moved = s.change("scope", request, lambda warehouse: warehouse.scope.change(rules, remove=remove))
    s.report({"moved": moved}, f"the scope is changed; {moved} queued URLs were moved in or out of it")
