"""`quadloom report`: a crawl as one HTML file that can be sent, printed and opened without a network."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from quadloom.asking.report.crawl_summary import PAGES, summarise
from quadloom.cli.progress import Progress, known_pages
from quadloom.cli.session import session
from quadloom.cli.words import counted, size
from quadloom.web.crawl_report import report_html


def report(
    *, site: str = "", output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("report.html")
) -> None:
    """Write a report of the crawl as one HTML file: what was read, types, languages, map, dates, links and findings.

    The file needs no network, has a light and a dark theme, and can be printed. `--json` prints the numbers instead.

    Parameters
    ----------
    site
        only this registered domain or host
    output
        file to write
    """
    s = session()
    with s.read() as warehouse:
        total = 0 if site else min(PAGES, known_pages(warehouse))
        with Progress(s, "report", total=total) as progress:
            summary = summarise(warehouse.ask, warehouse.stores, site, progress.show)
    if s.json:
        s.emit(summary)
        return
    title = site or s.warehouse.resolve().name.replace("-", " ").replace("_", " ").capitalize()
    output.write_text(report_html(summary, title=title, now=time.time()), encoding="utf-8")
    s.say(f"{output}: {counted(summary.sampled, 'page')}, {size(output.stat().st_size)}")
