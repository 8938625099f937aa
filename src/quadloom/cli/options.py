"""Options that several commands have, each with its type and its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

# Crawls.
Seeds = Annotated[Path | None, Parameter(help="file with one URL per line, `-` for standard input")]
LinkScope = Annotated[
    Literal["page", "host", "site", "any"] | None,
    Parameter(help="how far to follow links: only the page, its host, its site, or anywhere"),
]
MaxPages = Annotated[int | None, Parameter(help="stop after this many pages")]
MaxSeconds = Annotated[float | None, Parameter(help="stop after this many seconds")]
Delay = Annotated[float | None, Parameter(help="least seconds between two requests to one host")]
Contact = Annotated[str | None, Parameter(help="URL or mail address shown to the sites you visit")]
Strategies = Annotated[
    tuple[str, ...],
    Parameter(
        help="which links to follow: all, same-site, external, feeds, seealso, vocabulary, sitemaps, or a .rq file"
    ),
]
GuidedShare = Annotated[
    float | None,
    Parameter(
        help="share of first reads that go to the most important unread page of a host; the others go breadth-first"
    ),
]
TransformWorkers = Annotated[int | None, Parameter(help="transform processes")]
Phases = Annotated[
    tuple[str, ...],
    Parameter(help="run only these: fetch, detect, transform, index, extract; the others are left to other processes"),
]
Follow = Annotated[bool, Parameter(help="do not end when nothing is left: wait for what other processes find or leave")]

# Work that can be divided among processes or machines.
Workers = Annotated[int, Parameter(help="processes that do the work; 0 = one per core")]
Ray = Annotated[
    str | None, Parameter(help="address of a Ray cluster (auto, local, ray://host:10001) whose machines do the work")
]
Resume = Annotated[bool, Parameter(help="continue an interrupted run: do not repeat what it has completed")]

# Selections of pages and findings.
Sites = Annotated[tuple[str, ...], Parameter(help="only pages of this registered domain or host; may be repeated")]
Types = Annotated[
    tuple[str, ...], Parameter(help="only pages about things of this type: schema:Event, Event or a full IRI")
]
Profiles = Annotated[
    tuple[str, ...],
    Parameter(help="check against this profile, a name or a file, instead of audit.profiles; may be repeated"),
]
FailOn = Annotated[
    Literal["error", "warning", "never"],
    Parameter(help="exit with code 1 if there is a finding of this severity or a graver one, for CI"),
]
FailEmpty = Annotated[bool, Parameter(help="exit with code 4 if nothing is found")]

# Requests to a running crawl.
AllWorkers = Annotated[
    bool,
    Parameter(
        name="--all-workers",
        help="on a cluster: all workers; a pause and new values also hold for workers that join later",
    ),
]
OneWorker = Annotated[str, Parameter(help="on a cluster: the worker with this name")]
