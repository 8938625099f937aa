"""Progress of commands that may take long: a bar with rate and remaining time on a terminal, nothing in a pipe.

    with Progress(s, "export", total=pages) as progress:
        warehouse.maintenance.export(…, progress=progress.show)

A bar appears after a second, so that short work prints nothing, and disappears at the end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from quadloom.asking.report.numbers import counts_of
from quadloom.cli.session import Session
from quadloom.warehouse import Warehouse

if TYPE_CHECKING:  # imported when something is shown
    from rich.console import RenderableType
    from rich.live import Live
    from rich.text import Text

_SHOW_AFTER = 1.0  # seconds until a bar appears
_BAR_COLUMNS = 14  # columns
_NEWEST_WEIGHT = 0.3  # weight of the newest rate


class LiveDisplay:
    """The state of what a command does: a picture on a terminal, which is drawn again and again and removed at the end;
    elsewhere a line now and then. Use as a context manager. `draw_every`, `say_every`: seconds, 0 = never."""

    def __init__(
        self,
        s: Session,
        *,
        draw_every: float = 0.25,
        say_every: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = s
        self._is_terminal = sys.stderr.isatty()
        self._every = draw_every if self._is_terminal else say_every
        self._clock = clock
        self._live: Live | None = None
        self._started = self._shown = clock()

    def __enter__(self) -> Self:
        self._started = self._shown = self._clock()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def seconds(self) -> float:
        """Seconds since the start, at the last call of `due`."""
        return self._shown - self._started

    def due(self) -> float:
        """The seconds since something was shown if it is time to show it again, otherwise 0."""
        now = self._clock()
        elapsed = now - self._shown
        if self._session.quiet or not self._every or elapsed < self._every:
            return 0.0
        self._shown = now
        return elapsed

    def draw(self, picture: RenderableType, line: str) -> None:
        """Show the picture, or on no terminal the line."""
        if not self._is_terminal:
            self._session.say(line)
            return
        if self._live is None:
            from rich.live import Live

            self._live = Live(console=self._session.err, refresh_per_second=5, transient=True)
            self._live.start()
        self._live.update(picture)


class Progress(LiveDisplay):
    """Counts what is done, after a second. `total` 0 = not known, then there is no bar and no remaining time."""

    def __init__(
        self, s: Session, verb: str, *, total: int = 0, unit: str = "pages", clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(s, draw_every=0.2, say_every=0.0, clock=clock)
        self._verb = verb
        self._total = total
        self._unit = unit
        self._done = 0
        self._added = 0
        self._rate = 0.0

    def add(self, more: int) -> None:
        """Report that so much more is done."""
        self._added += more
        self.show(self._added)

    def show(self, done: int, total: int = 0) -> None:
        """Report how much is done. `total`: of how much, if that was found out meanwhile."""
        self._total = total or self._total
        if elapsed := self.due():
            newest = (done - self._done) / elapsed
            self._rate = newest if not self._rate else _NEWEST_WEIGHT * newest + (1 - _NEWEST_WEIGHT) * self._rate
            self._done = done
            if self.seconds >= _SHOW_AFTER:
                self.draw(self.line(done), "")

    def line(self, done: int) -> Text:
        from rich.text import Text

        line = Text(self._verb, style="bold")
        if self._total:
            line.append_text(Text("  ").append_text(bar(done, self._total)))
            line.append(f"  {done:,} of {self._total:,} {self._unit}", style="default not bold")
        else:
            line.append(f"  {done:,} {self._unit}", style="default not bold")
        line.append(f" · {rate(self._rate)}", style="default not bold")
        if self._total and self._rate > 0:
            line.append(f" · {duration((self._total - done) / self._rate)} left", style="default not bold")
        return line


def known_pages(warehouse: Warehouse) -> int:
    """How many pages there are to go through."""
    return sum(counts_of(warehouse.stores.catalog.counts(), "outcome").values())


@contextmanager
def waiting(s: Session, text: str) -> Iterator[None]:
    """A line that moves while the block runs, for work whose amount is not known. Only on a terminal."""
    if not sys.stderr.isatty() or s.quiet:
        yield
        return
    with s.err.status(text):
        yield


def bar(done: int, total: int) -> Text:
    """A bar of fixed width, so that what follows it does not move."""
    from rich.text import Text

    full = min(_BAR_COLUMNS, _BAR_COLUMNS * done // total) if total else 0
    return Text("━" * full, style="green").append("─" * (_BAR_COLUMNS - full), style="bright_black")


def rate(per_second: float) -> str:
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.1f}/s"


def duration(seconds: float) -> str:
    """`0:07`, `12:30`, `3 h 05 min` or `2 d 4 h`."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
