"""Progress of commands that may take long: a bar with rate and remaining time on a terminal, nothing in a pipe.

    with Progress(s, "export", total=pages) as progress:
        warehouse.maintenance.export(…, progress=progress.show)

It appears after a second, so that short work prints nothing, and disappears at the end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from quadloom.cli.session import Session
from quadloom.warehouse import Warehouse

if TYPE_CHECKING:  # imported when something is shown
    from rich.live import Live
    from rich.text import Text

_AFTER = 1.0  # seconds until the bar appears
_EVERY = 0.2  # seconds between two looks
_BAR = 16  # columns
_RECENT = 0.3  # weight of the newest rate


class Progress:
    """Counts what is done; `total` 0 = not known, then there is no bar and no remaining time."""

    def __init__(
        self, s: Session, verb: str, *, total: int = 0, unit: str = "pages", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._session = s
        self._verb = verb
        self._total = total
        self._unit = unit
        self._clock = clock
        self._started = self._looked = clock()
        self._done = 0
        self._rate = 0.0
        self._live: Live | None = None
        self._is_shown = sys.stderr.isatty() and not s.quiet and not s.json

    def __enter__(self) -> Progress:
        self._started = self._looked = self._clock()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, done: int, total: int = 0) -> None:
        """Report how much is done. `total`: of how much, if that was found out meanwhile."""
        self._total = total or self._total
        now = self._clock()
        if not self._is_shown or now - self._looked < _EVERY:
            return
        newest = (done - self._done) / (now - self._looked)
        self._rate = newest if not self._rate else _RECENT * newest + (1 - _RECENT) * self._rate
        self._looked, self._done = now, done
        if now - self._started < _AFTER:
            return
        if self._live is None:
            from rich.live import Live

            self._live = Live(console=self._session.err, refresh_per_second=5, transient=True)
            self._live.start()
        self._live.update(self.line(done))

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
    counts = warehouse.stores.catalog.counts()
    return sum(count for name, count in counts.items() if name.startswith("outcome:"))


@contextmanager
def waiting(s: Session, text: str) -> Iterator[None]:
    """A line that moves while the block runs, for work whose amount is not known. Only on a terminal."""
    if not sys.stderr.isatty() or s.quiet or s.json:
        yield
        return
    with s.err.status(text):
        yield


def bar(done: int, total: int) -> Text:
    """A bar of fixed width, so that what follows it does not move."""
    from rich.text import Text

    full = min(_BAR, _BAR * done // total) if total else 0
    return Text("━" * full, style="green").append("─" * (_BAR - full), style="bright_black")


def rate(per_second: float) -> str:
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.1f}/s"


def duration(seconds: float) -> str:
    """`0:07`, `12:30`, `3 h 05 min` or `2 d 4 h`."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
