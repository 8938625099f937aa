"""What all commands share: the warehouse's path, settings, and the way they speak.

Data goes to stdout; progress, hints and messages to stderr. `--json` gives one object, or JSON Lines for streams.
Colour and live displays only on a terminal, and never with NO_COLOR.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from quadloom.settings import Settings
from quadloom.settings_loading import Loaded, Value, load, warehouse_path


class Session:
    """Options that stand before or after any command."""

    def __init__(
        self,
        *,
        warehouse: Path | None = None,
        config: Path | None = None,
        json: bool = False,
        quiet: bool = False,
        verbose: bool = False,
        color: bool = True,
    ) -> None:
        self.warehouse = warehouse or warehouse_path()
        self.config = config
        self.json = json
        self.quiet = quiet
        self.verbose = verbose
        self.out = Console(no_color=not color or None, highlight=False, soft_wrap=not sys.stdout.isatty())
        self.err = Console(stderr=True, no_color=not color or None, highlight=False, soft_wrap=not sys.stderr.isatty())
        self._overrides: dict[str, Value] = {}

    def override(self, values: Mapping[str, Value | None]) -> None:
        """Flags of a command, by dotted setting name; None = not given."""
        self._overrides.update({name: value for name, value in values.items() if value is not None})
        self.__dict__.pop("loaded", None)

    @cached_property
    def loaded(self) -> Loaded:
        return load(config=self.config, overrides=self._overrides)

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    def say(self, text: str) -> None:
        """A message for people; silent with --quiet."""
        if not self.quiet:
            self.err.print(text, markup=False)

    def emit(self, record: object) -> None:
        """One JSON line on stdout."""
        sys.stdout.write(msgspec.json.encode(record, enc_hook=_plain).decode() + "\n")
        sys.stdout.flush()

    def write(self, text: str) -> None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> None:
        """A table on a terminal, tab-separated lines elsewhere, so that `cut` and `awk` work."""
        if not sys.stdout.isatty():
            for row in rows:
                self.write("\t".join(_cell(value) for value in row))
            return
        table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(_cell(value) for value in row))
        self.out.print(table)


_current: ContextVar[Session] = ContextVar("session")


def session() -> Session:
    """The running command's session."""
    return _current.get()


def begin(new: Session) -> None:
    _current.set(new)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value).replace("\t", " ").replace("\n", " ")


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
