"""`quadloom init` and `quadloom config`: the configuration file, and where each value comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from quadloom.cli.session import session
from quadloom.errors import UsageError
from quadloom.settings import ServiceSettings, SiteSettings, without_password
from quadloom.settings.loading import fields

config = App(name="config", help="Show the settings in force and where each came from.")

_FILE = """\
# quadloom.toml: every line is optional; `quadloom config show` prints all settings.
# The three lines most people change are the first three. Lines with a # before the name show defaults.

[crawl]
{contact}   # shown to the sites you visit: a URL or mail address
seeds     = ["https://example.org/"]
max_pages = 1_000
max_depth = 10
# scope   = "site"          # page | host | site | any

[politeness]
# delay    = 1.0            # seconds between requests to one host, at least
# per_site = 1              # requests under way to one host at a time

[guard]
# allow = []                # CIDR blocks that may be visited although not public, e.g. ["10.0.0.0/8"]

[freshness]
# bandwidth    = 10.0       # pages a second of a continuous crawl
# min_interval = "1h"       # a page is not read again before
# max_interval = "90d"

[topic]
# words = []

[stores]                    # by URL; the defaults are files in the warehouse
# quads = "oxigraph:"

[web]
# port = 7272

# [[site]]                  # exceptions for hosts
# match = "*.wikipedia.org"
# delay = 5.0
"""


def init(
    path: Path = Path("quadloom.toml"), *, contact: str = "", force: Annotated[bool, Parameter(negative="")] = False
) -> None:
    """Write a commented quadloom.toml.

    Parameters
    ----------
    path
        where to write it
    contact
        URL or mail address shown to the sites you visit
    force
        overwrite a file that exists
    """
    if path.exists() and not force:
        raise UsageError(f"{path} exists", hint="give another path, or --force to overwrite it")
    # A default that is written down, an empty contact too, would hide what ~/.config/quadloom/config.toml says.
    # JSON's strings are TOML's basic strings.
    line = f"contact   = {msgspec.json.encode(contact).decode()}" if contact else '# contact = "you@example.org"'
    path.write_text(_FILE.format(contact=line), encoding="utf-8")
    s = session()
    if s.json:
        s.emit({"file": path})
    s.say(f"wrote {path}; change contact, seeds and max_pages, then run `quadloom crawl`")


@config.command
def show(*, origin: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Print every setting with its value.

    Parameters
    ----------
    origin
        also print where the value came from: default, a file, the environment, a flag
    """
    s = session()
    loaded = s.loaded
    values = []
    for name, default, meaning in fields():
        section, _, key = name.partition(".")
        value = getattr(getattr(loaded.settings, section), key)
        value = without_password(value) if isinstance(value, str) else value
        values.append((name, value, loaded.origins.get(name, "default"), default, meaning))
    tables: dict[str, Sequence[SiteSettings | ServiceSettings]] = {
        "site": loaded.settings.site,
        "service": loaded.settings.service,
    }
    if s.json:
        shown: dict[str, object] = {
            name: {"value": value, "origin": source, "default": default, "meaning": meaning}
            for name, value, source, default, meaning in values
        }
        s.emit({**shown, **{name: {"value": rows} for name, rows in tables.items() if rows}})
        return
    columns = ["setting", "value", "origin"] if origin else ["setting", "value"]
    s.table(columns, [row[: len(columns)] for row in values])
    for name, rows in tables.items():
        for index, row in enumerate(rows):
            given = {key: value for key, value in msgspec.structs.asdict(row).items() if value not in (None, [])}
            s.write(f"{name}[{index}]\t" + "  ".join(f"{key} = {value!r}" for key, value in given.items()))
