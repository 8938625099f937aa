"""What all commands share: the warehouse, the settings, the running crawl, and how they print.

Data goes to stdout; progress, hints and messages to stderr. `--json` gives one object, or JSON Lines for streams.
Colour and live displays only on a terminal, and never with NO_COLOR.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from quadloom.model.finding import named
from quadloom.settings import Settings
from quadloom.settings.loading import LoadedSettings, Tree, Value, load, warehouse_path

if TYPE_CHECKING:
    from rich.console import Console

    from quadloom.model.wire import Value as RequestValue
    from quadloom.warehouse import Warehouse

Record = TypeVar("Record")


class Session:
    """The options of every command, and the settings that follow from them."""

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
        self.named_warehouse = warehouse  # by -w; None = not given
        self.warehouse = warehouse or warehouse_path()
        self.config = config
        self.json = json
        self.quiet = quiet
        self.verbose = verbose
        self._color = color
        self._overrides: dict[str, Value] = {}

    def override(self, values: Mapping[str, Value | None]) -> None:
        """Set the flags of a command, by dotted setting name; None or an empty list = not given."""
        self._overrides.update({name: value for name, value in values.items() if value not in (None, [])})
        self.__dict__.pop("loaded", None)

    @cached_property
    def loaded(self) -> LoadedSettings:
        """The settings, on a cluster with those that all machines share: a worker needs only the database's address."""
        own = load(config=self.config, overrides=self._overrides)
        if not own.settings.stores.is_shared:
            return own
        from quadloom.stores.backends import shared_settings  # not needed by most commands

        shared = shared_settings(own.settings)
        if shared is None:
            return own
        return load(config=self.config, overrides=self._overrides, shared=cast(Tree, shared))

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    def read(self) -> Warehouse:
        """The warehouse, for reading, also while a crawl runs."""
        from quadloom.warehouse import Warehouse  # .06 s, which `config` and `check` need not wait for

        return Warehouse.read(self.warehouse, settings=self.settings)

    def open(self) -> Warehouse:
        """The warehouse, for writing; no other process may own it."""
        from quadloom.warehouse import Warehouse

        return Warehouse.open(self.warehouse, settings=self.settings)

    def change(
        self, verb: str, arguments: Mapping[str, RequestValue], otherwise: Callable[[Warehouse], object]
    ) -> object:
        """Have the running crawl change something, since it owns the warehouse. If none runs, open the warehouse for
        `otherwise`. Returns the answer of either."""
        from quadloom.crawling.run.control import ask

        answer = ask(self.warehouse, verb, **arguments)
        if answer is None:
            with self.open() as warehouse:
                return otherwise(warehouse)
        return answer

    @cached_property
    def out(self) -> Console:
        return self._console(stderr=False)

    @cached_property
    def err(self) -> Console:
        return self._console(stderr=True)

    def _console(self, *, stderr: bool) -> Console:
        from rich.console import Console  # .03 s, which a command in a pipe does not need

        wraps = (sys.stderr if stderr else sys.stdout).isatty()
        # Without emoji: `:key:` in a title is printed as it is.
        return Console(
            stderr=stderr, no_color=not self._color or None, highlight=False, emoji=False, soft_wrap=not wraps
        )

    @property
    def is_terminal(self) -> bool:
        """Whether stdout is a terminal, not a file or another program."""
        return sys.stdout.isatty()

    def say(self, text: str) -> None:
        """Print a message for people on stderr; nothing with --quiet."""
        if self.quiet:
            return
        if sys.stderr.isatty():
            self.err.print(harmless(text), markup=False)
        else:
            sys.stderr.write(harmless(text) + "\n")

    def say_at_once(self, text: str) -> None:
        """The same from a signal handler, which may interrupt another message: write directly to stderr."""
        if not self.quiet:
            os.write(sys.stderr.fileno(), f"{text}\n".encode())

    def emit(self, record: object) -> None:
        """Print one JSON line on stdout. On a terminal, escape control characters that JSON allows: U+009B starts a
        terminal command, as ESC [ does."""
        line = msgspec.json.encode(named(record), enc_hook=_plain).decode()
        if self.is_terminal:
            line = _CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", line)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def report(self, record: object, text: str) -> None:
        """Print what was done: the record with --json, otherwise the text for people."""
        if self.json:
            self.emit(record)
        else:
            self.say(text)

    def records(
        self,
        records: Iterable[Record],
        columns: Sequence[str],
        cells: Callable[[Record], Sequence[object]],
        *,
        as_json: Callable[[Record], object] | None = None,
    ) -> None:
        """Print records: JSON lines with --json, otherwise a table. `as_json`: what a line holds, if not the record."""
        if self.json:
            for record in records:
                self.emit(as_json(record) if as_json else record)
        else:
            self.table(columns, map(cells, records))

    def write(self, text: str) -> None:
        """Print lines on stdout. On a terminal, replace control characters: a title must not move the cursor."""
        text = text if text.endswith("\n") else text + "\n"
        sys.stdout.write(harmless(text) if self.is_terminal else text)

    def print(self, text: str, style: str = "") -> None:
        """Print a line for people on stdout; on a terminal it is wrapped between words. `style` as in `table`."""
        text = harmless(text)  # also into a pipe: `| head` ends on a terminal
        self.out.print(text, style=style or None, markup=False)

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[object]],
        *,
        title: str = "",
        styles: Sequence[str] = (),
    ) -> None:
        """Print a table on a terminal, without empty columns; elsewhere tab-separated lines for `cut` and `awk`, the
        names of the columns first if they have any. `styles`: of the rows, such as red; empty = none."""
        if not self.is_terminal:
            for row in (columns, *rows) if any(columns) else rows:
                self.write("\t".join(_cell(value) for value in row))
            return
        from quadloom.cli.tables import fitted

        cells = [list(row) for row in rows]
        shown = [index for index in range(len(columns)) if not cells or any(row[index] != "" for row in cells)]
        numeric = [all(isinstance(row[index], int | float) or row[index] == "" for row in cells) for index in shown]
        texts = [[harmless(_shown(row[index])) for index in shown] for row in cells]
        names = [columns[index] for index in shown]
        self.out.print(fitted(names, texts, numeric, self.out.width, title=title, styles=styles))


# C0 and C1 except tab and line feed; directional overrides, which can make one name look like another.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_current: ContextVar[Session] = ContextVar("session")


def session() -> Session:
    """The session of the running command."""
    return _current.get()


def begin(new: Session) -> None:
    _current.set(new)


def harmless(text: str) -> str:
    """The text with control characters replaced by U+FFFD, except tabs and line ends."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return harmless(str(value).replace("\t", " ").replace("\n", " "))


def _shown(value: object) -> str:
    """A cell for people: numbers with thousands separators."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else _cell(value)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
