"""`quadloom bulk`: the data of whole archives as tables, without a warehouse."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from quadloom.cli.options import Ray, Resume, Workers
from quadloom.cli.progress import Progress
from quadloom.cli.session import session
from quadloom.cli.upkeep.bulk import parallel_runner
from quadloom.cli.words import counted
from quadloom.errors import UsageError
from quadloom.maintenance.importing.imported_pages import listed
from quadloom.maintenance.lake.extraction.inputs import sources_of
from quadloom.maintenance.lake.extraction.messages import Options
from quadloom.maintenance.lake.extraction.run import extract
from quadloom.maintenance.lake.extraction.selection import RecordSelection


def bulk(
    *inputs: str,
    to: Annotated[str, Parameter(help="folder or s3://bucket/prefix for the tables")],
    format: Literal["parquet", "nq", "both"] = "parquet",
    text: Literal["none", "main", "markdown"] = "none",
    base: str = "",
    domain: tuple[str, ...] = (),
    mime: tuple[str, ...] = (),
    language: tuple[str, ...] = (),
    status: int = 200,
    archives: str = "",
    skip_duplicates: bool = False,
    things: tuple[str, ...] = (),
    report: Path | None = None,
    workers: Workers = 0,
    ray: Ray = None,
    resume: Resume = False,
) -> int:
    """Write the data of archives as tables: quads, pages, links, findings. No warehouse is needed, no site is visited.

    Each input becomes a part, which one process writes; it appears when it is complete. A page that crashes or hangs
    its process is left out and is a row of the table failures.

    Parameters
    ----------
    inputs
        WARC, ARC, WACZ or RDF files, folders with such files and pages, https:// and s3:// addresses of archives, an
        index (CDXJ, or Common Crawl's as Parquet) or warc.paths.gz; `-` reads a list from standard input
    format
        parquet, nq (N-Quads) or both
    text
        also write texts: the main text of each page, or its Markdown
    base
        URL of the files in a folder [default: the folder's own path], and of RDF statements without a graph
    domain
        of an index, only records of this domain and the hosts below it; may be repeated
    mime
        of an index, only records of this media type, such as text/html; may be repeated
    language
        of an index, only records in this language, as the index writes it, such as eng; may be repeated
    status
        of an index, only records with this HTTP status
    archives
        folder or address before the names of archives in an index or warc.paths.gz [default: the folder of the
        index if they are there, else https://data.commoncrawl.org/]
    skip_duplicates
        leave out pages whose body was read before in the same input
    things
        also write the things of this type as a table, things-Event.parquet; may be repeated
    report
        also count what there is, and write the statistics as a page with charts to this HTML file
    """
    s = session()
    names = [line.strip() for name in inputs for line in (sys.stdin if name == "-" else (name,)) if line.strip()]
    if (report is not None or things) and format == "nq":
        raise UsageError("--report and --things need the tables", hint="leave them out, or use --format both")
    if things and "://" in to:
        raise UsageError("--things writes into a folder", hint="afterwards: `quadloom lake things TYPE FILE --place`")
    if not names:
        raise UsageError("no input is given", hint="for example: `quadloom bulk crawl.warc.gz --to tables`")
    options = Options(format != "nq", format != "parquet", text, skip_duplicates)
    sources = sources_of(names, base, RecordSelection(domain, mime, language, status), archives)
    target = to if "://" in to else str(Path(to).absolute())
    runner = parallel_runner(s, workers, ray)
    with Progress(s, "bulk", total=len(sources), unit="parts") as progress:
        done = extract(sources, target, options, s.settings, runner, resume=resume, progress=progress.show)
    if things or report is not None:
        from quadloom.cli.upkeep.lake import write_statistics, write_things  # DuckDB and more: .1 s
    for name in things:
        write_things(s, target, name, Path(target) / f"things-{re.split('[/#:]', name)[-1]}.parquet")
    if report is not None:
        write_statistics(s, target, report)
    if s.json:
        s.emit(done)
        return 1 if done.failures or done.not_fetched else 0
    for error in done.not_fetched:
        s.say(f"{error}; to try again: --resume")
    others = f"; records without a page: {listed(Counter(done.not_taken))}" if done.not_taken else ""
    failed = f", {counted(done.failures, 'failure')}" if done.failures else ""
    pages, quads = counted(done.counts.get("pages", 0), "page"), counted(done.counts.get("quads", 0), "quad")
    s.say(f"{pages}, {quads} in {counted(len(sources), 'part')}{failed}{others}")
    return 1 if done.failures or done.not_fetched else 0
