"""`quadloom reproduce`: the experiments of the four papers again, in one report."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from quadloom.cli.session import session
from quadloom.errors import UsageError
from quadloom_lab.papers import liu_agah, multicrawler, rdfa_spider, xyleme
from quadloom_lab.papers.report import Result, Scale, write

Paper = Literal["multicrawler", "rdfa-spider", "xyleme", "liu-agah"]
_PAPERS: dict[Paper, Callable[[Scale], Iterator[Result]]] = {
    "multicrawler": multicrawler.results,
    "rdfa-spider": rdfa_spider.results,
    "xyleme": xyleme.results,
    "liu-agah": liu_agah.results,
}


def reproduce(
    folder: Path = Path("papers"),
    *,
    paper: list[Paper] | None = None,
    full: bool = False,
    history: Path | None = None,
    replay: Path | None = None,
) -> None:
    """Run the experiments of the four papers; write a report with each table and figure beside ours. No network.

    Parameters
    ----------
    folder
        where papers.html, papers.md and the CSV and SVG files go
    paper
        only this one; may be repeated
    full
        sizes that take hours; without it, some minutes on two cores
    history
        CSV file (gzipped or not) of real changes, with the columns page and changed_at in unix seconds, to replay
    replay
        a warehouse whose recorded pages the phases of MultiCrawler read, instead of a generated web
    """
    s = session()
    for given in (history, replay):
        if given is not None and not given.exists():
            raise UsageError(
                f"there is nothing at {given}", hint="give a file of changes, or the folder of a warehouse"
            )
    scale = Scale(full=full, history=history, replay=replay)
    found: list[Result] = []
    started = time.monotonic()
    for name in paper or _PAPERS:
        for result in _PAPERS[name](scale):
            found.append(result)
            s.say(f"{time.monotonic() - started:6.0f} s  {name}  {result.heading}")
            if s.json:
                s.emit({"key": result.key, "columns": result.columns, "rows": result.rows})
    how = (
        f"Made by `quadloom reproduce{' --full' if full else ''}` in {time.monotonic() - started:.0f} s on "
        f"{os.cpu_count()} cores, Python {platform.python_version()}. Each table and figure of a paper stands beside "
        f"ours."
    )
    page = write(folder, found, how)
    if not s.json:
        s.write(f"{len(found)} tables and figures in {page}")
