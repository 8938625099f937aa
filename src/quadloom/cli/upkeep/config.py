"""`quadloom init` and `quadloom config`: write a configuration file; show every value and where it comes from; share it
with all machines of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from cyclopts import App

from quadloom.cli.session import session
from quadloom.errors import UsageError
from quadloom.settings import ServiceSettings, SiteSettings, without_password
from quadloom.settings.loading import fields, shareable
from quadloom.stores.backends import share_settings

config = App(name="config")

_TEMPLATE = """\
# quadloom.toml: every line is optional; `quadloom config show` prints all settings.
# Most people change only the first three. Lines that start with # show the defaults.

[crawl]
{contact}   # shown to the sites you visit: a URL or mail address
seeds     = ["https://example.org/"]
max_pages = 1_000
max_depth = 10
# scope   = "site"          # page | host | site | any

[politeness]
# delay    = 1.0            # least seconds between two requests to one host
# per_site = 1              # requests to one host at the same time

[guard]
# allow = []                # CIDR blocks that may be visited although they are not public, e.g. ["10.0.0.0/8"]

[freshness]
# bandwidth    = 0          # pages per second of a continuous crawl; 0 = first reads as politeness allows
# min_interval = "1h"       # a page is not read again sooner
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


def init(path: Path = Path("quadloom.toml"), *, contact: str = "", force: bool = False) -> None:
    """Write a commented quadloom.toml.

    Parameters
    ----------
    path
        file to write
    contact
        URL or mail address shown to the sites you visit
    force
        overwrite an existing file
    """
    if path.exists() and not force:
        raise UsageError(f"{path} already exists", hint="give another path, or --force to overwrite it")
    # Without a contact the line is a comment: an empty one would override ~/.config/quadloom/config.toml. A JSON string
    # is a valid TOML basic string.
    line = f"contact   = {msgspec.json.encode(contact).decode()}" if contact else '# contact = "you@example.org"'
    path.write_text(_TEMPLATE.format(contact=line), encoding="utf-8")
    session().report({"file": path}, f"wrote {path}; change contact, seeds and max_pages, then run `quadloom crawl`")


@config.command
def show(*, origin: bool = False) -> None:
    """Print every setting with its value.

    Parameters
    ----------
    origin
        also print where the value comes from: default, a file, the environment or a flag
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
            defaults = {field.name: field.default for field in msgspec.structs.fields(row)}
            given = {
                key: value
                for key, value in msgspec.structs.asdict(row).items()
                if value not in (None, [], defaults[key])
            }
            s.write(f"{name}[{index}]\t" + "  ".join(f"{key} = {value!r}" for key, value in given.items()))


@config.command
def share(file: Path | None = None, *, clear: bool = False) -> None:
    """Share a configuration file with all machines of the cluster: workers that start later use it.

    Each machine then needs only the address of the database and its secrets. Settings in its own file, environment or
    flags override the shared ones.

    Parameters
    ----------
    file
        the file to share [default: that of --config, or ./quadloom.toml]
    clear
        stop sharing settings
    """
    s = session()
    if not s.settings.stores.is_shared:
        raise UsageError(
            "settings cannot be shared: this warehouse belongs to one machine",
            hint="set stores.frontier to the cluster's database",
        )
    if clear:
        share_settings(s.settings, None)
        s.say("no settings are shared")
        return
    path = file or s.config or Path("quadloom.toml")
    if not path.is_file():
        raise UsageError(f"there is no file {path}", hint="name the file to share")
    tree = shareable(path)
    share_settings(s.settings, {**tree})
    count = sum(len(content) if isinstance(content, dict) else 1 for content in tree.values())
    s.report({"shared": tree}, f"{count} settings of {path} are shared; workers that start from now on use them")
